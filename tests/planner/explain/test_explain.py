"""The text of EXPLAIN: sections, trees, details, expressions."""

from __future__ import annotations

import datetime
import decimal
import json

import pytest

from flowsql_core.expr import Call, Case, Cast, Expr, InputRef, Literal
from flowsql_core.types import logical as t
from flowsql_planner.bind import operations as op
from flowsql_planner.logical.expression_text import ExpressionPrinter, duration_text
from flowsql_planner.planner import Planner
from flowsql_planner.traits.cost import scientific
from tests.planner.bind.bind_script import Session

TABLES = """
CREATE TABLE a (id INT, k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/a.csv', 'format' = 'csv');
CREATE TABLE b (id INT, k STRING, w BIGINT)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/b.csv', 'format' = 'csv');
CREATE TABLE pr (id INT, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE hole (id INT, n BIGINT) WITH ('connector' = 'blackhole');
"""


@pytest.fixture(scope="module")
def tables() -> Session:
    session = Session()
    for _ in session.run(TABLES):
        pass
    return session


def explain(tables: Session, *statements: str, details: tuple[str, ...] = ()) -> str:
    operations = [tables.last(sql) for sql in statements]
    planner = Planner(tables.config)
    if len(operations) == 1:
        (operation,) = operations
        assert isinstance(operation, op.Query | op.Insert)
        return planner.explain(operation, details)
    return planner.explain(op.StatementSet(tuple(one for one in operations if isinstance(one, op.Insert))), details)


def test_three_sections(tables: Session) -> None:
    assert explain(tables, "SELECT k, COUNT(*) AS n FROM b WHERE w > 1 GROUP BY k") == (
        """\
== Abstract Syntax Tree ==
LogicalAggregate(group=[{0}], n=[COUNT()])
+- LogicalProject(k=[$1])
   +- LogicalFilter(condition=[>($2, CAST(1):BIGINT NOT NULL)])
      +- LogicalTableScan(table=[[default_catalog, default_database, b]])

== Optimized Physical Plan ==
GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])
+- Exchange(distribution=[hash[k]])
   +- Calc(select=[k], where=[>(w, 1:BIGINT)])
      +- TableSourceScan(table=[[default_catalog, default_database, b, filter=[>(w, 1:BIGINT)], project=[k, w], \
metadata=[]]], fields=[k, w])

== Optimized Execution Plan ==
GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])
+- Exchange(distribution=[hash[k]])
   +- Calc(select=[k], where=[(w > 1)])
      +- TableSourceScan(table=[[default_catalog, default_database, b, filter=[>(w, 1:BIGINT)], project=[k, w], \
metadata=[]]], fields=[k, w])
"""
    )


def test_a_row_time_behind_a_join_is_a_plain_column(tables: Session) -> None:
    joined = "SELECT a.id, a.ts, b.w FROM a JOIN b ON a.id = b.id"
    numbered = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM ({joined})"
    answer = explain(tables, f"SELECT * FROM ({numbered}) WHERE n <= 2")
    assert "orderBy=[ts DESC]" in answer
    assert "ROWTIME ts" not in answer


def test_if_is_shown_as_it_is_written(tables: Session) -> None:
    answer = explain(tables, "SELECT IF(v > 3, k, 'x'), CASE WHEN v > 3 THEN k ELSE 'x' END FROM a")
    assert "IF((v > 3), k, 'x') AS EXPR$0, CASE((v > 3), k, 'x') AS EXPR$1" in answer


def test_branches_and_reuse_within_one_plan(tables: Session) -> None:
    text = explain(
        tables,
        "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM b GROUP BY k) WHERE n > 3 UNION ALL "
        "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM b GROUP BY k) WHERE n < 2",
    )
    assert text.partition("== Optimized Execution Plan ==\n")[2] == (
        """\
Union(all=[true], union=[k, n])
:- Calc(select=[k, n], where=[(n > 3)])
:  +- GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])(reuse_id=[1])
:     +- Exchange(distribution=[hash[k]])
:        +- TableSourceScan(table=[[default_catalog, default_database, b, project=[k], metadata=[]]], fields=[k])
+- Calc(select=[k, n], where=[(n < 2)])
   +- Reused(reference_id=[1])
"""
    )


def test_a_statement_set_shows_what_its_sinks_share_in_front(tables: Session) -> None:
    text = explain(
        tables,
        "INSERT INTO hole SELECT id, SUM(v) FROM a GROUP BY id",
        "INSERT INTO pr SELECT id, MAX(v) FROM a GROUP BY id",
        details=("CHANGELOG_MODE",),
    )
    physical, _, execution = text.partition("== Optimized Execution Plan ==\n")
    # Each sink has its own changelog: one asks for -U, the other does not.
    assert "select=[id, SUM(v) AS EXPR$1], changelogMode=[I,UA], netChanges=[true])" in physical
    assert "select=[id, MAX(v) AS EXPR$1], changelogMode=[I,UB,UA])" in physical
    blocks = execution.split("\n\n")
    assert [block.partition("(")[0] for block in blocks] == ["Exchange", "Sink", "Sink"]
    assert blocks[0].startswith("Exchange(distribution=[hash[id]])(reuse_id=[1])\n")
    assert all("+- Reused(reference_id=[1])" in block for block in blocks[1:])


def test_json_is_a_graph_of_the_operators(tables: Session) -> None:
    text = explain(
        tables, "INSERT INTO pr SELECT id, v FROM a UNION ALL SELECT id, w FROM b", details=("JSON_EXECUTION_PLAN",)
    )
    nodes = json.loads(text.partition("== Physical Execution Plan ==\n")[2])["nodes"]
    by_id = {node["id"]: node for node in nodes}
    sink = nodes[-1]
    assert (sink["pact"], sink["type"].partition("[")[0]) == ("Data Sink", "Sink: pr")
    # A union is no operator in Flink's graph: the sink reads both branches.
    assert [by_id[edge["id"]]["type"].partition("[")[0] for edge in sink["predecessors"]] == ["Calc", "Source: b"]
    assert {edge["ship_strategy"] for edge in sink["predecessors"]} == {"FORWARD"}


def test_cost_grows_with_the_plan(tables: Session) -> None:
    text = explain(tables, "SELECT k, SUM(w) FROM b WHERE w > 1 GROUP BY k", details=("ESTIMATED_COST",))
    lines = text.partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0].splitlines()
    assert all(": rowcount = " in line and "cumulative cost = {" in line for line in lines)
    rows = [float(line.partition("cumulative cost = {")[2].partition(" rows")[0]) for line in lines]
    assert rows == sorted(rows, reverse=True)
    assert "TableSourceScan" in lines[-1]
    assert "rowcount = 1.0E8" in lines[-1]


def test_advice_marks_what_could_be_two_phase(tables: Session) -> None:
    text = explain(tables, "SELECT k, SUM(w) FROM b GROUP BY k", details=("PLAN_ADVICE",))
    assert "== Optimized Physical Plan With Advice ==\nGroupAggregate(advice=[1], groupBy=[k]" in text
    assert "\nadvice[1]: [ADVICE] You might want to enable local-global two-phase optimization" in text
    none = explain(tables, "SELECT k FROM b", details=("PLAN_ADVICE",))
    assert "\nNo available advice...\n" in none


def test_chaining_decisions_have_reasons(tables: Session) -> None:
    text = explain(tables, "SELECT a.id FROM a JOIN b ON a.id = b.id", details=("CHAINING",))
    section = text.partition("== FlowSQL Chaining ==\n")[2]
    assert "Source: b[4] -> Join[5]: not chained (the target has 2 inputs)" in section
    assert "Source: a[1] -> WatermarkAssigner[2]: chained (forward)" in section


def test_an_unknown_detail_is_an_error(tables: Session) -> None:
    with pytest.raises(ValueError, match="NOTHING"):
        explain(tables, "SELECT 1", details=("NOTHING",))


# Expressions

_K = InputRef(0, t.STRING)
_W = InputRef(1, t.BIGINT)
_B = t.BOOLEAN


@pytest.mark.parametrize(
    ("expr", "prefix", "infix"),
    [
        (
            Call("=", (_K, Literal("x", t.STRING)), _B),
            "=(k, _UTF-16LE'x':VARCHAR(2147483647) CHARACTER SET \"UTF-16LE\")",
            "(k = 'x')",
        ),
        (Call(">", (_W, Literal(3, t.BIGINT)), _B), ">(w, 3:BIGINT)", "(w > 3)"),
        (
            Call("AND", (Call("IS NULL", (_K,), _B), Call("IS NOT NULL", (_W,), _B)), _B),
            "AND(IS NULL(k), IS NOT NULL(w))",
            "(k IS NULL AND w IS NOT NULL)",
        ),
        (Cast(_W, t.INT), "CAST(w AS INTEGER)", "CAST(w AS INTEGER)"),
        (Cast(_W, t.INT, safe=True), "TRY_CAST(w AS INTEGER)", "TRY_CAST(w AS INTEGER)"),
        (
            Case(
                (Call(">", (_W, Literal(1, t.INT)), _B),),
                (Literal("a", t.CharType(length=1)),),
                Literal("b", t.CharType(length=1)),
                t.CharType(length=1),
            ),
            "CASE(>(w, 1), _UTF-16LE'a', _UTF-16LE'b')",
            "CASE((w > 1), 'a', 'b')",
        ),
        (Literal(None, t.BIGINT), "null:BIGINT", "null:BIGINT"),
        (Literal(True, _B), "true", "true"),
        (Literal(decimal.Decimal("0.908"), t.DecimalType(precision=4, scale=3)), "0.908:DECIMAL(4, 3)", "0.908"),
        (Literal(5000, t.DayTimeIntervalType(resolution="SECOND")), "5000:INTERVAL SECOND", "5000:INTERVAL SECOND"),
        (Literal((datetime.date(2020, 1, 2) - datetime.date(1970, 1, 1)).days, t.DATE), "2020-01-02", "2020-01-02"),
        (
            Literal(1_577_836_800_123_000_000, t.TimestampType(precision=3)),
            "2020-01-01 00:00:00.123",
            "2020-01-01 00:00:00.123",
        ),
    ],
)
def test_expressions_print_as_flink_prints_them(expr: Expr, prefix: str, infix: str) -> None:
    assert ExpressionPrinter(("k", "w")).print(expr) == prefix
    assert ExpressionPrinter(("k", "w"), infix=True).print(expr) == infix


@pytest.mark.parametrize(
    ("ms", "text"), [(600_000, "10 min"), (2_000, "2 s"), (1_500, "1500 ms"), (86_400_000, "1 d"), (7_200_000, "2 h")]
)
def test_durations_print_in_their_largest_unit(ms: int, text: str) -> None:
    assert duration_text(ms) == text


@pytest.mark.parametrize(("value", "text"), [(5e7, "5.0E7"), (0.0, "0.0"), (12.0, "12.0"), (8.65e9, "8.65E9")])
def test_numbers_print_as_java_prints_doubles(value: float, text: str) -> None:
    assert scientific(value) == text


MINI_BATCH = """
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '1 s';
SET 'table.exec.mini-batch.size' = '100';
"""
PARALLEL = "SET 'parallelism.default' = '2';"
SPLIT = "SET 'table.optimizer.distinct-agg.split.enabled' = 'true';"
IN_PHASES = "SET 'table.optimizer.incremental-agg-enabled' = 'true';"
ONE_AFTER_THE_OTHER = "SET 'table.optimizer.incremental-agg-enabled' = 'false';"
ONE_PHASE = "SET 'table.optimizer.agg-phase-strategy' = 'ONE_PHASE';"
COUNTED = "SELECT k, COUNT(*) AS n FROM b GROUP BY k"
DISTINCT = "SELECT k, COUNT(DISTINCT w) AS n FROM b GROUP BY k"
WINDOWED = (
    "SELECT k, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
    "GROUP BY k, window_start, window_end"
)
WHOLE_WINDOW = (
    "LocalWindowAggregate runs inside of WindowAggregate(groupBy=[k], window=[TUMBLE(time_col=[ts], size=[1 min])], "
    "select=[k, COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end])"
)


@pytest.mark.parametrize(
    ("settings", "query", "expected"),
    [
        ("", COUNTED, ()),
        ("", WINDOWED, (WHOLE_WINDOW,)),
        (ONE_PHASE, WINDOWED, ()),
        # Rows of one task have nothing to send; those of several are folded before they travel.
        (
            MINI_BATCH,
            COUNTED,
            ("LocalGroupAggregate runs inside of GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])",),
        ),
        (MINI_BATCH + PARALLEL, COUNTED, ()),
        (MINI_BATCH + PARALLEL + SPLIT + IN_PHASES, DISTINCT, ()),
        (MINI_BATCH + SPLIT + IN_PHASES, DISTINCT, ()),
        (
            MINI_BATCH + PARALLEL + SPLIT,
            DISTINCT,
            (
                "IncrementalGroupAggregate, LocalGroupAggregate run inside of GroupAggregate(groupBy=[k], "
                "select=[k, COUNT(DISTINCT w) AS $f2_0]), which sees each row once, without buckets",
            ),
        ),
        (
            MINI_BATCH + SPLIT + ONE_AFTER_THE_OTHER,
            DISTINCT,
            (
                "LocalGroupAggregate runs inside of GroupAggregate(groupBy=[k, $f2], partialFinalType=[PARTIAL], "
                "select=[k, $f2, COUNT(DISTINCT w) AS $f2_0])",
                "LocalGroupAggregate runs inside of GroupAggregate(groupBy=[k], partialFinalType=[FINAL], "
                "select=[k, $SUM0_RETRACT($f2_0) AS $f1])",
            ),
        ),
        # What keeps its values for others than DISTINCT calls is not handed on.
        (
            MINI_BATCH + PARALLEL + SPLIT + IN_PHASES,
            "SELECT COUNT(DISTINCT w) AS n, LISTAGG(k) AS ks FROM b",
            (
                "IncrementalGroupAggregate, LocalGroupAggregate run inside of "
                "GroupAggregate(select=[COUNT(DISTINCT w) AS $f1, LISTAGG(k) AS $f2_0]), which sees each row once, "
                "without buckets",
            ),
        ),
        (MINI_BATCH, WINDOWED, (WHOLE_WINDOW,)),
        (
            MINI_BATCH,
            "SELECT k FROM b ORDER BY w LIMIT 3",
            (
                "MiniBatchAssigner(interval=[1000ms], mode=[ProcTime]) does not run: no operator above waits for its "
                "marks",
            ),
        ),
    ],
)
def test_what_runs_otherwise_is_said_and_is_so(
    tables: Session, settings: str, query: str, expected: tuple[str, ...]
) -> None:
    session = Session(catalogs=tables.catalogs)
    operation = session.last(settings + query)
    assert isinstance(operation, op.Query)
    planner = Planner(session.config)
    text = planner.explain(operation)
    assert tuple(text.partition("== FlowSQL Execution ==\n")[2].splitlines()) == expected
    planned = [line.lstrip(" +-").partition("(")[0] for line in text.partition("Execution Plan ==\n")[2].splitlines()]
    running = [
        node.name.partition("(")[0] for v in planner.plan_query(operation, object()).vertices for node in v.operators
    ]
    for phase in ("LocalWindowAggregate", "LocalGroupAggregate", "IncrementalGroupAggregate", "MiniBatchAssigner"):
        said = any(phase in line.partition(" run")[0] for line in expected)
        assert (phase in running) is (phase in planned and not said)


def test_only_operators_that_net_changes_say_so(tables: Session) -> None:
    """A join passes every change on, whoever looks; the aggregates below it do not."""
    text = explain(
        tables,
        "INSERT INTO hole SELECT x.id, x.n FROM (SELECT id, COUNT(*) AS n FROM b GROUP BY id) AS x "
        "JOIN (SELECT id, COUNT(*) AS n FROM b GROUP BY id) AS y ON x.id = y.id",
        details=("CHANGELOG_MODE",),
    )
    lines = text.partition("== Optimized Physical Plan ==\n")[2].partition("\n== ")[0].splitlines()
    assert {line.lstrip(" :+-").partition("(")[0] for line in lines if "netChanges" in line} == {"GroupAggregate"}
    assert any("Join(" in line and "changelogMode=[I,UA]" in line for line in lines)
