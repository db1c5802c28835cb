"""The cuts of ``test_cut.py`` with state in RocksDB: nothing stays in memory between two elements, on one side or both.

Each query with keyed state has one cut here and its batches in one size; ``make chaos`` takes the others.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Final

import pytest

from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import SinkConflictsSpec, SinkMaterializerSpec, WindowAggregateSpec
from flowsql_core.graph.window_specs import SessionTableFunctionSpec
from flowsql_runtime.operators import registry
from flowsql_runtime.testing.cut import run_cut, run_whole

from ..cold_state import BACKENDS, COLD, ColdOperators
from .test_cut import BATCH_ROWS, CASES, IN_BATCH_MODE, ROWS, Case, changelog, folded, session_of
from .test_cut import CUT_ELSEWHERE as WHOLE_CUT_ELSEWHERE
from .test_cut import folder as folder

#: Parallelism before and behind the cut.
RESCALED: Final = [pair for pair in itertools.product((1, 2, 3, 4), repeat=2) if pair[0] != pair[1]]
#: Backends before and behind the cut.
SIDES: Final = [("rocksdb", "rocksdb"), ("hashmap", "rocksdb"), ("rocksdb", "hashmap")]
#: Rows that each reader emits before the cut: all, or not all of any file, and more than a mini-batch holds back.
POSITIONS: Final = (55, 75, ROWS)

#: Operators with keyed state that no query of the file reaches: the test that cuts them on every backend.
CUT_ELSEWHERE: Final = {
    SinkMaterializerSpec: ("runtime/operators/test_sink_keys.py", "test_a_cut_at_any_parallelism_changes_nothing"),
    SinkConflictsSpec: ("runtime/operators/test_sink_keys.py", "test_a_cut_at_any_parallelism_changes_nothing"),
}

Cut = tuple[tuple[int, int], int, tuple[str, str]]


def stateful(graph: JobGraph) -> set[type]:
    """The specs of operators of a SQL job that keep keyed state."""
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    return {type(node.spec) for node in nodes if registry.operator_class(node.spec).stateful}


def surely_written(graph: JobGraph) -> set[type]:
    """Those of them that have state between two elements, too."""
    specs = stateful(graph)
    # Rows of a session leave when it ends, and a window aggregate behind answers at once.
    return specs - {WindowAggregateSpec} if SessionTableFunctionSpec in specs else specs


def all_cuts(case: Case) -> list[Cut]:
    """Each pair of parallelism with each pair of backends, at changing positions."""
    pairs = [(1, 1)] if case.serial else RESCALED
    return [
        (pair, POSITIONS[number % 3], sides) for number, (pair, sides) in enumerate(itertools.product(pairs, SIDES))
    ]


QUICK_CASES: Final = [case for case in CASES if not case.slow]


def quick_cuts(case: Case) -> list[Cut]:
    """One cut of a query, or one for each pair of backends: neighbours differ in all."""
    if case.serial:
        sides = SIDES if case.each_backend else SIDES[:1]
        return [((1, 1), POSITIONS[(case.number + more) % 3], side) for more, side in enumerate(sides)]
    cuts = all_cuts(case)
    first = case.number * 7 % len(cuts)
    return [cuts[(first + more * 13) % len(cuts)] for more in range(3 if case.each_backend else 1)]


def check_cuts(folder: Path, case: Case, cuts: list[Cut], tmp_path: Path, cold_operators: ColdOperators) -> None:
    """State passes through RocksDB on the sides that say so, and the answer is that of a job that is not cut."""
    rows = {"flowsql.source.batch-rows": 16}
    session = session_of(folder, case)
    table = folded(run_whole(session.graph(case.sql, 1, **rows))["collect"])
    written: set[type] = set()
    wanted: set[type] = set()
    for cut in cuts:
        (before, after), position, sides = cut
        backends = iter(sides)

        def graph(parallelism: int, backends: Any = backends) -> JobGraph:
            return session.graph(case.sql, parallelism, **rows, **BACKENDS[next(backends)])

        cold_operators.clear()
        found = run_cut(graph, (before, after), position, folder=tmp_path / f"{before}-{after}-{'-'.join(sides)}")
        assert folded(found.rows("collect")) == table, cut
        # Where all rows came before the cut, the second job may have nothing to write.
        jobs = zip((before, after), sides, (True, position < ROWS), strict=True)
        graphs = [session.graph(case.sql, each) for each, side, writes in jobs if side == "rocksdb" and writes]
        written |= cold_operators.written()
        wanted |= set().union(*map(surely_written, graphs))
    # A cut may come before rows, or a full mini-batch, get to an operator: among all cuts of a query one does not.
    assert written >= wanted or (written and len(cuts) < len(all_cuts(case)))


def test_every_operator_is_cut_on_rocksdb(folder: Path) -> None:
    """A new operator needs a query in ``cut_queries.txt``, or a cut that is named in ``CUT_ELSEWHERE``."""
    sides: dict[type, set[tuple[str, str]]] = {}
    seen: set[type] = set()
    for case in QUICK_CASES:
        session = session_of(folder, case)
        for parallelism, _, pair in quick_cuts(case):
            before, after = (session.graph(case.sql, each) for each in parallelism)
            seen |= {type(node.spec) for vertex in after.vertices for node in vertex.operators}
            for spec in stateful(before) & stateful(after):
                sides.setdefault(spec, set()).add(pair)
    with_state = {spec for spec, found in registry._CLASSES.items() if found.stateful}
    assert seen == set(registry._CLASSES) - set(WHOLE_CUT_ELSEWHERE) - IN_BATCH_MODE
    assert sides.keys() == with_state - set(CUT_ELSEWHERE)
    assert all(pairs == set(SIDES) for pairs in sides.values()), sides
    assert {pair for case in QUICK_CASES for pair, _, _ in quick_cuts(case)} >= set(RESCALED)
    for path, test in CUT_ELSEWHERE.values():
        assert f"def {test}(" in (Path(__file__).parents[1] / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("case", QUICK_CASES, ids=lambda case: f"{case.number}")
def test_state_in_rocksdb_survives_the_cut(
    folder: Path, case: Case, tmp_path: Path, cold_operators: ColdOperators
) -> None:
    check_cuts(folder, case, quick_cuts(case), tmp_path, cold_operators)


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}")
def test_state_in_rocksdb_survives_every_cut(
    folder: Path, case: Case, tmp_path: Path, cold_operators: ColdOperators
) -> None:
    check_cuts(folder, case, all_cuts(case), tmp_path, cold_operators)


#: Each query with keyed state and the rows of its batches; those that ``make chaos`` takes alone.
SIZES: Final = [
    pytest.param(
        case, rows, id=f"{case.number}-{rows}", marks=() if (case.number + place) % 12 == 0 else pytest.mark.nightly
    )
    for case in QUICK_CASES
    for place, rows in enumerate(BATCH_ROWS)
]


@pytest.mark.parametrize(("case", "rows"), SIZES)
def test_batches_of_any_size_make_the_same_answer_on_rocksdb(
    folder: Path, case: Case, rows: int, cold_operators: ColdOperators
) -> None:
    session = session_of(folder, case)
    sizes = {"flowsql.source.batch-rows": rows, "flowsql.network.batch-rows": rows}
    wanted = run_whole(session.graph(case.sql, 1))["collect"]
    graph = session.graph(case.sql, 1, **sizes, **COLD)
    answer = run_whole(graph)["collect"]
    assert folded(answer) == folded(wanted)
    assert changelog(case, graph, answer) == changelog(case, graph, wanted)
    assert stateful(graph) >= cold_operators.written() >= surely_written(graph)
