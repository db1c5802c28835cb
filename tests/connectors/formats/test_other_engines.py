"""Files that FlowSQL writes read by other engines, and theirs read by FlowSQL: each type, nested, and far moments."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tests.connectors.tables import files_table, insert, scan, table_of

DDL = (
    "id INT, b BOOLEAN, l BIGINT, f FLOAT, d DOUBLE, d9 DECIMAL(9, 2), d38 DECIMAL(38, 10), s STRING, bi BYTES, "
    "dt DATE, t3 TIMESTAMP(3), t6 TIMESTAMP(6), z TIMESTAMP_LTZ(3), a ARRAY<DECIMAL(9, 2)>, m MAP<STRING, BIGINT>, "
    "r ROW<x INT NOT NULL, y ROW<w DECIMAL(5, 2), t TIMESTAMP(3)>>, ar ARRAY<ROW<p INT, q STRING>>"
)
#: The beginning of the calendar, a day that the Julian calendar has otherwise, just before 1970, an hour that clocks
#: skip in New York, the last moment.
MOMENTS = [
    datetime.datetime(1, 1, 1, 0, 0, 0, 1000),
    datetime.datetime(1581, 10, 10, 12, 30, 0, 500_000),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000),
    datetime.datetime(2024, 3, 10, 2, 30),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_000),
]
#: Of INT96 in Arrow's readers and of ORC in Arrow, which hold nanoseconds in 64 bits.
NEAR = MOMENTS[2:4]


def _row(n: int, at: datetime.datetime) -> list[Any]:
    plain = [n, n % 2 == 0, 2**53 + n, n / 4, n / 8, Decimal(n) / 4, Decimal("-1234567890123456789.0123456789")]
    nested = [[Decimal("1.50"), None], [("k", n)], {"x": n, "y": {"w": Decimal("1.25"), "t": at}}]
    zoned = at.replace(tzinfo=datetime.UTC)
    return [*plain, f"é{n}", bytes([n, 255]), at.date(), at, at, zoned, *nested, [{"p": n, "q": None}, None]]


def _rows(moments: list[datetime.datetime]) -> list[list[Any]]:
    return [*(_row(n, at) for n, at in enumerate(moments)), [len(moments), *[None] * 16]]


def _plain(value: Any) -> Any:
    """A value in the form that engines share: naive UTC, maps as pairs."""
    match value:
        case datetime.datetime():
            return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytearray() | memoryview():
            return bytes(value)
    return value


def _by_arrow(read: Callable[[Path], Any]) -> Callable[[Path], list[list[Any]]]:
    def rows(path: Path) -> list[list[Any]]:
        table = read(path)
        unit = [
            pa.field(f.name, pa.timestamp("us", f.type.tz)) if pa.types.is_timestamp(f.type) else f
            for f in table.schema
        ]
        return [list(row.values()) for row in table.cast(pa.schema(unit)).to_pylist()]

    return rows


def _by_duckdb(path: Path) -> list[list[Any]]:
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        found = session.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()
    return [list(row) for row in found]


def _by_fastavro(path: Path) -> list[list[Any]]:
    with path.open("rb") as file:
        return [list(row.values()) for row in fastavro.reader(file)]


INT64 = {"parquet.write.int64.timestamp": "true", "parquet.utc-timezone": "true"}
READERS = {
    "parquet by pyarrow": ("parquet", INT64, _by_arrow(pq.read_table), MOMENTS),
    "parquet by DuckDB": ("parquet", INT64, _by_duckdb, MOMENTS),
    "parquet with INT96 by DuckDB": ("parquet", {}, _by_duckdb, NEAR),
    "orc by pyarrow": ("orc", {}, _by_arrow(orc.read_table), NEAR),
    "avro by fastavro": (
        "avro",
        {"avro.timestamp_mapping.legacy": "false", "avro.codec": "deflate"},
        _by_fastavro,
        MOMENTS,
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_written_here(tmp_path: Path, name: str) -> None:
    format_, options, read, moments = READERS[name]
    rows = _rows(moments)
    insert(table_of(DDL, {"connector": "filesystem", "path": str(tmp_path), "format": format_, **options}), rows)
    (path,) = tmp_path.iterdir()
    found = sorted((_maps(_plain(row)) for row in read(path)), key=lambda row: row[0])
    assert found == [_maps(_plain(row)) for row in rows]


def _maps(row: list[Any]) -> list[Any]:
    """The row with its map in one form."""
    value = row[14]
    pairs = list(map(list, value.items())) if isinstance(value, dict) else value
    return [*row[:14], pairs, *row[15:]]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_moment_is_itself_in_every_zone(tmp_path: Path, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored as INT64 with ``parquet.utc-timezone`` does not hang on the zone of the machine."""
    for module in ("parquet", "parquet_encode"):
        monkeypatch.setattr(f"flowsql_connectors.formats.{module}.machine_zone", lambda: zone)
    rows = [[at, at.replace(tzinfo=datetime.UTC)] for at in MOMENTS]
    files = {"connector": "filesystem", "path": str(tmp_path), "format": "parquet", **INT64}
    table = table_of("t TIMESTAMP(3), z TIMESTAMP_LTZ(3)", files)
    insert(table, rows)
    (path,) = tmp_path.iterdir()
    assert [_plain(row) for row in _by_duckdb(path)] == [_plain(row) for row in rows]
    texts = [at.isoformat(" ", "milliseconds").removesuffix(".000") for at in MOMENTS]
    assert scan(table) == [[text, text + "Z"] for text in texts]


@pytest.mark.parametrize("writer", ["pyarrow", "DuckDB"])
def test_parquet_of_others(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "x"
    if writer == "pyarrow":
        columns = {
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
            "t": pa.array([MOMENTS[0], MOMENTS[2]], pa.timestamp("us")),
            "z": pa.array([MOMENTS[3], MOMENTS[4]], pa.timestamp("us", "UTC")),
            "a": pa.array([[1, None], None], pa.list_(pa.int32())),
        }
        pq.write_table(pa.table(columns), path, store_decimal_as_integer=True)
    else:
        with duckdb.connect() as session:
            session.execute("SET TimeZone = 'UTC'")
            session.execute(
                "COPY (SELECT 1.25::DECIMAL(9, 2) d, TIMESTAMP '0001-01-01 00:00:00.001' t, "
                "TIMESTAMPTZ '2024-03-10 02:30:00Z' z, [1, NULL]::INTEGER[] a UNION ALL SELECT NULL, "
                "TIMESTAMP '1969-12-31 23:59:59.999', TIMESTAMPTZ '9999-12-31 23:59:59.999Z', NULL) "
                f"TO '{path}' (FORMAT parquet)"
            )
    table = files_table("d DECIMAL(9, 2), t TIMESTAMP(3), z TIMESTAMP_LTZ(3), a ARRAY<INT>", tmp_path, "parquet")
    assert sorted(scan(table), key=str) == [
        ["1.25", "0001-01-01 00:00:00.001", "2024-03-10 02:30:00Z", [1, None]],
        [None, "1969-12-31 23:59:59.999", "9999-12-31 23:59:59.999Z", None],
    ]
