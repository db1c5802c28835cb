"""Python aggregates in group windows and OVER windows; PyFlink has said what they answer and refuse."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table import TableEnvironment
from flowsql.table.udf import AggregateFunction, udaf
from flowsql_core.batch import ChangelogBatch, single_watermark
from flowsql_core.errors import ExecutionError, FlowSqlError, NotSupportedYetError, PlanError
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.python_specs import PythonWindowAggregateSpec
from flowsql_core.graph.specs import WindowKind, WindowSpec
from flowsql_core.python_call import PYTHON, PythonFunction, aggregate_options
from flowsql_core.row import DELETE, INSERT
from flowsql_core.types.logical import BIGINT, STRING, Column, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness

ROWS = """a,1,1.5,2020-01-01 00:00:01,x
b,2,,2020-01-01 00:00:02,y
a,,2.5,2020-01-01 00:00:03,
a,4,3.5,2020-01-01 00:00:06,x
b,5,4.5,2020-01-01 00:00:01,z
a,6,5.5,2020-01-01 00:00:04,y
b,7,6.5,2020-01-01 00:00:12,x
a,8,7.5,2020-01-01 00:00:02,x
b,9,8.5,2020-01-01 00:00:09,y
a,1,9.5,2020-01-01 00:00:30,z
b,2,1.0,2020-01-01 00:00:11,y
a,3,,2020-01-01 00:00:31,x
"""


class Seen(AggregateFunction):
    """What happened to an accumulator, as text."""

    def create_accumulator(self) -> Any:
        return [""]

    def accumulate(self, accumulator: Any, value: Any) -> None:
        accumulator[0] += f",{value}"

    def retract(self, accumulator: Any, value: Any) -> None:
        accumulator[0] += f",-{value}"

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        for other in accumulators:
            accumulator[0] += "|" + other[0]

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]

    def get_result_type(self) -> Any:
        return "STRING"

    def get_accumulator_type(self) -> Any:
        return "ARRAY<STRING>"


class Unmerged(Seen):
    """The same without ``merge``."""

    merge = AggregateFunction.merge


def environment(folder: Path, **options: str) -> TableEnvironment:
    made = TableEnvironment.create()
    for key, value in options.items():
        made.get_config().set(key.replace("__", "-").replace("_", "."), value)
    (folder / "in.csv").write_text(ROWS, encoding="utf-8")
    made.execute_sql(
        "CREATE TABLE s (k STRING, v INT, d DOUBLE, ts TIMESTAMP(3), c STRING, p AS PROCTIME(), "
        "WATERMARK FOR ts AS ts - INTERVAL '3' SECOND) WITH ('connector' = 'filesystem', 'format' = 'csv', "
        f"'csv.null-literal' = '', 'path' = '{folder / 'in.csv'}')"
    )
    made.create_temporary_system_function("seen", udaf(Seen()))
    made.create_temporary_system_function("unmerged", udaf(Unmerged()))
    for name, function, type_ in [
        ("total", lambda v: v.sum(), "BIGINT"),
        ("joint", lambda v, d: float(v.sum() + d.sum()), "DOUBLE"),
        ("shown", lambda v: f"{list(v)}{v.dtype}{list(v.index)}{v.name}", "STRING"),
        ("lone", lambda v: None if len(v) > 1 else v.iloc[0], "STRING"),
        ("listed", lambda v: v.tolist(), "ARRAY<DOUBLE>"),
        ("wrong", lambda v: "x", "BIGINT"),
        ("fails", lambda v: v.nothing, "BIGINT"),
    ]:
        made.create_temporary_system_function(name, udaf(function, result_type=type_, func_type="pandas"))
    return made


def answers(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with made.execute_sql(query).collect() as rows:
        return sorted((tuple(row) for row in rows), key=str)


def second(text: str) -> str:
    return f"EXTRACT(SECOND FROM {text})"


TUMBLE = "TUMBLE(ts, INTERVAL '5' SECOND)"
TUMBLE_START = second("TUMBLE_START(ts, INTERVAL '5' SECOND)")


def test_a_bundle_judges_no_row_late_by_a_watermark_inside_of_it(tmp_path: Path) -> None:
    query = f"SELECT {TUMBLE_START}, k, seen(v), COUNT(*) FROM s GROUP BY k, {TUMBLE}"
    assert answers(environment(tmp_path), query) == [
        (0, "a", ",1,None,6,8", 4),
        (0, "b", ",2,5", 2),
        (10, "b", ",7,2", 2),
        (30, "a", ",1,3", 2),
        (5, "a", ",4", 1),
        (5, "b", ",9", 1),
    ]
    single = environment(tmp_path, python_fn__execution_bundle_size="1")
    assert answers(single, query) == [
        (0, "a", ",1,None,6", 3),
        (0, "b", ",2,5", 2),
        (10, "b", ",7", 1),
        (30, "a", ",1,3", 2),
        (5, "a", ",4", 1),
        (5, "b", ",9", 1),
    ]


def test_slices_of_sliding_windows_merge(tmp_path: Path) -> None:
    window = "HOP(ts, INTERVAL '4' SECOND, INTERVAL '10' SECOND)"
    query = (
        f"SELECT k, seen(v), unmerged(v), {second(window.replace('HOP', 'HOP_START', 1))} FROM s GROUP BY k, {window}"
    )
    made = environment(tmp_path)
    # One function that does not merge, and windows keep accumulators of their own.
    assert ("a", ",1,None,6,8", ",1,None,6,8", 56) in answers(made, query)
    alone = answers(made, query.replace("unmerged(v), ", ""))
    assert alone == [
        ("a", "|,1", 52),
        ("a", "|,1,3", 24),
        ("a", "|,1,3", 28),
        ("a", "|,1|,None,8|,6", 56),
        ("a", "|,1|,None,8|,6|,4", 0),
        ("a", "|,6|,4", 4),
        ("b", "|,5", 52),
        ("b", "|,5|,2", 56),
        ("b", "|,5|,2|,9", 0),
        ("b", "|,7", 12),
        ("b", "|,9|,2|,7", 4),
        ("b", "|,9|,2|,7", 8),
    ]


def test_sessions_merge_accumulators_or_keep_rows(tmp_path: Path) -> None:
    window = "SESSION(ts, INTERVAL '4' SECOND)"
    start = second(window.replace("SESSION", "SESSION_START"))
    made = environment(tmp_path)
    wanted = [("a", ",1,3", 30), ("a", ",1,None,4,6,8", 1), ("b", ",2,5", 1), ("b", ",7,9,2", 9)]
    for function in ("seen", "unmerged"):
        assert answers(made, f"SELECT k, {function}(v), {start} FROM s GROUP BY k, {window}") == wanted
    # A row between two sessions joins them.
    joined = "SELECT k, seen(v), COUNT(*) FROM s WHERE v IN (1, 6, 4) AND ts < TIMESTAMP '2020-01-01 00:01:00' GROUP BY"
    (tmp_path / "in.csv").write_text(
        "a,1,,2020-01-01 00:00:01,\na,4,,2020-01-01 00:00:06,\na,6,,2020-01-01 00:00:04,\n", encoding="utf-8"
    )
    assert answers(made, f"{joined} k, {window}") == [("a", ",4|,1,6", 3)]


def test_distinct_and_filter(tmp_path: Path) -> None:
    made = environment(tmp_path)
    query = f"SELECT {TUMBLE_START}, k, seen(DISTINCT v), seen(v) FILTER (WHERE d > 2) FROM s GROUP BY k, {TUMBLE}"
    assert (0, "a", ",1,None,6,8", ",None,6,8") in answers(made, query)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("kind", ["general", "pandas"])
def test_rows_of_windows_are_taken_back(kind: str, backend: str) -> None:
    """Rows that go leave the window; a window without rows says nothing; state follows to another parallelism."""
    function = (
        udaf(Seen()) if kind == "general" else udaf(lambda v: str(list(v)), result_type="STRING", func_type="pandas")
    )
    key, value = Column("k", BIGINT), Column("v", BIGINT)
    called = AggregateCall(
        PYTHON, (InputRef(1, BIGINT),), STRING, "s", options=aggregate_options(PythonFunction("f", "f", kind))
    )
    window = WindowSpec(kind=WindowKind.TUMBLE, size_ms=10, step_ms=10, time_index=2, processing_time=False)
    schema = (key, value, Column("ts", TimestampType(precision=3)))
    spec = PythonWindowAggregateSpec(
        (0,), (called,), window, (), schema, (key, Column("s", STRING)), input_retracts=True, merges=kind == "general"
    )
    parameters = {"python.fn-execution.bundle.size": "2", "state.backend.type": backend}
    made = OperatorHarness(spec, parallelism=2, keys=((0,),), resources={"f": function}, parameters=parameters)
    signs = np.array([INSERT, INSERT, INSERT, DELETE, INSERT, DELETE], np.uint8)
    rows = [[1, 1, 2, 1, 1, 2], [5, 6, 7, 5, 8, 7], [1, 2, 3, 1, 4, 3]]
    columns = [*(pa.array(column, pa.int64()) for column in rows[:2]), pa.array(rows[2], pa.timestamp("ms"))]
    batch = ChangelogBatch(tuple(columns), 6, signs)
    made.batch(batch.slice(0, 3))
    made = made.restored(3)
    made.batch(batch.slice(3, 6))
    made.watermark(100)
    made.end()
    assert made.rows == [("+I", 1, "[6, 8]" if kind == "pandas" else ",5,6,-5,8")]
    made.close()


@pytest.mark.parametrize("size", ["1", "2"])
def test_a_watermark_before_the_first_row_judges_it(size: str) -> None:
    """Nothing waits in front of it, so that no bundle holds it back, however many rows a bundle has."""
    key, value = Column("k", BIGINT), Column("v", BIGINT)
    called = AggregateCall(
        PYTHON, (InputRef(1, BIGINT),), STRING, "s", options=aggregate_options(PythonFunction("f", "f", "general"))
    )
    window = WindowSpec(kind=WindowKind.TUMBLE, size_ms=10, step_ms=10, time_index=2, processing_time=False)
    schema = (key, value, Column("ts", TimestampType(precision=3)))
    spec = PythonWindowAggregateSpec(
        (0,), (called,), window, (), schema, (key, Column("s", STRING)), input_retracts=False, merges=True
    )
    parameters = {"python.fn-execution.bundle.size": size}
    made = OperatorHarness(spec, keys=((0,),), resources={"f": udaf(Seen())}, parameters=parameters)
    columns = [pa.array([1, 1], pa.int64()), pa.array([5, 6], pa.int64()), pa.array([3, 15], pa.timestamp("ms"))]
    made.batch(ChangelogBatch(tuple(columns), 2, None, None, single_watermark(0, 20)))
    made.watermark(100)
    made.end()
    assert made.rows == []
    made.close()


def test_functions_of_pandas_see_whole_windows(tmp_path: Path) -> None:
    made = environment(tmp_path)
    query = f"SELECT {TUMBLE_START}, k, total(v), shown(v), joint(v, d), COUNT(*) FROM s GROUP BY k, {TUMBLE}"
    assert answers(made, query) == [
        (0, "a", 7, "[1.0, nan, 6.0]float64[0, 1, 2]v", 16.5, 3),
        (0, "b", 7, "[2, 5]int32[0, 1]v", 11.5, 2),
        (10, "b", 7, "[7]int32[0]v", 13.5, 1),
        (30, "a", 4, "[1, 3]int32[0, 1]v", 13.5, 2),
        (5, "a", 4, "[4]int32[0]v", 7.5, 1),
        (5, "b", 9, "[9]int32[0]v", 17.5, 1),
    ]
    hop = "HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
    rows = answers(made, f"SELECT k, total(v), lone(c), listed(d) FROM s GROUP BY k, {hop}")
    assert ("a", 19, None, [1.5, 2.5, 3.5, 5.5, 7.5]) in rows
    assert ("a", 4, "x", [3.5]) in rows
    assert ("b", 7, "x", [6.5]) in rows


def test_functions_of_pandas_over_frames(tmp_path: Path) -> None:
    made = environment(tmp_path)
    by_rows = "PARTITION BY k ORDER BY p ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
    with made.execute_sql(
        f"SELECT k, v, total(v) OVER w, shown(d) OVER w FROM s WINDOW w AS ({by_rows})"
    ).collect() as rows:
        found = [tuple(row) for row in rows]
    assert [row[2] for row in found] == [1, 2, 1, 5, 7, 10, 14, 18, 21, 15, 18, 12]
    assert found[-1] == ("a", 3, 12, "[7.5, 9.5, nan]float64[0, 1, 2]d")
    by_time = "PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW"
    with made.execute_sql(
        f"SELECT k, v, total(v) OVER w, shown(v) OVER w FROM s WINDOW w AS ({by_time})"
    ).collect() as rows:
        found = [tuple(row) for row in rows]
    assert [row[:3] for row in found] == [
        ("a", 1, 1), ("b", 2, 2), ("a", None, 1), ("a", 6, 6), ("a", 4, 10), ("b", 9, 9), ("b", 7, 7), ("b", 2, 2),
        ("a", 1, 1), ("a", 3, 4),
    ]  # fmt: skip
    assert found[2][3] == "[1.0, nan]float64[0, 1]v"
    assert found[4][3] == "[6, 4]int32[0, 1]v"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("wrong(v)", "a value of str is no BIGINT"),
        ("fails(v)", "'Series' object has no attribute 'nothing'"),
    ],
)
def test_failures_name_the_function(tmp_path: Path, call: str, message: str) -> None:
    with pytest.raises((ExecutionError, PlanError), match=message):
        answers(environment(tmp_path), f"SELECT {call} FROM s GROUP BY {TUMBLE}")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"SELECT seen(v), total(v) FROM s GROUP BY {TUMBLE}", "not supported in used together currently"),
        ("SELECT total(v) FROM s GROUP BY SESSION(ts, INTERVAL '1' SECOND)", "Session Group Window is currently not"),
        ("SELECT total(v) OVER (ORDER BY ts) FROM s", "in UNBOUNDED PRECEDING OVER windows"),
        ("SELECT seen(v) OVER (ORDER BY ts) FROM s", "Non-Pandas Python UDAFs are not supported in stream mode"),
        (
            "SELECT total(v) OVER w, SUM(v) OVER w FROM s WINDOW w AS (ORDER BY ts ROWS 2 PRECEDING)",
            "Python UDAF and Java/Scala UDAF cannot be used together",
        ),
    ],
)
def test_what_flink_refuses(tmp_path: Path, query: str, message: str) -> None:
    with pytest.raises(FlowSqlError, match=message):
        environment(tmp_path).explain_sql(query)


def test_what_is_refused_here(tmp_path: Path) -> None:
    made = environment(tmp_path)
    for call in ("total(DISTINCT v)", "total(v) FILTER (WHERE d > 2)"):
        with pytest.raises(NotSupportedYetError, match="of total, a function of pandas"):
            made.explain_sql(f"SELECT {call} FROM s GROUP BY {TUMBLE}")
    early = environment(tmp_path, table_exec_emit_early__fire_enabled="true", table_exec_emit_early__fire_delay="0 s")
    with pytest.raises(PlanError, match="currently not supported for early fired or lately fired"):
        early.explain_sql(f"SELECT total(v) FROM s GROUP BY {TUMBLE}")


def test_plans_are_those_of_flink(tmp_path: Path) -> None:
    made = environment(tmp_path)
    plan = made.explain_sql(f"SELECT k, seen(v), TUMBLE_START(ts, INTERVAL '5' SECOND) FROM s GROUP BY k, {TUMBLE}")
    assert (
        "PythonGroupWindowAggregate(groupBy=[k], window=[TumblingGroupWindow('w$, ts, 5000)], properties=[w$start, "
        "w$end, w$rowtime, w$proctime], select=[k, seen(v) AS EXPR$1, start('w$) AS w$start, end('w$) AS w$end, "
        "rowtime('w$) AS w$rowtime, proctime('w$) AS w$proctime])" in plan
    )
    plan = made.explain_sql("SELECT total(v) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING) FROM s")
    assert (
        "PythonOverAggregate(partitionBy=[k], orderBy=[ts ASC], window=[ ROWS BETWEEN 2 PRECEDING AND CURRENT ROW], "
        "select=[k, v, ts, total(v) AS w0$o0])" in plan
    )
