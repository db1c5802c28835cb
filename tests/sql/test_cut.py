"""Real SQL, run whole and cut in two at any parallelism, from batches of any size: the answers are the same."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from flowsql.session_zone import session_zone
from flowsql.table.expression.expression import Expression
from flowsql.table.expressions import call, col, row_interval
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.udf import TableAggregateFunction, udtaf
from flowsql.table.window import Slide
from flowsql_core import column_bytes
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.graph import bounded_specs
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.python_specs import PythonGroupAggregateSpec, PythonGroupTableAggregateSpec
from flowsql_core.graph.rank_specs import WindowDeduplicateSpec, WindowRankSpec
from flowsql_core.graph.specs import (
    ConstraintEnforcerSpec,
    SinkConflictsSpec,
    SinkMaterializerSpec,
    SinkSpec,
    WindowAggregateSpec,
)
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.planner import Planner
from flowsql_runtime.checkpoint.layout import new_states
from flowsql_runtime.operators import registry
from flowsql_runtime.python.options import BUNDLE_SIZE
from flowsql_runtime.task.chain import OperatorOutput
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.testing.cut import run_cut, run_whole

from .process_functions import Visiting, beside, counted_up, newest, numbered, told

ROWS: Final = 180
#: All (before, after, rows that each reader emits before the cut); each query takes some, all queries take all.
CUTS: Final = tuple(itertools.product((1, 2, 3, 4), (1, 2, 3, 4), (0, 37, 90, ROWS)))
PARALLEL_CUTS_PER_QUERY: Final = 2
BATCH_ROWS: Final = (1, 7, 65_536)

#: Operators that no query of the file reaches: the test that cuts them.
CUT_ELSEWHERE: Final = {
    SinkSpec: ("sql/test_cut.py", "test_files_hold_every_row_once_after_a_cut"),
    ConstraintEnforcerSpec: ("sql/test_cut.py", "test_files_hold_every_row_once_after_a_cut"),
    SinkMaterializerSpec: ("runtime/operators/test_sink_keys.py", "test_a_cut_at_any_parallelism_changes_nothing"),
    SinkConflictsSpec: ("runtime/operators/test_sink_keys.py", "test_a_cut_at_any_parallelism_changes_nothing"),
}
#: Operators of batch mode, which takes no checkpoints.
IN_BATCH_MODE: Final = {spec for spec in registry._CLASSES if spec.__module__ == bounded_specs.__name__}

MINI_BATCH: Final = "table.exec.mini-batch.enabled"


Changes = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A query, the options it runs with, and what the file says of it."""

    number: int
    sql: str
    options: dict[str, str]
    serial: bool
    each_backend: bool
    slow: bool


def read_cases() -> list[Case]:
    """The blocks of the file beside this one."""
    cases: list[Case] = []
    for block in (Path(__file__).parent / "cut_queries.txt").read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        head = lines.pop(0)[3:] if lines and lines[0].startswith("-- ") else ""
        pairs = [pair.partition("=") for pair in head.split(",") if "=" in pair]
        options = {key.strip(): value.strip() for key, _, value in pairs}
        words = [word.strip() for word in head.split(",")]
        if lines:
            said = ["serial" in words, "each backend" in words, "slow" in words]
            cases.append(Case(len(cases), "\n".join(lines), options, *said))
    return cases


CASES: Final = read_cases()
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}")


def _click(number: int, draw: random.Random, seconds: float) -> list[str]:
    who = draw.choice(["ann", "bob", "cat", "dan", "eve", "", "fay"])
    n = draw.choice([*map(str, range(10)), ""])
    price = f"{draw.randrange(1, 5000) / 100:.2f}"
    score = f"{draw.randrange(1000) / 8}"
    stamp = f"2024-01-01 10:{int(seconds) // 60:02}:{seconds % 60:06.3f}"
    return [str(number), who, n, price, score, draw.choice("abcd"), stamp]


def _clicks(path: Path, first: int, rows: int, seed: int, *, late: bool = False) -> None:
    """Rows over ten minutes of event time, up to 8 s out of order; of the late ones every 13th is a minute behind."""
    draw = random.Random(seed)
    lines = []
    for row in range(rows):
        seconds = 70 + row * 520 / rows + draw.randrange(8000) / 1000
        if late and row % 13 == 7:
            seconds -= 65
        lines.append(",".join(_click(first + row, draw, seconds)) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of all tables."""
    made = tmp_path_factory.mktemp("tables")
    _clicks(made / "clicks.csv", 0, ROWS, 1)
    _clicks(made / "late.csv", 0, ROWS, 2, late=True)
    (made / "parts").mkdir()
    for part in range(3):
        _clicks(made / "parts" / f"{part}.csv", 1000 * part, ROWS // 2, 10 + part)
    draw = random.Random(4)
    sales = [
        {"id": row, "item": draw.choice(["ann", "bob", "cat", "zoe", None]), "amount": draw.choice([None, 1, 4, 7, 8])}
        for row in range(150)
    ]
    (made / "sales.json").write_text("".join(json.dumps(row) + "\n" for row in sales), encoding="utf-8")
    _changes(made / "stock.json")
    return made


def _changes(path: Path) -> None:
    """Changes of 40 keys, some of them told twice."""
    draw = random.Random(5)
    table: dict[int, dict[str, Any]] = {}
    lines: list[str] = []
    while len(lines) < ROWS:
        key = draw.randrange(40)
        row = {"id": key, "who": draw.choice(["ann", "bob", None]), "n": draw.choice([None, *range(9)]), "l": [key] * 2}
        before = table.pop(key, None)
        if before is not None and draw.randrange(4) == 0:
            event = {"before": before, "after": None, "op": "d"}
        else:
            table[key] = row
            event = {"before": before, "after": row, "op": "c" if before is None else "u"}
        lines += [json.dumps(event) + "\n"] * draw.choice([1, 1, 1, 2])
    path.write_text("".join(lines), encoding="utf-8")


#: Pairs that came and did not go, as text: what is taken back is looked for among what was kept.
BAG: Final = """
from flowsql.table import ListView, MapView
from flowsql.table.udf import AggregateFunction

class Bag(AggregateFunction):
    def create_accumulator(self):
        return [MapView(), ListView(), 0]

    def accumulate(self, kept, tag, n):
        kept[0][tag] = kept[0].get(tag) + 1 if kept[0].contains(tag) else 1
        kept[1].add(n)
        kept[2] += 1

    def retract(self, kept, tag, n):
        kept[0].put(tag, kept[0].get(tag) - 1)
        if not kept[0].get(tag):
            kept[0].remove(tag)
        numbers = list(kept[1].get())
        numbers.remove(n)
        kept[1].clear()
        kept[1].add_all(numbers)
        kept[2] -= 1

    def merge(self, kept, others):
        for tags, numbers, count in others:
            for tag, times in tags.items():
                kept[0].put(tag, times + (kept[0].get(tag) if kept[0].contains(tag) else 0))
            kept[1].add_all(list(numbers))
            kept[2] += count

    def get_value(self, kept):
        numbers = sorted(kept[1], key=lambda n: (n is None, n))
        return f"{sorted(kept[0].items(), key=str)} {numbers} {kept[2]}"

    def get_result_type(self):
        return "STRING"

    def get_accumulator_type(self):
        return "ROW<tags MAP<STRING, INT>, numbers ARRAY<INT>, n INT>"
"""


class Extremes(TableAggregateFunction):
    """The least and the greatest two numbers: none, one or two rows."""

    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        if args[0] is not None:
            accumulator.append(args[0])
            accumulator.sort()

    def emit_value(self, accumulator: list[int]) -> Iterable[Any]:
        for place in range(min(2, len(accumulator))):
            yield "ab"[place], accumulator[place], accumulator[-1 - place]


class Session:
    """Makes the job of a statement at any parallelism."""

    def __init__(self, folder: Path, options: dict[str, str]) -> None:
        self._environment = TableEnvironment.create()
        config = self._environment.get_config().set("table.local-time-zone", "UTC")
        for key, value in options.items():
            config.set(key, value)
        columns = (
            "id INT, who STRING, n INT, price DECIMAL(8, 2), score DOUBLE, tag STRING, ts TIMESTAMP(3), "
            "WATERMARK FOR ts AS ts - INTERVAL '10' SECOND"
        )
        csv = "'connector' = 'filesystem', 'format' = 'csv', 'csv.null-literal' = '', 'path' = '{}'"
        for name, path, more in [
            ("clicks", "clicks.csv", ""),
            ("late", "late.csv", ", 'scan.parallelism' = '1'"),
            ("parts", "parts", ""),
        ]:
            self.execute(f"CREATE TABLE {name} ({columns}) WITH ({csv.format(folder / path)}{more})")
        csv_parts = csv.format(folder / "parts")
        self.execute(f"CREATE TABLE tags ({columns}, PRIMARY KEY (tag) NOT ENFORCED) WITH ({csv_parts})")
        self.execute(
            "CREATE TEMPORARY SYSTEM FUNCTION labelled AS $$\n"
            "def labelled(who: str | None, n: int | None) -> str:\n    return f'{who}/{n}'\n$$ LANGUAGE PYTHON"
        )
        self.execute(
            "CREATE TEMPORARY SYSTEM FUNCTION tripled AS $$\nfrom flowsql.table.udf import udf\n\n"
            "tripled = udf(lambda n: 3 * n, result_type='BIGINT', func_type='pandas')\n$$ LANGUAGE PYTHON"
        )
        self.execute(
            "CREATE TEMPORARY SYSTEM FUNCTION asked AS $$\nimport asyncio\n\n"
            "async def asked(n: int | None) -> int | None:\n    await asyncio.sleep(0.001 * ((n or 0) % 3))\n"
            "    return n\n$$ LANGUAGE PYTHON"
        )
        self.execute(
            "CREATE TEMPORARY SYSTEM FUNCTION spread AS $$\nfrom flowsql.table.udf import udaf\n\n"
            "spread = udaf(lambda n, tag: f'{sorted(zip(tag, n.fillna(-1).astype(int)))}', result_type='STRING', "
            "func_type='pandas')\n$$ LANGUAGE PYTHON"
        )
        self.execute(f"CREATE TEMPORARY SYSTEM FUNCTION bag AS $$\n{BAG}$$ LANGUAGE PYTHON")
        for function in (Visiting, beside, numbered, newest, told, counted_up):
            self._environment.create_temporary_system_function(function.name, function)
        extremes = udtaf(Extremes(), "INT", "ROW<tag STRING, low INT, high INT>", "ARRAY<INT>")
        parts = self._environment.from_path("parts")
        rows = parts.group_by(col("who")).flat_aggregate(extremes(col("n")).alias("place", "low", "high"))
        self._environment.create_temporary_view("extremes", rows.select(col("*")))
        timed = self._environment.sql_query("SELECT who, tag, n, PROCTIME() AS p FROM clicks")
        counted = timed.window(Slide.over(row_interval(5)).every(row_interval(2)).on(col("p")).alias("w"))
        rows = counted.group_by(col("w"), col("who")).select(col("who"), *self._in_counted())
        self._environment.create_temporary_view("counted", rows)
        rows = counted.group_by(col("w"), col("who")).select(col("who"), call("bag", col("tag"), col("n")).alias("b"))
        self._environment.create_temporary_view("counted_bags", rows)
        self.execute(
            "CREATE VIEW tens AS SELECT who, window_time AS wt, COUNT(*) AS c, SUM(n) AS s FROM "
            "TABLE(TUMBLE(TABLE late, DESCRIPTOR(ts), INTERVAL '10' SECOND)) "
            "GROUP BY who, window_start, window_end, window_time"
        )
        self.execute(
            "CREATE TABLE sales (id INT, item STRING, amount INT) "
            f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{folder / 'sales.json'}')"
        )

        self.execute(
            "CREATE TABLE stock (id INT, who STRING, n INT, l ARRAY<INT>, PRIMARY KEY (id) NOT ENFORCED) WITH ("
            "'connector' = 'filesystem', 'format' = 'debezium-json', 'scan.parallelism' = '1', "
            f"'path' = '{folder / 'stock.json'}')"
        )

    def _in_counted(self) -> list[Expression]:
        n, tag = col("n"), col("tag")
        return [n.sum.alias("s"), n.count.alias("c"), n.max.alias("m"), tag.count.distinct.alias("d")]

    def execute(self, sql: str) -> None:
        """Run a statement to its end."""
        self._environment.execute_sql(sql).wait()

    def rows(self, table: str) -> Counter[Hashable]:
        """What a table holds."""
        with self._environment.execute_sql(f"SELECT * FROM {table}").collect() as rows:
            return Counter(frozen(list(row)) for row in rows)

    def graph(self, sql: str, parallelism: int, **options: object) -> JobGraph:
        """The job of a query (collected as ``collect``) or an INSERT."""
        environment = self._environment
        layer = {"parallelism.default": str(parallelism)} | {key: str(value) for key, value in options.items()}
        zone = {LOCAL_TIME_ZONE.key: session_zone(environment.configuration)}
        configuration = environment.configuration.with_layer(zone | layer)
        source = Source(sql)
        bound = bind_statement(parse_statement(source), BindContext(environment.catalogs, configuration, source))
        if isinstance(bound, op.Insert):
            return Planner(configuration).plan_inserts((bound,))
        assert isinstance(bound, op.Query)
        return Planner(configuration).plan_query(bound, object())


@functools.cache
def _shared(folder: Path, options: frozenset[tuple[str, str]]) -> Session:
    return Session(folder, dict(options))


def session_of(folder: Path, case: Case) -> Session:
    """A session for the query, which all queries with the same options share: its tables take longer than most jobs."""
    return _shared(folder, frozenset(case.options.items()))


def frozen(value: Any) -> Hashable:
    """A value that can be counted; a multiset or map without its order."""
    match value:
        case list() | tuple():
            if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
                return frozenset(map(frozen, value))
            return tuple(map(frozen, value))
        case dict():
            return frozenset((frozen(key), frozen(item)) for key, item in value.items())
    return value  # type: ignore[no-any-return]


def folded(changes: Iterable[tuple[Any, ...]]) -> Counter[Hashable]:
    """The table that changes add up to."""
    table: Counter[Hashable] = Counter()
    for kind, *values in changes:
        table[frozen(values)] += 1 if kind in ("+I", "+U") else -1
    assert not -table, "a row was taken back that was never there"
    return +table


def changelog(case: Case, graph: JobGraph, changes: Changes) -> list[Any]:
    """The changes as far as their order is promised at parallelism 1.

    Two inputs run in threads of their own: one order for each key only, which the table shows. Mini-batches may cut
    anywhere, and a cut ends the bundle of a Python aggregate. Keys of one window close together: windows in order, its
    rows in any; queries of rankings name the window first.
    """
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    bundles = any(isinstance(node.spec, PythonGroupAggregateSpec | PythonGroupTableAggregateSpec) for node in nodes)
    if bundles and case.options.get(BUNDLE_SIZE.key) != "1":
        return []
    if MINI_BATCH in case.options or any(node.number_of_inputs > 1 for node in nodes):
        return []
    if any(isinstance(node.spec, WindowAggregateSpec) for node in nodes):
        return [
            (window, Counter(map(frozen, rows))) for window, rows in itertools.groupby(changes, lambda row: row[1:3])
        ]
    if any(isinstance(node.spec, WindowRankSpec | WindowDeduplicateSpec) for node in nodes):
        return [(end, Counter(map(frozen, rows))) for end, rows in itertools.groupby(changes, lambda row: row[1])]
    return changes


def cuts_of(case: Case) -> list[tuple[int, int, int]]:
    """A cut at parallelism 1, and the next ones of all cuts.

    Mini-batches have one operator at parallelism 1 and two above: state moves between both forms, both ways.
    """
    serial = [cut for cut in CUTS if cut[:2] == (1, 1)]
    parallel = [cut for cut in CUTS if cut[:2] != (1, 1)]
    # Neighbours differ in the position: a stride that is coprime to the length visits all.
    first = case.number * PARALLEL_CUTS_PER_QUERY
    if case.serial:
        return serial
    taken = [parallel[(first + i) * 13 % len(parallel)] for i in range(PARALLEL_CUTS_PER_QUERY)]
    split = [(1, 3, 90), (3, 1, 90), (2, 3, 37)] if MINI_BATCH in case.options else []
    return [serial[case.number % len(serial)], *taken, *split]


def test_all_cuts_are_taken() -> None:
    assert {cut for case in CASES for cut in cuts_of(case)} == set(CUTS)


#: Columns that stores add themselves.
OWN: Final = {"namespace", "stamp", "associations", "count", "value", "time", "at", "sign", "empty"}


def check_names(graph: JobGraph) -> None:
    """An operator that cannot say what its state is would take over that of another query."""
    states = new_states(graph)
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    assert set(states) == {node.uid for node in nodes if registry.operator_class(node.spec).stateful}
    for state in states.values():
        for column in (column for table in state.layout.tables.values() for column in table.columns):
            assert column.meaning != column.stored or column.stored in OWN | {"v:rows"}, column


def test_all_operators_of_a_query_are_cut(folder: Path) -> None:
    """A new operator needs a query here, or a cut that is named in ``CUT_ELSEWHERE``."""
    specs = set()
    for case in CASES:
        session = session_of(folder, case)
        for parallelism in (1, 2):
            graph = session.graph(case.sql, parallelism)
            specs |= {type(node.spec) for vertex in graph.vertices for node in vertex.operators}
            check_names(graph)
    assert specs == set(registry._CLASSES) - set(CUT_ELSEWHERE) - IN_BATCH_MODE
    for path, test in CUT_ELSEWHERE.values():
        assert f"def {test}(" in (Path(__file__).parents[1] / path).read_text(encoding="utf-8")


@each_case
def test_a_query_survives_the_cut(tmp_path: Path, folder: Path, case: Case) -> None:
    """The cut at parallelism 1 goes through memory, the others through files, as a job of a user does."""
    session = session_of(folder, case)
    # 16 rows to a batch, so that a cut falls into a batch and there are batches on both sides.
    rows = {"flowsql.source.batch-rows": 16}
    graph = session.graph(case.sql, 1, **rows)
    whole = run_whole(graph)["collect"]
    table = folded(whole)
    assert table
    for before, after, position in cuts_of(case):
        disk = None if (before, after) == (1, 1) else tmp_path / f"{before}-{after}-{position}"
        cut = run_cut(lambda p: session.graph(case.sql, p, **rows), (before, after), position, folder=disk)
        found = cut.rows("collect")
        at = f"parallelism {before} -> {after}, cut at {position}"
        assert folded(found) == table, at
        if (before, after) == (1, 1):
            assert changelog(case, graph, found) == changelog(case, graph, whole), at


@pytest.mark.parametrize(
    ("case", "sizes"),
    [
        pytest.param(case, sizes, id=f"{case.number}-{len(sizes)}", marks=marks)
        for case in CASES
        for sizes, marks in (
            # Of the two small sizes each query has one here.
            ((BATCH_ROWS[case.number % 2], BATCH_ROWS[-1]), ()),
            (BATCH_ROWS, pytest.mark.nightly),
        )
    ],
)
def test_batches_of_any_size_make_the_same_answer(folder: Path, case: Case, sizes: tuple[int, ...]) -> None:
    session = session_of(folder, case)
    answers: list[Changes] = []
    for rows in sizes:
        graph = session.graph(case.sql, 1, **{"flowsql.source.batch-rows": rows, "flowsql.network.batch-rows": rows})
        answers.append(run_whole(graph)["collect"])
    for rows, answer in zip(sizes, answers, strict=True):
        assert folded(answer) == folded(answers[-1]), rows
        assert changelog(case, graph, answer) == changelog(case, graph, answers[-1]), rows


#: What repeats rows or reads texts from state.
REPEATING: Final = re.compile(
    "JOIN|UNNEST|LISTAGG|COLLECT|JSON_|ARRAY_AGG|GROUPING SETS|HOP|MIN\\(tag|_VALUE|rn (<|BETWEEN)"
)


@pytest.mark.parametrize(
    "case", [case for case in CASES if REPEATING.search(case.sql)], ids=lambda case: f"{case.number}"
)
def test_columns_too_large_for_one_array_flow_in_parts(
    folder: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays of 400 bytes at most: what operators repeat or read from state is cut; the answer is the same."""
    session = session_of(folder, case)
    whole = folded(run_whole(session.graph(case.sql, 1))["collect"])
    collect = OperatorOutput.collect

    def checked(output: OperatorOutput, batch: ChangelogBatch) -> None:
        for column in batch.columns:
            if isinstance(column, pa.Array):
                assert column.type == column_bytes.usual_type(column.type)
        collect(output, batch)

    monkeypatch.setattr(column_bytes, "MOST_BYTES", 400)
    monkeypatch.setattr(OperatorOutput, "collect", checked)
    found = run_cut(lambda p: session.graph(case.sql, p), (1, 1), 90).rows("collect")
    assert folded(found) == whole


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    ("cut", "partitioned"),
    [
        ((1, 1, 50), True),
        ((1, 4, 90), False),
        ((2, 1, 0), True),
        ((3, 2, 37), True),
        ((3, 2, 37), False),
        ((4, 3, ROWS), False),
    ],
    ids=str,
)
def test_files_hold_every_row_once_after_a_cut(
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    format_: str,
    cut: tuple[int, int, int],
    partitioned: bool,
) -> None:
    session = Session(folder, {"table.exec.sink.not-null-enforcer": "DROP"})
    by = "PARTITIONED BY (tag) " if partitioned else ""
    null = ", 'csv.null-literal' = 'none'" if format_ == "csv" else ""
    session.execute(
        f"CREATE TABLE copy (id INT, who STRING NOT NULL, price DECIMAL(8, 2), tag STRING) {by}"
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'copy'}', 'format' = '{format_}'{null})"
    )
    visible: list[tuple[int, int]] = []
    commit_all = JobServices.commit_all

    def parts() -> int:
        return len(list((tmp_path / "copy").rglob("part-*")))

    def commit(services: JobServices) -> None:
        shown = parts()
        commit_all(services)
        visible.append((shown, parts()))

    monkeypatch.setattr(JobServices, "commit_all", commit)
    select = "SELECT id, who, price, tag FROM parts"
    options = {"flowsql.source.batch-rows": 16}
    run_cut(lambda p: session.graph(f"INSERT INTO copy {select}", p, **options), cut[:2], cut[2])
    (_, first), (shown, _) = visible
    assert visible[0][0] == 0, "nothing is visible before the first commit"
    assert shown == first, "nothing more is visible before the second commit"
    # A part of a row format goes on behind the cut, unless all rows came before it.
    assert (first > 0) == ((cut[2] > 0 and format_ == "parquet") or cut[2] == ROWS)
    assert not list((tmp_path / "copy").rglob(".*")), "no hidden part is left"
    wanted = session.rows(f"({select} WHERE who IS NOT NULL)")
    assert session.rows("copy") == wanted
    assert wanted != session.rows(f"({select})"), "some rows are dropped"
