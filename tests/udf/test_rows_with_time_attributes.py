"""Row-based operations over tables with a time attribute; the results of PyFlink 2.3.0 for the same programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from flowsql.common import Row
from flowsql.table import (
    AggregateFunction,
    DataTypes,
    EnvironmentSettings,
    Table,
    TableAggregateFunction,
    TableEnvironment,
)
from flowsql.table.expressions import col
from flowsql.table.udf import udaf, udf, udtaf, udtf

SEQUENCE = (
    "WITH ('connector' = 'datagen', 'number-of-rows' = '2', 'fields.id.kind' = 'sequence', "
    "'fields.id.start' = '1', 'fields.id.end' = '2')"
)
MILLISECONDS = "TO_TIMESTAMP_LTZ(id, 3)"
TABLES = {
    "zoned": f"CREATE TABLE zoned (id BIGINT, ts AS {MILLISECONDS}, WATERMARK FOR ts AS ts) {SEQUENCE}",
    "plain": f"CREATE TABLE plain (id BIGINT, ts AS CAST({MILLISECONDS} AS TIMESTAMP(3)), "
    f"WATERMARK FOR ts AS ts) {SEQUENCE}",
}
NAMED = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.BIGINT()), DataTypes.FIELD("y", DataTypes.STRING())])


class Total(AggregateFunction):  # type: ignore[misc]
    """The sum of ids and the last row time as text."""

    def create_accumulator(self) -> Row:
        return Row(0, None)

    def accumulate(self, accumulator: Row, row: Row) -> None:
        accumulator[0] += row.id
        accumulator[1] = str(row[1].replace(tzinfo=None))

    def get_value(self, accumulator: Row) -> Row:
        return Row(*accumulator)

    def get_accumulator_type(self) -> Any:
        return NAMED

    def get_result_type(self) -> Any:
        return NAMED


class Sums(TableAggregateFunction):  # type: ignore[misc]
    """The sum of ids."""

    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int], row: Row) -> None:
        accumulator[0] += row.id

    def emit_value(self, accumulator: list[int]) -> Any:
        yield Row(accumulator[0], "sum")

    def get_accumulator_type(self) -> Any:
        return DataTypes.ARRAY(DataTypes.BIGINT())

    def get_result_type(self) -> Any:
        return NAMED


def mapped(table: Table) -> Table:
    return table.map(udf(lambda row: Row(row.id, str(row[1].replace(tzinfo=None))), result_type=NAMED))


def mapped_frames(table: Table) -> Table:
    def shown(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([frame.id, frame.iloc[:, 1].dt.tz_localize(None).astype(str)], axis=1)

    return table.map(udf(shown, result_type=NAMED, func_type="pandas"))


def flat_mapped(table: Table) -> Table:
    def rows(row: Row) -> Any:
        yield row.id, str(row[1].replace(tzinfo=None))

    return table.flat_map(udtf(rows, result_types=[DataTypes.BIGINT(), DataTypes.STRING()]))


def aggregated(table: Table) -> Table:
    return table.aggregate(udaf(Total()).alias("a", "b")).select(col("a"), col("b"))


def grouped(table: Table) -> Table:
    whole = table.group_by(col("id")).aggregate(udaf(Total()).alias("a", "b"))
    return whole.select(col("id"), col("a"), col("b"))


def grouped_rows(table: Table) -> Table:
    whole = table.group_by(col("id")).flat_aggregate(udtaf(Sums()).alias("a", "b"))
    return whole.select(col("id"), col("a"), col("b"))


FIRST, SECOND = "1970-01-01 00:00:00.001000", "1970-01-01 00:00:00.002000"
ANSWERS: dict[Callable[[Table], Table], list[list[Any]]] = {
    mapped: [[1, FIRST], [2, SECOND]],
    mapped_frames: [[1, FIRST.removesuffix("000")], [2, SECOND.removesuffix("000")]],
    flat_mapped: [[1, FIRST], [2, SECOND]],
    aggregated: [[3, SECOND]],
    grouped: [[1, 1, FIRST], [2, 2, SECOND]],
    grouped_rows: [[1, 1, "sum"], [2, 2, "sum"]],
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("query", ANSWERS, ids=lambda query: query.__name__)
def test_row_based_operations(query: Callable[[Table], Table], table: str) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("table.local-time-zone", "UTC")
    environment.execute_sql(TABLES[table])
    with query(environment.from_path(table)).execute().collect() as rows:
        found = [list(row) for row in rows]
    assert found[-len(ANSWERS[query]) :] == ANSWERS[query]
