"""Parquet files that Flink 2.3 wrote, the layout that its files have, and values whose bytes others must read.

``data/flink/*.parquet`` were written by Flink: ``int96`` as by default, ``int64`` with
``parquet.write.int64.timestamp`` and ``parquet.utc-timezone``. Files of FlowSQL in this layout were read back by Flink,
column by column.
"""

from __future__ import annotations

import datetime
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsql_core.errors import FlowSqlError
from tests.connectors.tables import files_table, insert, scan

FLINK = Path(__file__).parents[1] / "data" / "flink"
DDL = (
    "id INT NOT NULL, b BOOLEAN, i8 BIGINT, d92 DECIMAL(9,2), d184 DECIMAL(18,4), d38 DECIMAL(38,10), s STRING, "
    "da DATE, ts3 TIMESTAMP(3), ts6 TIMESTAMP(6), a ARRAY<DECIMAL(9,2)>, m MAP<STRING, INT>, "
    "r ROW<x INT NOT NULL, y ROW<z STRING, w DECIMAL(5,2)>>, ar ARRAY<ROW<p INT, q STRING>>, "
    "nn ROW<p INT NOT NULL, q STRING> NOT NULL, an ARRAY<INT NOT NULL>, tm TIME(3), ltz TIMESTAMP_LTZ(3)"
)
MOMENTS = (
    "0001-01-01 00:00:00.001", "1581-10-10 12:30:00.500", "1969-12-31 23:59:59.999", "2024-03-10 02:30:00",
    "9999-12-31 23:59:59.999",
)  # fmt: skip


def _rows() -> list[list[Any]]:
    made = []
    for n, at in enumerate(MOMENTS, 1):
        plain = [n, True, n, "-1.25", "12345.6789", "-1234567890123456789.0123456789", f"é{n % 2}", at[:10], at, at]
        nested = [["1.50", None], [["k", n]], [n, ["z", "1.25"]], [[n, "q"]], [n, "q"], [n, 2]]
        made.append([*plain, *nested, "10:20:30.123", at + "Z"])
    return made


def test_a_file_of_flink_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes((FLINK / "int64.parquet").read_bytes())
    table = files_table(DDL, tmp_path, "parquet", parquet__utc_timezone="true")
    assert sorted(scan(table)) == _rows()


def test_a_file_of_flink_with_int96_is_read_but_for_moments_that_flink_shifts(tmp_path: Path) -> None:
    """Flink 2.3 writes INT96 a second off before 1970 where there is a fraction, and cannot read that itself."""
    (tmp_path / "x").write_bytes((FLINK / "int96.parquet").read_bytes())
    moments = [8, 9, 17]
    found, expected = sorted(scan(files_table(DDL, tmp_path, "parquet"))), _rows()
    for row, wanted in zip(found, expected, strict=True):
        others = [place for place in range(len(row)) if place not in moments]
        assert [row[place] for place in others] == [wanted[place] for place in others]
    assert [row[8] for row in found[3:]] == list(MOMENTS[3:])


def _layout(path: Path) -> list[str]:
    lines = str(pq.ParquetFile(path).schema).splitlines()[2:]
    # Flink writes the older of two annotations of a map's entries, which mean the same, and as INT64 a TIMESTAMP_LTZ
    # that is not marked as a moment: others read it as a TIMESTAMP.
    moment = re.compile(r"(ltz \(Timestamp\(isAdjustedToUTC=)false")
    return [moment.sub(r"\1true", line.replace("key_value (Map)", "key_value")) for line in lines]


@pytest.mark.parametrize("name", ["int96", "int64"])
def test_the_layout_is_that_of_flink(tmp_path: Path, name: str) -> None:
    options = {"parquet__write__int64__timestamp": "true", "parquet__utc_timezone": "true"} if name == "int64" else {}
    insert(files_table(DDL, tmp_path, "parquet", **options), [])
    insert(files_table(DDL, tmp_path, "parquet", **options), [_values(1)])
    for path in tmp_path.iterdir():
        assert _layout(path) == _layout(FLINK / f"{name}.parquet")


def _values(n: int) -> list[Any]:
    at = datetime.datetime(2024, 3, 10, 2, 30)
    row = {"x": n, "y": {"z": "z", "w": Decimal("1.25")}}
    plain = [n, True, n, Decimal("-1.25"), Decimal("12345.6789"), Decimal(1), "s", at.date(), at, at]
    nested = [[Decimal("1.50"), None], [("k", n)], row, [{"p": n, "q": "q"}, None], {"p": n, "q": None}, [n, 2]]
    return [*plain, *nested, datetime.time(10, 20, 30, 123000), at.replace(tzinfo=datetime.UTC)]


def test_short_decimals_have_no_dictionary(tmp_path: Path) -> None:
    """On one Flink's reader fails."""
    insert(files_table(DDL, tmp_path, "parquet"), [_values(n % 2) for n in range(100)])
    (path,) = tmp_path.iterdir()
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    plain = {column.path_in_schema for column in columns if "RLE_DICTIONARY" not in column.encodings}
    assert plain == {"b", "d92", "d184", "a.list.element", "r.y.w"}


@pytest.mark.parametrize(
    ("unit", "stored"),
    [("millis", [-1, -631152000000, 1735689599999]), ("micros", [-1, -631151999999100, 1735689599999999])],
)
def test_digits_are_cut_off_before_1970_too(tmp_path: Path, unit: str, stored: list[int]) -> None:
    moments = [
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime.datetime(1950, 1, 1, 0, 0, 0, 900),
        datetime.datetime(2024, 12, 31, 23, 59, 59, 999_999),
    ]
    options = {"parquet__write__int64__timestamp": "true", "parquet__timestamp__time__unit": unit}
    table = files_table("ts TIMESTAMP(6), n ROW<ts TIMESTAMP(6)>", tmp_path, "parquet", **options)
    insert(table, [[at, {"ts": at}] for at in moments])
    assert scan(files_table("ts BIGINT", tmp_path, "parquet")) == [[value] for value in stored]
    (path,) = tmp_path.iterdir()
    nested = pq.read_table(path).column("n").combine_chunks().field("ts")
    assert nested.cast(pa.int64()).to_pylist() == stored
    assert scan(files_table("ts TIMESTAMP(3)", tmp_path, "parquet"))[0] == ["1969-12-31 23:59:59.999"]


def test_years_that_nanoseconds_cannot_hold_are_refused(tmp_path: Path) -> None:
    options = {"parquet__write__int64__timestamp": "true", "parquet__timestamp__time__unit": "nanos"}
    table = files_table("id INT, ts TIMESTAMP(6)", tmp_path, "parquet", **options)
    with pytest.raises(FlowSqlError, match="Column 'ts' holds a moment that a file of parquet cannot hold in nanos"):
        insert(table, [[1, datetime.datetime(9999, 12, 31)]])


def test_bytes_as_texts(tmp_path: Path) -> None:
    one = uuid.UUID("12345678-1234-5678-9abc-def012345678")
    columns = {
        "u": pa.array([one.bytes, None], pa.uuid()),
        "f": pa.array([b"abcd", None], pa.binary(4)),
        "b": pa.array([b"a\xffb", None], pa.binary()),
        "s": pa.array([b"\xc3\xa4\xe2\x82", None], pa.binary()).view(pa.string()),
        "n": pa.StructArray.from_arrays([pa.array([b"\xff", b"x"], pa.binary()).view(pa.string())], ["t"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "x")
    ddl = "u STRING, b STRING, s STRING, n ROW<t STRING>"
    assert scan(files_table(ddl, tmp_path, "parquet")) == [
        [str(one), "a\ufffdb", "ä\ufffd", ["\ufffd"]], [None, None, None, ["x"]],
    ]  # fmt: skip
    assert scan(files_table("u BYTES", tmp_path, "parquet"))[0] == ["x" + one.hex]
    with pytest.raises(FlowSqlError, match="bytes of a fixed length are no text"):
        scan(files_table("f STRING", tmp_path, "parquet"))
