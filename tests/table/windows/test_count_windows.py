"""Windows of the Table API that count rows; Flink has said what they answer and refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsql.table import TableEnvironment
from flowsql.table.expressions import col, lit, row_interval
from flowsql.table.udf import udaf
from flowsql.table.window import GroupWindow, Session, Slide, Tumble
from flowsql_core.errors import FlowSqlError

ROWS = ["a,1", "b,2", "a,", "a,4", "b,5", "a,6", "b,7", "a,8", "b,9", "a,1", "b,2", "a,3"]


def environment(folder: Path, **options: str) -> TableEnvironment:
    made = TableEnvironment.create()
    for key, value in options.items():
        made.get_config().set(key.replace("__", "-").replace("_", "."), value)
    (folder / "in.csv").write_text("".join(f"{row},2020-01-01 00:00:01\n" for row in ROWS), encoding="utf-8")
    made.execute_sql(
        "CREATE TABLE s (k STRING, v INT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ("
        f"'connector' = 'filesystem', 'format' = 'csv', 'csv.null-literal' = '', 'path' = '{folder / 'in.csv'}')"
    )
    return made


def tumble(rows: int, on: str = "p") -> GroupWindow:
    return Tumble.over(row_interval(rows)).on(col(on)).alias("w")


def slide(rows: int, step: int) -> GroupWindow:
    return Slide.over(row_interval(rows)).every(row_interval(step)).on(col("p")).alias("w")


def answers(table: Any) -> list[tuple[Any, ...]]:
    with table.execute().collect() as rows:
        return [(str(row.get_row_kind()), *row) for row in rows]


def test_windows_answer_when_they_are_full(tmp_path: Path) -> None:
    table = environment(tmp_path).from_path("s")
    grouped = table.window(tumble(2)).group_by(col("k"), col("w"))
    rows = answers(grouped.select(col("k"), col("v").sum, col("v").count))
    assert [row[1:] for row in rows] == [("a", 1, 1), ("b", 7, 2), ("a", 10, 2), ("b", 16, 2), ("a", 9, 2)]
    grouped = table.window(slide(4, 2)).group_by(col("k"), col("w"))
    rows = answers(grouped.select(col("k"), col("v").sum, col("v").count.distinct))
    assert [row[1:] for row in rows] == [("a", 11, 3), ("b", 23, 4), ("a", 19, 4)]
    # A step that is no divisor, and one above the size: rows between windows are in none.
    for size, step, wanted in [(3, 2, [3, 9, 18, 24, 12]), (2, 3, [3, 9, 15, 3])]:
        rows = answers(table.window(slide(size, step)).group_by(col("w")).select(col("v").sum))
        assert [row[1] for row in rows] == wanted


def test_each_change_counts_as_a_row(tmp_path: Path) -> None:
    """Windows whose rows were all taken back say nothing."""
    updating = environment(tmp_path).sql_query("SELECT k, SUM(v) AS c, PROCTIME() AS p FROM s GROUP BY k")
    rows = answers(updating.window(tumble(2)).group_by(col("w")).select(col("c").sum, col("c").count))
    assert [row[1:] for row in rows] == [(3, 2)]
    rows = answers(updating.window(slide(4, 2)).group_by(col("w")).select(col("c").sum, col("c").count))
    assert [row[1:] for row in rows] == [(7, 2)]


def test_functions_of_python_count_rows_too(tmp_path: Path) -> None:
    shown = udaf(lambda v: f"{v.tolist()}", result_type="STRING", func_type="pandas")
    table = environment(tmp_path).from_path("s").window(slide(4, 2)).group_by(col("k"), col("w"))
    rows = answers(table.select(col("k"), shown(col("v"))))
    assert [row[1:] for row in rows] == [
        ("a", "[1.0, nan, 4.0, 6.0]"), ("b", "[2, 5, 7, 9]"), ("a", "[4, 6, 8, 1]"),
    ]  # fmt: skip
    assert (
        "PythonGroupWindowAggregate(groupBy=[k], window=[SlidingGroupWindow('w$, p, 4, 2)]"
        in table.select(col("k"), shown(col("v"))).explain()
    )


def test_the_plan_is_that_of_a_group_window(tmp_path: Path) -> None:
    table = environment(tmp_path).from_path("s").window(tumble(2)).group_by(col("k"), col("w"))
    plan = table.select(col("k"), col("v").sum.alias("t")).explain()
    assert "GroupWindowAggregate(groupBy=[k], window=[TumblingGroupWindow('w$, p, 2)], select=[k, SUM(v) AS" in plan


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (lambda: tumble(2, "ts"), "Event-time grouping windows on row intervals are currently not supported."),
        (lambda: tumble(0), "needs sizes above zero"),
        (lambda: tumble(2, "v"), "A group window expects a time attribute for grouping in a stream environment."),
        (
            lambda: Slide.over(row_interval(4)).every(lit(2).seconds).on(col("p")).alias("w"),
            "A sliding window expects the same type of size and slide.",
        ),
        (
            lambda: Session.with_gap(row_interval(4)).on(col("p")).alias("w"),
            "A session window expects a gap literal of a day-time interval type.",
        ),
    ],
)
def test_what_flink_refuses(tmp_path: Path, window: Callable[[], GroupWindow], message: str) -> None:
    with pytest.raises(FlowSqlError, match=message):
        environment(tmp_path).from_path("s").window(window()).group_by(col("w")).select(col("v").sum).explain()


def test_windows_of_rows_have_no_bounds_and_wait_for_nobody(tmp_path: Path) -> None:
    grouped = environment(tmp_path).from_path("s").window(tumble(2)).group_by(col("w"))
    with pytest.raises(FlowSqlError, match="cannot be selected for a row-count tumble window"):
        grouped.select(col("v").sum, col("w").start).explain()
    early = environment(tmp_path, table_exec_emit_early__fire_enabled="true", table_exec_emit_early__fire_delay="1 s")
    with pytest.raises(FlowSqlError, match="early or late answers of windows that count rows"):
        early.from_path("s").window(tumble(2)).group_by(col("w")).select(col("v").sum).explain()
    batch = environment(tmp_path, execution_runtime__mode="batch")
    with pytest.raises(FlowSqlError, match="windows that count rows in batch mode"):
        batch.from_path("s").window(tumble(2)).group_by(col("w")).select(col("v").sum).explain()
    with pytest.raises(FlowSqlError, match=r"ROW_INTERVAL|No match found"):
        environment(tmp_path).explain_sql("SELECT SUM(v) FROM s GROUP BY TUMBLE(p, ROW_INTERVAL(2))")
