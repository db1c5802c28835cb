from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table.values.tableau import Tableau, text_width, type_width
from flowsql_core.batch import ChangelogBatch
from flowsql_core.types import logical as t
from flowsql_core.types.logical import Column


def test_streaming_table_looks_like_flinks() -> None:
    schema = (Column("k", t.INT), Column("cnt", t.BIGINT), Column("ms", t.STRING))
    batch = ChangelogBatch.of(
        [
            pa.array([1, 1, 1, 2], pa.int32()),
            pa.array([1, 1, 2, 1], pa.int64()),
            pa.array(["a", "a", "b", "日本語 a long string that gets cut"]),
        ],
        kinds=np.array([0, 1, 2, 0], dtype=np.uint8),
    )
    table = Tableau.by_type(schema, 30, True, "UTC")
    assert table.header() + table.rows(batch) + table.border() == (
        "+----+-------------+----------------------+--------------------------------+\n"
        "| op |           k |                  cnt |                             ms |\n"
        "+----+-------------+----------------------+--------------------------------+\n"
        "| +I |           1 |                    1 |                              a |\n"
        "| -U |           1 |                    1 |                              a |\n"
        "| +U |           1 |                    2 |                              b |\n"
        "| +I |           2 |                    1 | 日本語 a long string that g... |\n"
        "+----+-------------+----------------------+--------------------------------+\n"
    )


def test_long_ascii_text_is_cut_with_dots() -> None:
    table = Tableau.by_type((Column("c", t.STRING),), 30, False, "UTC")
    rows = table.rows(ChangelogBatch.of([pa.array(["abcdefghijklmnopqrstuvwxyz0123456789", "x", None])]))
    assert rows == (
        "| abcdefghijklmnopqrstuvwxyz0... |\n|                              x |\n|                         <NULL> |\n"
    )


def test_wide_text_is_cut_by_cells_not_characters() -> None:
    table = Tableau.by_type((Column("w", t.STRING),), 30, False, "UTC")
    assert table.rows(ChangelogBatch.of([pa.array(["日本語" * 6])])) == "|  日本語日本語日本語日本語日... |\n"


def test_listing_is_as_wide_as_its_content_and_null_is_blank() -> None:
    schema = (Column("name", t.STRING), Column("null", t.BOOLEAN))
    batch = ChangelogBatch.of([pa.array(["a", None]), pa.array([True, False])])
    table = Tableau.by_content(schema, batch, "UTC")
    assert table.header() + table.rows(batch) == (
        "+------+-------+\n| name |  null |\n+------+-------+\n|    a |  TRUE |\n|      | FALSE |\n"
    )


@pytest.mark.parametrize(
    ("type_", "width"),
    [
        (t.BOOLEAN, 6),
        (t.TINYINT, 6),
        (t.INT, 11),
        (t.BIGINT, 20),
        (t.DATE, 10),
        (t.DecimalType(precision=5, scale=2), 7),
        (t.TimestampType(precision=3), 23),
        (t.TimestampType(precision=0), 19),
        (t.TimeType(precision=3), 12),
        (t.DOUBLE, 30),
        (t.CharType(length=3), 30),
    ],
)
def test_widths_of_types(type_: t.LogicalType, width: int) -> None:
    assert type_width(type_, 30) == width


def test_zoned_timestamps_show_the_session_clock() -> None:
    schema = (Column("t", t.TimestampLtzType(precision=3)),)
    batch = ChangelogBatch.of([pa.array([0], pa.timestamp("ms", tz="UTC"))])
    assert "1970-01-01 01:00:00.000" in Tableau.by_type(schema, 30, False, "Europe/Berlin").rows(batch)
    assert "1970-01-01 00:00:00.000" in Tableau.by_type(schema, 30, False, "UTC").rows(batch)


def test_text_width_counts_combining_marks_as_nothing() -> None:
    assert text_width("e\u0301") == 1
