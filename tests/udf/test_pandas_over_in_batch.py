"""Aggregate functions of pandas with OVER in batch mode: answers, types and refusals are Flink's (asked of 2.3.0)."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql.table import TableEnvironment
from flowsql.table.udf import AggregateFunction, udaf
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_runtime.operators.bounded import base
from flowsql_runtime.operators.bounded.over.large_partition import LargePartition
from flowsql_runtime.task.memory import OperatorMemory


def moment(second: int, millisecond: int = 0) -> dt.datetime:
    return dt.datetime(2024, 1, 1, 0, 0, second, millisecond * 1000)


#: ``o`` has equals and NULLs, ``v`` a NULL in one partition of ``k``.
COLUMNS = {
    "id": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int32()),
    "k": pa.array(["a", "a", "a", "b", "b", "b", None, "a"]),
    "v": pa.array([10, None, 30, 40, 50, 60, 70, 80], pa.int32()),
    "f": pa.array([1.5, 2.5, None, 4.0, 5.0, 6.0, 7.0, 8.0]),
    "ts": pa.array([moment(1, 123), *map(moment, (2, 2, 5, 5, 9)), None, None], pa.timestamp("ms")),
    "o": pa.array([1, 1, 3, None, 5, 5, None, None], pa.int32()),
}


class Total(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int], value: int) -> None:
        accumulator[0] += value

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]


def described(*series: Any) -> str:
    """Type, name, index and values; texts are objects before pandas 3."""
    kinds = ("text" if len(one) and isinstance(one.iloc[0], str) else one.dtype for one in series)
    return "; ".join(
        f"{kind} {one.name} {list(one.index)} {one.values.tolist()}" for kind, one in zip(kinds, series, strict=True)
    )


def session(parallelism: str = "1", **options: str) -> TableEnvironment:
    environment = TableEnvironment.create()
    options = {
        "execution.runtime-mode": "batch",
        "execution.batch.engine": "local",
        "parallelism.default": parallelism,
        **options,
    }
    for key, value in options.items():
        environment.get_config().set(key, value)
    environment.create_temporary_view("s", environment.from_arrow(pa.table(COLUMNS)))
    for name, function, type_ in (
        ("seen", lambda v: ",".join("-" if pd.isna(one) else f"{one:g}" for one in v), "STRING"),
        ("described", described, "STRING"),
        ("mean", lambda v: v.mean(), "DOUBLE"),
        ("biggest", lambda v: v.max(), "INT"),
        ("rows_of", len, "BIGINT"),
        ("weighed", lambda v, w: (v * w).sum(), "DOUBLE"),
        ("sums", lambda v, f: [float(v.sum()), float(f.max())], "ARRAY<DOUBLE>"),
        ("fails", lambda v: v.nothing_of_the_kind(), "BIGINT"),
    ):
        environment.create_temporary_function(name, udaf(function, result_type=type_, func_type="pandas"))
    environment.create_temporary_function(
        "total", udaf(Total(), result_type="BIGINT", accumulator_type="ARRAY<BIGINT>")
    )
    return environment


def answers(environment: TableEnvironment, calls: str, source: str = "s") -> list[Any]:
    """Per ``id`` the result, or the results."""
    with environment.execute_sql(f"SELECT id, {calls} FROM {source}").collect() as found:
        rows = sorted(tuple(row) for row in found)
    return [row[1] if len(row) == 2 else row[1:] for row in rows]


FRAMES: list[tuple[str, list[str]]] = [
    (
        "PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
        ["1", "1,2", "2,3", "4", "4,5", "5,6", "7", "3,8"],
    ),
    (
        "PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        ["1,2", "1,2,3", "2,3,8", "4,5", "4,5,6", "5,6", "7", "3,8"],
    ),
    ("PARTITION BY k ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING", ["3,8", "8", "", "6", "", "", "", ""]),
    ("PARTITION BY k ORDER BY id ROWS UNBOUNDED PRECEDING", ["1", "1,2", "1,2,3", "4", "4,5", "4,5,6", "7", "1,2,3,8"]),
    (
        "PARTITION BY k ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ["1,2,3,8", "2,3,8", "3,8", "4,5,6", "5,6", "6", "7", "8"],
    ),
    (
        "PARTITION BY k ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        ["1,2,3,8"] * 3 + ["4,5,6"] * 3 + ["7", "1,2,3,8"],
    ),
    ("PARTITION BY k ORDER BY ts", ["8,1", "8,1,2,3", "8,1,2,3", "4,5", "4,5", "4,5,6", "7", "8"]),
    (
        "PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW",
        ["1", "1,2,3", "1,2,3", "4,5", "4,5", "6", "7", "8"],
    ),
    (
        "PARTITION BY k ORDER BY id RANGE BETWEEN 4 PRECEDING AND 1 PRECEDING",
        ["", "1", "1,2", "", "4", "4,5", "", ""],
    ),
]


@pytest.mark.parametrize("parallelism", ["1", "3"])
@pytest.mark.parametrize(("window", "wanted"), FRAMES)
def test_frames(window: str, wanted: list[str], parallelism: str) -> None:
    assert answers(session(parallelism), f"seen(id) OVER ({window})") == wanted


def test_equal_rows_are_peers() -> None:
    found = answers(session(), "seen(o) OVER (ORDER BY o), seen(o) OVER (ORDER BY o DESC)")
    ones, three, none = ("-,-,-,1,1", "5,5,3,1,1"), ("-,-,-,1,1,3", "5,5,3"), ("-,-,-", "5,5,3,1,1,-,-,-")
    fives = ("-,-,-,1,1,3,5,5", "5,5")
    assert found == [ones, ones, three, none, fives, fives, none, none]


def test_a_frame_is_a_slice_of_the_series_of_its_partition() -> None:
    window = "PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
    assert answers(session(), f"described(v, f) OVER ({window})") == [
        "float64 v [0] [10.0]; float64 f [0] [1.5]",
        "float64 v [0, 1] [10.0, nan]; float64 f [0, 1] [1.5, 2.5]",
        "float64 v [1, 2] [nan, 30.0]; float64 f [1, 2] [2.5, nan]",
        "int32 v [0] [40]; float64 f [0] [4.0]",
        "int32 v [0, 1] [40, 50]; float64 f [0, 1] [4.0, 5.0]",
        "int32 v [1, 2] [50, 60]; float64 f [1, 2] [5.0, 6.0]",
        "int32 v [0] [70]; float64 f [0] [7.0]",
        "float64 v [2, 3] [30.0, 80.0]; float64 f [2, 3] [nan, 8.0]",
    ]
    found = answers(session(), "described(k, ts) OVER (PARTITION BY k ORDER BY id)", "s WHERE k = 'b'")
    assert found[0] == "text k [0] ['b']; datetime64[ms] ts [0] [datetime.datetime(2024, 1, 1, 0, 0, 5)]"
    lists = "(SELECT id, k, ARRAY[v, id] AS a FROM s)"
    seen = answers(session(), "described(a) OVER (PARTITION BY k ORDER BY id ROWS 1 PRECEDING)", lists)
    assert seen[1:4] == [
        "object a [0, 1] [array([10.,  1.]), array([nan,  2.])]",
        "object a [1, 2] [array([nan,  2.]), array([30.,  3.])]",
        "object a [0] [array([40,  4], dtype=int32)]",
    ]


RESULTS: list[tuple[str, list[Any]]] = [
    (
        "biggest(v) OVER ({w} ROWS 1 PRECEDING), mean(f) OVER ({w} ROWS 2 PRECEDING)",
        [(10, 1.5), (10, 2.0), (30, 2.0), (40, 4.0), (50, 4.5), (60, 5.0), (70, 7.0), (80, 5.25)],
    ),
    # Beside a built-in function over another window.
    (
        "biggest(v) OVER ({w}), SUM(v) OVER (PARTITION BY o ORDER BY id)",
        [(10, 10), (10, 10), (30, 30), (40, 40), (50, 50), (60, 110), (70, 110), (80, 190)],
    ),
    ("rows_of(v) OVER ({w} ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING)", [2, 1, 0, 1, 0, 0, 0, 0]),
    ("mean(v) OVER ({w} ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING)", [55.0, 80.0, None, 60.0, *[None] * 4]),
    ("weighed(v + 1, id) OVER ({w})", [11.0, 11.0, 104.0, 164.0, 419.0, 785.0, 497.0, 752.0]),
]


@pytest.mark.parametrize(("calls", "wanted"), RESULTS)
def test_results(calls: str, wanted: list[Any]) -> None:
    assert answers(session(), calls.format(w="PARTITION BY k ORDER BY id")) == wanted


def test_results_that_are_arrays() -> None:
    found = answers(session(), "sums(v, f) OVER (PARTITION BY k ORDER BY id)", "s WHERE k = 'b'")
    assert [list(one) for one in found] == [[40.0, 4.0], [90.0, 5.0], [150.0, 6.0]]


def test_where_flink_fails() -> None:
    """Without ORDER BY, with constants, and frames behind the partition's end by distance it has no answer."""
    assert answers(session(), "seen(id) OVER (PARTITION BY k)")[3:] == ["4,5,6"] * 3 + ["7", "1,2,3,8"]
    assert set(answers(session(), "mean(id) OVER ()")) == {4.5}
    assert answers(session(), "weighed(id, 2) OVER (ORDER BY id ROWS 1 PRECEDING)")[:3] == [2.0, 6.0, 10.0]
    far = "seen(id) OVER (ORDER BY o RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING)"
    assert answers(session(), far, "s WHERE o IS NOT NULL") == ["3", "3", "5,6", "", ""]


def test_peers_are_equal_in_all_columns() -> None:
    """PyFlink 2.3 looks at the first column alone, and takes all texts for equal; its built-in functions do not."""
    assert answers(session(), "rows_of(id) OVER (ORDER BY o, id)") == [4, 5, 6, 1, 7, 8, 2, 3]
    assert answers(session(), "rows_of(id) OVER (ORDER BY k), COUNT(id) OVER (ORDER BY v)") == [
        (5, 2),
        (5, 1),
        (5, 3),
        (8, 4),
        (8, 5),
        (8, 6),
        (1, 7),
        (5, 8),
    ]


@pytest.mark.parametrize("frame", ["3 PRECEDING AND 2 PRECEDING", "9 FOLLOWING AND 9 FOLLOWING"])
def test_rows_see_nothing_beyond_their_partition(frame: str) -> None:
    """PyFlink counts a bound before the first row from the partition's end."""
    found = answers(session(), f"rows_of(id) OVER (ORDER BY id ROWS BETWEEN {frame})")
    assert found == ([0, 0, 1, 2, 2, 2, 2, 2] if frame.startswith("3") else [0] * 8)


def test_equal_frames_are_called_once() -> None:
    calls: list[int] = []
    environment = session()

    def noted(values: Any) -> int:
        calls.append(len(values))
        return len(values)

    environment.create_temporary_function("noted", udaf(noted, result_type="BIGINT", func_type="pandas"))
    assert answers(environment, "noted(id) OVER (ORDER BY o)") == [5, 5, 6, 3, 8, 8, 3, 3]
    assert calls == [3, 5, 6, 8]
    calls.clear()
    answers(environment, "noted(id) OVER (PARTITION BY k)")
    assert sorted(calls) == [1, 3, 4]


REFUSALS = [
    ("biggest(v) OVER (ORDER BY id), SUM(v) OVER (ORDER BY id ROWS 1 PRECEDING)", "Python UDAF and Java/Scala UDAF"),
    ("biggest(v) OVER (ORDER BY id), ROW_NUMBER() OVER (ORDER BY id)", "cannot be used together"),
    ("total(v) OVER (ORDER BY id)", "non-Pandas UDAFs are not supported in batch mode currently"),
    ("biggest(DISTINCT v) OVER (ORDER BY id)", r"biggest\(DISTINCT \.\.\.\) OVER"),
    ("biggest(v) FILTER (WHERE v > 1) OVER (ORDER BY id)", "OVER must be applied to aggregate function"),
]


@pytest.mark.parametrize(("calls", "message"), REFUSALS)
def test_what_flink_refuses(calls: str, message: str) -> None:
    with pytest.raises(FlowSqlError, match=message):
        session().explain_sql(f"SELECT {calls} FROM s")


def test_failures() -> None:
    with pytest.raises(ExecutionError, match=r"nothing_of_the_kind[\s\S]*of the Python function 'fails'"):
        answers(session(), "fails(v) OVER (ORDER BY id)")
    with pytest.raises(ExecutionError, match=r"Float value 1\.50* was truncated"):
        answers(session(), "biggest(f) OVER (ORDER BY id)")


def test_the_plan() -> None:
    """Flink's, whose Sort the operator does by itself."""
    plan = session().explain_sql(
        "SELECT id, biggest(v) OVER (PARTITION BY k ORDER BY id), mean(v) OVER (PARTITION BY k ORDER BY id) FROM s"
    )
    assert (
        "PythonOverAggregate(partitionBy=[k], orderBy=[id ASC], window#0=[biggest(v) AS w0$o0, mean(v) AS w0$o1 RANGE "
        "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[id, k, v, w0$o0, w0$o1])"
    ) in plan
    plan = session().explain_sql(
        "SELECT id, seen(v) OVER (PARTITION BY k ORDER BY id), biggest(v) OVER (PARTITION BY k ORDER BY id ROWS 1 "
        "PRECEDING), SUM(v) OVER (PARTITION BY v ORDER BY id), mean(v) OVER (PARTITION BY k ORDER BY id) FROM s"
    )
    shown = plan.partition("== Optimized Execution Plan ==\n")[2].splitlines()
    assert shown[:6] == [
        "Calc(select=[id, w0$o0 AS EXPR$1, w1$o0 AS EXPR$2, CASE((w2$o0 > 0), w2$o1, null:INTEGER) AS EXPR$3, "
        "w0$o1 AS EXPR$4])",
        "+- OverAggregate(partitionBy=[v], orderBy=[id ASC], window#0=[COUNT(v) AS w2$o0, $SUM0(v) AS w2$o1 RANGE "
        "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], select=[id, k, v, w0$o0, w0$o1, w1$o0, w2$o0, w2$o1])",
        "   +- Sort(orderBy=[v ASC, id ASC])",
        "      +- Exchange(distribution=[hash[v]])",
        "         +- PythonOverAggregate(partitionBy=[k], orderBy=[id ASC], window#0=[seen(v) AS w0$o0, mean(v) AS "
        "w0$o1 RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW], window#1=[biggest(v) AS w1$o0 ROWS BETWEEN 1 "
        "PRECEDING AND CURRENT ROW], select=[id, k, v, w0$o0, w0$o1, w1$o0])",
        "            +- Sort(orderBy=[k ASC, id ASC])",
    ]


# Partitions that go to files

LARGE = {
    "rows": "described(n) OVER (PARTITION BY p ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "values": "rows_of(n) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "whole": "mean(n) OVER (PARTITION BY p), rows_of(n) OVER (PARTITION BY p ORDER BY k DESC)",
    "running": "rows_of(n) OVER (PARTITION BY p ORDER BY id), SUM(n) OVER (PARTITION BY k ORDER BY id)",
}


def large_table(environment: TableEnvironment, folder: Path) -> None:
    """One partition of two is all but a hundredth of the rows; the NULL of ``n`` stands in its last ones."""
    count = 4000
    columns = {
        "id": pa.array(range(count), pa.int32()),
        "p": pa.array([int(place % 100 == 0) for place in range(count)], pa.int64()),
        "k": pa.array([place // 3 for place in range(count)], pa.int64()),
        "n": pa.array([None if place == count - 1 else place % 17 for place in range(count)], pa.int64()),
    }
    pq.write_table(pa.table(columns), folder / "t.parquet")
    environment.execute_sql(
        "CREATE TABLE large_t (id INT, p BIGINT, k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', "
        f"'path' = '{folder / 't.parquet'}', 'format' = 'parquet')"
    )


@pytest.mark.parametrize("name", LARGE)
def test_partitions_larger_than_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = session(**{"flowsql.source.batch-rows": "512"})
    large_table(environment, tmp_path)
    whole = answers(environment, LARGE[name], "large_t")
    pieces: list[int] = []
    add = LargePartition._add

    def counted(partition: LargePartition, piece: Any) -> None:
        pieces.append(piece.num_rows)
        add(partition, piece)

    monkeypatch.setattr(LargePartition, "_add", counted)
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 20_000)
    assert answers(environment, LARGE[name], "large_t") == whole
    assert len(pieces) > 10


def test_a_partition_whose_columns_no_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = session(**{"flowsql.source.batch-rows": "512"})
    large_table(environment, tmp_path)
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 20_000)
    reserve = OperatorMemory.try_reserve
    monkeypatch.setattr(
        OperatorMemory,
        "try_reserve",
        lambda memory, size: memory.held_bytes + size <= 30_000 and reserve(memory, size),
    )
    with pytest.raises(ExecutionError, match=r"a partition that does not fit in memory: the columns of \d+ rows need"):
        answers(environment, "rows_of(n) OVER (ORDER BY id)", "large_t")
