"""The differential fuzzer over fixed worlds (``make fuzz`` takes others), and that it finds what differs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.graph.job import JobGraph
from flowsql_runtime.operators.bounded.base import BoundedOperator
from tests.nightly import by_night

from .draws import Draws
from .expressions import Expressions, reference
from .order import changes_differ, one_order
from .queries import Queries
from .scripts import read, run, script_of
from .session import Bound, Changes, Session
from .shrink import Shrinker
from .sql import Column, Type
from .tables import Tables
from .variations import Variation
from .world import Case, run_world

WORLDS = tuple(range(1000, 1012))
#: Those that do not wait for the night: twenty seconds on a core.
OFTEN = WORLDS[:4]
QUERIES = 40


@pytest.mark.parametrize("seed", by_night(WORLDS, lambda seed: seed in OFTEN))
def test_a_query_has_one_answer(seed: int) -> None:
    report = run_world(seed, QUERIES)
    small = [Shrinker(finding, tries=100).shrink() for finding in report.findings[:2]]
    assert not small, "\n".join(f"{finding.fault.text}\n{script_of(finding, None)}" for finding in small)
    assert report.judged["variation"] == report.queries > 0.9 * QUERIES
    assert report.judged["duckdb"] > 0.5 * QUERIES
    assert report.judged["batch"] > 0.4 * QUERIES


def test_a_seed_makes_the_same_queries() -> None:
    assert Tables(7).draw() == Tables(7).draw()
    tables = Tables(7).draw()
    query = Queries(Draws(7), tables).query(3)
    assert Queries(Draws(7), tables).query(3) == query
    assert Queries(Draws(None, query.draws), tables).query(3) == query


def test_all_operators_are_drawn_and_most_queries_have_a_twin() -> None:
    tables = Tables(7).draw()
    queries = [Queries(Draws(seed), tables).query(3) for seed in range(1500)]
    used: Counter[str] = sum((query.used for query in queries), Counter())
    wanted = {
        *("SELECT", "WHERE", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "DISTINCT"),
        *("GROUP BY", "HAVING", "FILTER", "COUNT DISTINCT", "ROLLUP", "CUBE", "GROUPING SETS", "UNNEST", "total"),
        *("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "self join", "lookup join", "temporal join", "LIMIT"),
        *(
            "IN",
            "NOT IN",
            "LATERAL",
            "EXISTS",
            "NOT EXISTS",
            "scalar query",
            "VIEW",
            "WITH",
            "Top-N",
            "Top-N with number",
        ),
        *("TUMBLE", "HOP", "CUMULATE", "SESSION", "window aggregate", "window Top-N", "window deduplicate"),
        *("window JOIN", "window LEFT JOIN", "window SEMI", "window ANTI", "OVER", "OVER without time", "deduplicate"),
        *("TO_CHANGELOG", "FROM_CHANGELOG", "BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP"),
        *("interval JOIN", "interval LEFT JOIN", "interval RIGHT JOIN", "interval FULL JOIN"),
    }
    assert wanted <= {name for name, count in used.items() if count}
    assert sum(query.duck() is not None for query in queries) > 0.7 * len(queries)


def _losing_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 7 rows lose each change that brings a row with a 7."""
    changes = Bound.changes

    def lossy(self: Bound, variation: Variation) -> list[tuple[Any, ...]]:
        found = changes(self, variation)
        if variation.batch_rows != 7:
            return found
        return [change for change in found if change[0] != "+I" or 7 not in change]

    monkeypatch.setattr(Bound, "changes", lossy)


def rows(case: Case) -> int:
    """Rows of the tables that the query names."""
    named = case.query().tables
    return sum(len(table.events) for table in case.tables if table.name in named)


def test_a_difference_is_found_and_shrinks_to_a_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        _losing_rows(patch)
        found = next(
            finding
            for seed in range(50, 90)
            for finding in run_world(seed, 20).findings
            if finding.case.variation.cut is None
        )
        small = Shrinker(found, tries=120).shrink()
        assert small.fault.kind == found.fault.kind
        query = small.case.query()
        assert len(query.flink()) <= len(found.case.query().flink())
        assert rows(small.case) < rows(found.case) // 2
        text = script_of(small, None)
        with pytest.raises(AssertionError):
            run(read(text), tmp_path / "broken")
    run(read(text), tmp_path / "mended")


def test_a_variation_is_read_as_it_was_written() -> None:
    written = Variation(batch_rows=7, backend="rocksdb", mini_batch=5, split=True, cut=-3, after=2)
    assert Variation.read(str(written)) == written
    assert Variation.read(str(Variation())) == Variation()
    assert len(written.simpler()) == 6
    assert written not in written.simpler()
    of_batch = Variation(parallelism=2, phases="TWO_PHASE", batch=True, disabled="HashAgg,NestedLoopJoin", room=200)
    assert Variation.read(str(of_batch)) == of_batch == of_batch.in_batch()
    assert of_batch.in_streaming() == Variation(parallelism=2, phases="TWO_PHASE", batch=True)


def test_batch_mode_has_other_operators_and_less_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spaces: list[str] = []
    space = BoundedOperator.space.fget
    assert space is not None
    monkeypatch.setattr(BoundedOperator, "space", property(lambda self: spaces.append(self.ctx.name) or space(self)))
    session = Session(tmp_path)
    session.execute("CREATE VIEW t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c'), (1, 'd')) AS v(k, s)")
    query = session.query("SELECT l.k, COUNT(*) FROM t AS l JOIN t AS r ON l.s = r.s GROUP BY l.k", batch=True)
    plain, wanted = Variation(batch=True), [("+I", 1, 2), ("+I", 2, 1), ("+I", 3, 1)]
    assert sorted(query.changes(plain)) == wanted
    assert not spaces
    assert sorted(query.changes(replace(plain, room=1))) == wanted
    assert len(set(spaces)) > 1
    other = replace(plain, disabled="HashAgg,ShuffleHashJoin,BroadcastHashJoin,NestedLoopJoin", blocking=True)
    assert _operators(query.graph(other)) != _operators(query.graph(plain))
    assert sorted(query.changes(other)) == wanted


def _operators(graph: JobGraph) -> list[str]:
    return [str(node.spec) for vertex in graph.vertices for node in vertex.operators]


_T = "CREATE TABLE t (k INT, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
_OVER = "SUM(n) OVER (PARTITION BY k ORDER BY ts)"
_CHANGES: Changes = [("+I", 1, 5), ("+I", 2, 7), ("+I", 1, 6)]
_KEYS_SWAPPED: Changes = [_CHANGES[1], _CHANGES[0], _CHANGES[2]]
_WITHIN_A_KEY: Changes = [_CHANGES[2], _CHANGES[1], _CHANGES[0]]
_COLD_CUT = Variation(backend="rocksdb", cut=3)


@pytest.mark.parametrize(
    ("select", "variation", "changes", "differ"),
    [
        (f"SELECT k, {_OVER} FROM t", _COLD_CUT, _CHANGES, False),
        (f"SELECT k, {_OVER} FROM t", _COLD_CUT, _KEYS_SWAPPED, False),
        (f"SELECT k, {_OVER} FROM t", _COLD_CUT, _WITHIN_A_KEY, True),
        (f"SELECT k, {_OVER} FROM t", _COLD_CUT, _CHANGES[:2], True),
        (f"SELECT n, {_OVER} FROM t", _COLD_CUT, _WITHIN_A_KEY, False),
        (f"SELECT k, {_OVER} FROM t", Variation(cut=3), _KEYS_SWAPPED, False),
        # Not given back by a snapshot, of one key, or at no moment: every change has its place.
        (f"SELECT k, {_OVER} FROM t", Variation(backend="rocksdb"), _KEYS_SWAPPED, True),
        ("SELECT k, SUM(n) OVER (ORDER BY ts) FROM t", _COLD_CUT, _KEYS_SWAPPED, True),
        ("SELECT k, SUM(n) FROM t GROUP BY k", _COLD_CUT, _KEYS_SWAPPED, True),
    ],
)
def test_changes_of_each_key_have_their_order(
    select: str, variation: Variation, changes: Changes, differ: bool, tmp_path: Path
) -> None:
    session = Session(tmp_path)
    session.execute(_T, "streaming")
    graph = session.query(select).graph(Variation())
    assert one_order(graph)
    assert (changes_differ(graph, variation, _CHANGES, changes) is not None) is differ


def test_a_time_attribute_stays_one_under_another_name() -> None:
    time = Column("ts", Type.TIMESTAMP, rowtime=True)
    assert reference("t", time).column("x1").rowtime
    drawn = [Expressions(Draws(seed), [reference("t", time)]).of(Type.TIMESTAMP) for seed in range(40)]
    assert {made.rowtime for made in drawn if made.sql.flink == "t.ts"} == {True}
    # What is computed from it is none: rows may be ordered by it, and nothing is late.
    assert {made.rowtime for made in drawn if made.sql.flink != "t.ts"} == {False}
