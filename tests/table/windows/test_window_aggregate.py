"""``window(...).group_by(...)`` in batch mode, and ``aggregate(f)`` of a function whose ROW becomes columns.

The answers are those of PyFlink.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Row
from flowsql.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from flowsql.table.expressions import col, lit
from flowsql.table.udf import AggregateFunction, udaf
from flowsql.table.window import Session, Slide, Tumble
from flowsql_core.errors import FlowSqlError

PAIR = DataTypes.ROW([DataTypes.FIELD("lo", DataTypes.INT()), DataTypes.FIELD("hi", DataTypes.INT())])
WINDOW = Tumble.over(lit(2).seconds).on(col("ts")).alias("w")
ROWS = """a,1,2024-01-01 00:00:01.000
a,2,2024-01-01 00:00:01.000
a,3,2024-01-01 00:00:02.000
a,4,2024-01-01 00:00:03.000
b,5,2024-01-01 00:00:03.000
"""


class LeastAndMost(AggregateFunction):
    """Of whole numbers."""

    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], value: int) -> None:
        accumulator[:] = [min([*accumulator, value]), max([*accumulator, value])]

    def get_value(self, accumulator: list[Any]) -> Row:
        return Row(*accumulator)


general = udaf(LeastAndMost(), result_type=PAIR, accumulator_type=DataTypes.ARRAY(DataTypes.INT()))
pandas = udaf(lambda s: Row(int(s.min()), int(s.max())), result_type=PAIR, func_type="pandas")
pandas_row = udaf(lambda d: (int(d.x.min()), int(d.x.max())), result_type=PAIR, func_type="pandas")


def second(number: int) -> datetime:
    return datetime(2024, 1, 1, 0, 0, number)


def events(folder: Path, settings: EnvironmentSettings) -> Table:
    (folder / "ev.csv").write_text(ROWS)
    environment = TableEnvironment.create(settings)
    environment.execute_sql(
        "CREATE TABLE ev (k STRING, x INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) "
        f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/ev.csv')"
    )
    return environment.from_path("ev")


def answer(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as rows:
        return sorted(tuple(row) for row in rows)


@pytest.mark.parametrize(
    ("made", "names", "wanted"),
    [
        (
            lambda t: t.window(WINDOW)
            .group_by(col("w"), col("k"))
            .aggregate(general(col("x")).alias("lo", "hi"))
            .select(col("k"), col("lo"), col("hi"), col("w").start.alias("s"), col("w").end.alias("e")),
            ["k", "lo", "hi", "s", "e"],
            [("a", 1, 2, second(0), second(2)), ("a", 3, 4, second(2), second(4)), ("b", 5, 5, second(2), second(4))],
        ),
        (
            lambda t: t.window(WINDOW)
            .group_by(col("w"), (col("x") % 2).alias("odd"))
            .aggregate(pandas(col("x")).alias("lo", "hi"))
            .select(col("odd"), col("hi") - col("lo"), col("w").rowtime),
            ["odd", "_c1", "EXPR$0"],
            [
                (0, 0, datetime(2024, 1, 1, 0, 0, 1, 999000)), (0, 0, datetime(2024, 1, 1, 0, 0, 3, 999000)),
                (1, 0, datetime(2024, 1, 1, 0, 0, 1, 999000)), (1, 2, datetime(2024, 1, 1, 0, 0, 3, 999000)),
            ],
        ),
        (
            lambda t: t.window(WINDOW)
            .group_by(col("w"), col("k"))
            .aggregate(pandas_row.alias("lo", "hi"))
            .select(col("k"), col("lo"), col("hi")),
            ["k", "lo", "hi"],
            [("a", 1, 2), ("a", 3, 4), ("b", 5, 5)],
        ),
        (
            lambda t: t.window(WINDOW)
            .group_by(col("w"))
            .aggregate(col("x").sum.alias("s"))
            .select(col("s"), col("w").end),
            ["s", "EXPR$0"],
            [(3, second(2)), (12, second(4))],
        ),
        (
            lambda t: t.window(Slide.over(lit(2).seconds).every(lit(1).seconds).on(col("ts")).alias("w"))
            .group_by(col("w"), col("k"))
            .aggregate(pandas(col("x")).alias("lo", "hi"))
            .select(col("k"), col("lo"), col("hi"), col("w").start),
            ["k", "lo", "hi", "EXPR$0"],
            [
                ("a", 1, 2, second(0)), ("a", 1, 3, second(1)), ("a", 3, 4, second(2)), ("a", 4, 4, second(3)),
                ("b", 5, 5, second(2)), ("b", 5, 5, second(3)),
            ],
        ),
        (
            lambda t: t.window(Session.with_gap(lit(1).seconds).on(col("ts")).alias("w"))
            .group_by(col("w"), col("k"))
            .aggregate(general(col("x")))
            .select(col("k"), col("TMP_0$lo"), col("TMP_0$hi"), col("w").start),
            ["k", "TMP_0$lo", "TMP_0$hi", "EXPR$0"],
            [("a", 1, 4, second(1)), ("b", 5, 5, second(3))],
        ),
    ],
    ids=["general", "pandas", "whole row", "built in", "slide", "session"],
)  # fmt: skip
def test_the_row_becomes_columns(
    tmp_path: Path, made: Callable[[Table], Table], names: list[str], wanted: list[tuple[Any, ...]]
) -> None:
    table = made(events(tmp_path, EnvironmentSettings.in_streaming_mode()))
    assert table.get_schema().get_field_names() == names
    assert answer(table) == wanted


@pytest.mark.parametrize("time", ["ts", "plain"])
def test_in_batch_mode(tmp_path: Path, time: str) -> None:
    table = events(tmp_path, EnvironmentSettings.in_batch_mode()).add_columns(col("ts").alias("plain"))
    tumble = Tumble.over(lit(2).seconds).on(col(time)).alias("w")
    grouped = table.window(tumble).group_by(col("w"), col("k"))
    assert answer(grouped.select(col("k"), col("x").sum, col("w").start)) == [
        ("a", 3, second(0)), ("a", 7, second(2)), ("b", 5, second(2)),
    ]  # fmt: skip
    pairs = grouped.aggregate(pandas(col("x")).alias("lo", "hi"))
    assert answer(pairs.select(col("k"), col("lo"), col("hi"), col("w").end)) == [
        ("a", 1, 2, second(2)), ("a", 3, 4, second(4)), ("b", 5, 5, second(4)),
    ]  # fmt: skip
    slide = Slide.over(lit(3).seconds).every(lit(2).seconds).on(col(time)).alias("w")
    assert answer(table.window(slide).group_by(col("w")).select(col("x").sum, col("w").end)) == [
        (6, second(3)), (12, second(5)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (Tumble.over(lit(2).seconds).on(col("x")), "expects a time attribute for grouping in a batch environment"),
        (Session.with_gap(lit(2).seconds).on(col("ts")), "session windows are not supported in batch mode"),
    ],
)
def test_what_batch_mode_refuses(tmp_path: Path, window: Any, message: str) -> None:
    table = events(tmp_path, EnvironmentSettings.in_batch_mode())
    with pytest.raises(FlowSqlError, match=message):
        table.window(window.alias("w")).group_by(col("w")).select(col("x").sum).execute()


@pytest.mark.parametrize("wrong", [col("x"), col("w"), col("v").start])
def test_other_columns_are_refused(tmp_path: Path, wrong: Any) -> None:
    grouped = events(tmp_path, EnvironmentSettings.in_streaming_mode()).window(WINDOW).group_by(col("w"), col("k"))
    with pytest.raises(FlowSqlError):
        grouped.aggregate(general(col("x")).alias("lo", "hi")).select(wrong)
