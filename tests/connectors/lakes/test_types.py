"""Every type of SQL that the lakes have goes in and comes back, and is what the lakes' own libraries call so."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flowsql.errors import FlowSqlError
from flowsql_connectors.lakes.delta.writing import statistics
from flowsql_core.errors import BindError
from tests.connectors.tables import insert, scan

from .lake import Lake
from .sessions import answer, session

UTC = datetime.UTC
NESTED = "l ARRAY<STRING>, m MAP<STRING, INT>, r ROW<x INT, y ARRAY<DECIMAL(5, 1)>>"
PLAIN = (
    "b BOOLEAN, i INT, g BIGINT, f FLOAT, d DOUBLE, n DECIMAL(38, 18), c VARCHAR(9), s STRING, x BINARY(3), y BYTES, "
    "dt DATE, ts TIMESTAMP(6), tz TIMESTAMP_LTZ(3)"
)
VALUES = (
    "TRUE, -2147483648, 9223372036854775807, CAST(0.5 AS FLOAT), 1E100, "
    "CAST('12345678901234567890.123456789012345678' AS DECIMAL(38, 18)), 'it''s', '𝄞 100%', X'000102', X'00FF', "
    "DATE '0001-01-01', TIMESTAMP '1956-01-02 03:04:05.678901', TO_TIMESTAMP_LTZ(-1, 3)"
)
NESTED_VALUES = "ARRAY['a', CAST(NULL AS STRING)], MAP['k', 1, 'q', 2], ROW(1, ARRAY[1.5, 2.0])"
MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)
READ = (
    True, -2147483648, 9223372036854775807, 0.5, 1e100, Decimal("12345678901234567890.123456789012345678"), "it's",
    "𝄞 100%", b"\x00\x01\x02", b"\x00\xff", datetime.date(1, 1, 1), datetime.datetime(1956, 1, 2, 3, 4, 5, 678901),
)  # fmt: skip
OWN = {
    "iceberg": ("t TIME(3), ti TINYINT", "TIME '23:59:58', CAST(7 AS TINYINT)", (datetime.time(23, 59, 58), 7)),
    "delta": ("ti TINYINT, si SMALLINT", "CAST(7 AS TINYINT), CAST(-7 AS SMALLINT)", (7, -7)),
}


def test_types_go_in_and_come_back(lake: Lake) -> None:
    ddl, values, own = OWN[lake.kind]
    made = session()
    made.execute_sql(f"CREATE TABLE t ({PLAIN}, {NESTED}, {ddl}) WITH ({lake.clause})")
    made.execute_sql(f"INSERT INTO t VALUES ({VALUES}, {NESTED_VALUES}, {values})").wait()
    made.execute_sql("INSERT INTO t (i) VALUES (1)").wait()
    (whole, empty) = sorted(answer(made, "SELECT * FROM t"), key=lambda row: row[1])
    assert whole[:12] == READ
    assert whole[13:15] == (["a", None], {"k": 1, "q": 2})
    assert whole[-2:] == own
    assert [value for value in empty if value is not None] == [1]
    found = next(row for row in lake.arrow().to_pylist() if row["i"] != 1)
    assert tuple(found.values())[:12] == READ
    assert found["tz"].astimezone(UTC) == MOMENT.replace(tzinfo=UTC)
    assert found["l"] == ["a", None]
    assert dict(found["m"]) == {"k": 1, "q": 2}
    assert found["r"] == {"x": 1, "y": [Decimal("1.5"), Decimal("2.0")]}
    # A table that declares nothing has the lake's own types.
    made.execute_sql(f"CREATE TABLE u WITH ({lake.clause})")
    assert sorted(answer(made, "SELECT i, dt FROM u")) == sorted(answer(made, "SELECT i, dt FROM t"))


@pytest.mark.parametrize(
    ("kind", "ddl", "said"),
    [
        ("iceberg", "a TIMESTAMP(9)", r"Column 'a' is TIMESTAMP\(9\): Iceberg's timestamps hold 6 digits"),
        ("iceberg", "a INTERVAL DAY", r"Column 'a' is INTERVAL DAY.*, of which Iceberg has no counterpart\."),
        ("iceberg", "a ARRAY<TIMESTAMP_LTZ(7)>", r"Column 'a' is TIMESTAMP_LTZ\(7\): Iceberg's timestamps hold 6"),
        ("delta", "a TIMESTAMP(9)", r"Column 'a' is TIMESTAMP\(9\): Delta's timestamps hold 6 digits"),
        ("delta", "a TIME(0)", r"Column 'a' is TIME\(0\), of which Delta has no counterpart\."),
        ("delta", "a ROW<b TIME(0)>", r"Column 'a' is TIME\(0\), of which Delta has no counterpart\."),
    ],
)
def test_types_that_a_lake_lacks(lake: Lake, kind: str, ddl: str, said: str) -> None:
    if kind != lake.kind:
        return
    with pytest.raises(BindError, match=said):
        insert(lake.table(ddl), [(None,)])
    assert lake.data_files() == []


def _iceberg_table(lake: Lake, schema: Any, **more: Any) -> Any:
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("c", type="sql", uri=lake.options["uri"], warehouse=lake.options["warehouse"])
    catalog.create_namespace_if_not_exists("d")
    return catalog.create_table("d.t", schema, **more)


def test_types_that_others_wrote(iceberg: Lake) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import FixedType, NestedField, TimeType, UUIDType

    schema = Schema(
        NestedField(1, "u", UUIDType(), required=False),
        NestedField(2, "t", TimeType(), required=False),
        NestedField(3, "x", FixedType(2), required=False),
    )
    table = _iceberg_table(iceberg, schema)
    one = uuid.UUID(int=7)
    table.append(
        pa.table(
            {
                "u": pa.array([one.bytes, None], pa.uuid()),
                "t": pa.array([datetime.time(1, 2, 3, 456789), None], pa.time64("us")),
                "x": pa.array([b"ab", None], pa.binary(2)),
            }
        )
    )
    made = session()
    made.execute_sql(f"CREATE TABLE t WITH ({iceberg.clause})")
    shown = [tuple(row)[:2] for row in made.execute_sql("DESCRIBE t").collect()]
    assert shown == [("u", "BINARY(16)"), ("t", "TIME(3)"), ("x", "BINARY(2)")]
    rows = answer(made, "SELECT u, t, x FROM t")
    assert rows == [(one.bytes, datetime.time(1, 2, 3, 456000), b"ab"), (None, None, None)]
    made.execute_sql("INSERT INTO t (u) SELECT u FROM t").wait()
    assert sorted(iceberg.rows("u"), key=repr) == [(None,), (None,), (one,), (one,)]


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("TimestampNanoType", r"Column 'n' of table 't' .* timestamps of nanoseconds are not read or written\."),
        ("TimestamptzNanoType", r"Column 'n' of table 't' .* timestamps of nanoseconds are not read or written\."),
        ("UnknownType", r"Column 'n' of table 't' is unknown, of which SQL has no counterpart\."),
    ],
)
def test_types_of_iceberg_that_sql_lacks(type_: str, said: str) -> None:
    from pyiceberg import types
    from pyiceberg.schema import Schema

    from flowsql_connectors.lakes.iceberg.types import to_columns

    inner = getattr(types, type_)()
    with pytest.raises(BindError, match=said):
        to_columns(Schema(types.NestedField(1, "n", inner, required=False)), "t")
    listed = types.ListType(2, inner, element_required=False)
    with pytest.raises(BindError, match=said):
        to_columns(Schema(types.NestedField(1, "n", listed, required=False)), "t")


def test_partitions_that_need_another_package(iceberg: Lake) -> None:
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import DayTransform
    from pyiceberg.types import NestedField, TimestampType

    schema = Schema(NestedField(1, "n", TimestampType(), required=False))
    _iceberg_table(iceberg, schema, partition_spec=PartitionSpec(PartitionField(1, 1000, DayTransform(), "day")))
    try:
        import pyiceberg_core  # noqa: F401
    except ImportError:
        with pytest.raises(
            FlowSqlError, match=r"is partitioned by day\(n\), which needs the Python module 'pyiceberg_core'"
        ):
            insert(iceberg.table("n TIMESTAMP(6)"), [(None,)])
        return
    insert(iceberg.table("n TIMESTAMP(6)"), [(datetime.datetime(2026, 1, 31, 12),), (None,)])
    assert len(iceberg.rows()) == 2


@pytest.mark.parametrize("value", ["2026-01-31 12:00:00.5", "a/b c%", "", "ü"])
def test_partition_values_of_delta(delta: Lake, value: str) -> None:
    table = delta.table(
        "a INT, p STRING, q BOOLEAN, d DATE, t TIMESTAMP(3), z TIMESTAMP_LTZ(3), n DECIMAL(4, 1)", tuple("pqdtzn")
    )
    moment = datetime.datetime(2026, 1, 31, 12, 0, 0, 500000)
    row = (1, value, True, datetime.date(2026, 1, 31), moment, moment.replace(tzinfo=UTC), Decimal("7.5"))
    insert(table, [row, (2, *[None] * 6)])
    text = "2026-01-31 12:00:00.5"
    read = sorted(scan(table))
    assert read[0][1] == (value or None)
    assert read[0][2:4] == [True, "2026-01-31"]
    assert [str(each).replace("T", " ").removesuffix("Z").rstrip("0") for each in read[0][4:6]] == [text, text]
    assert read[1][1:] == [None] * 6
    own = delta.rows()
    assert own[0][1:] == (value or None, *row[2:])


def test_statistics_of_delta() -> None:
    import io

    import pyarrow.parquet as pq

    rows = pa.table(
        {
            "i": pa.array([3, None, 1], pa.int32()),
            "s": pa.array(["b" * 40, "a" * 40, None]),
            "f": pa.array([1.0, float("nan"), None]),
            "t": pa.array([1, 999_999, None], pa.timestamp("us")),
            "z": pa.array([1500, 2500, None], pa.timestamp("us", "UTC")),
            "n": pa.array([Decimal("1.5"), Decimal("2.5"), None], pa.decimal128(5, 1)),
            "e": pa.array([None, None, None], pa.int32()),
            "l": pa.array([[1], None, []], pa.list_(pa.int32())),
            "last": pa.array([1, 2, 3], pa.int32()),
        }
    )
    buffer, told = io.BytesIO(), []
    with pq.ParquetWriter(buffer, rows.schema, metadata_collector=told) as writer:
        writer.write_table(rows, row_group_size=2)
    assert statistics(told[0], rows.schema, 8) == {
        "numRecords": 3,
        "minValues": {"i": 1, "s": "a" * 32, "t": "1970-01-01T00:00:00.000", "z": "1970-01-01T00:00:00.001Z", "n": 1.5},
        "maxValues": {"i": 3, "t": "1970-01-01T00:00:01.000", "z": "1970-01-01T00:00:00.003Z", "n": 2.5},
        "nullCount": {"i": 1, "s": 1, "t": 1, "z": 1, "n": 1, "e": 3},
    }
