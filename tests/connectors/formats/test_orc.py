"""ORC: types both ways, projections, stripes, and what is refused."""

from __future__ import annotations

import datetime
import gzip
import hashlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import FlowSqlError
from tests.connectors.tables import columns_of, files_table, insert, scan, table_of

DDL = (
    "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, de DECIMAL(38, 4), c CHAR(3), st STRING, "
    "bi BYTES, dt DATE, t3 TIMESTAMP(3), t9 TIMESTAMP(9), z3 TIMESTAMP_LTZ(3), ai ARRAY<INT>, ms MAP<STRING, INT>, "
    "r ROW<x INT, y ROW<z STRING, w DECIMAL(5, 2)>>, ar ARRAY<ROW<p INT, q STRING>>, p STRING"
)
NOON = datetime.datetime(2026, 1, 2, 12, 0, 0, 678000)


def _row(n: int) -> list[Any]:
    if n % 3 == 2:
        return [None] * 19 + [str(n % 2)]
    return [
        n % 2 == 0, -n, n, n, 2**62 + n, n / 2, n / 4, Decimal(n) / 4, "ab ", f"té{n}", bytes([n]), NOON.date(), NOON,
        NOON, NOON.replace(tzinfo=datetime.UTC), [n, None], [("k", n), ("l", None)],
        {"x": n, "y": {"z": str(n), "w": Decimal(n)}}, [{"p": n, "q": None}, None], str(n % 2),
    ]  # fmt: skip


def _shown(n: int) -> list[Any]:
    if n % 3 == 2:
        return [None] * 19 + [str(n % 2)]
    at = "2026-01-02 12:00:00.678"
    return [
        n % 2 == 0, -n, n, n, 2**62 + n, n / 2, n / 4, f"{n / 4:.4f}", "ab", f"té{n}", "x" + bytes([n]).hex(),
        "2026-01-02", at, at, at + "Z", [n, None], [["k", n], ["l", None]],
        [n, [str(n), f"{n}.00"]], [[n, None], None], str(n % 2),
    ]  # fmt: skip


@pytest.mark.parametrize("partitions", [(), ("p",)])
def test_every_type_both_ways(tmp_path: Path, partitions: tuple[str, ...]) -> None:
    table = files_table(DDL, tmp_path, "orc", partitions)
    insert(table, [_row(n) for n in range(50)])
    assert sorted(scan(table), key=str) == sorted(map(_shown, range(50)), key=str)
    assert scan(table, select=["r", "i"]) == [[row[17], row[3]] for row in scan(table)]
    assert len(scan(table, select=[])) == 50


CODECS = [(None, "ZLIB"), ("NONE", "UNCOMPRESSED"), ("snappy", "SNAPPY"), ("ZSTD", "ZSTD")]


@pytest.mark.parametrize(("codec", "stored"), CODECS)
def test_codecs_and_stripes(tmp_path: Path, codec: str | None, stored: str) -> None:
    options = {} if codec is None else {"orc.compress": codec}
    sizes = {"orc.stripe.size": "200000", "orc.compress.size": "65536", "orc.row.index.stride": "1000"}
    files = {"connector": "filesystem", "path": str(tmp_path), "format": "orc"}
    table = table_of("id BIGINT, s STRING", {**files, **sizes, **options})
    rows = [[n, hashlib.sha256(b"%d" % n).hexdigest()] for n in range(40_000)]
    insert(table, rows)
    (path,) = tmp_path.iterdir()
    file = orc.ORCFile(path)
    assert (file.compression, file.row_index_stride, file.compression_size) == (stored, 1000, 65536)
    format_ = format_factory("orc").create(OptionValues({}), table)
    ranges = format_.ranges(FileView(str(path), path.stat().st_size), 1 << 20)
    assert len(ranges) == file.nstripes > 1
    assert scan(table, parallelism=1) == rows


def test_columns_that_a_file_lacks_or_has_otherwise(tmp_path: Path) -> None:
    orc.write_table(pa.table({"i": pa.array([1, 2], pa.int32()), "s": ["x", "y"]}), tmp_path / "x.orc")
    assert scan(files_table("gone ROW<x INT>, i BIGINT, d DOUBLE", tmp_path, "orc")) == [
        [None, 1, None],
        [None, 2, None],
    ]
    assert scan(files_table("gone INT", tmp_path, "orc")) == [[None], [None]]
    with pytest.raises(FlowSqlError, match=r"Column 's' of file .*x\.orc is string, which does not fit INT"):
        scan(files_table("s INT", tmp_path, "orc"))


def test_compressed_as_a_whole(tmp_path: Path) -> None:
    insert(files_table("i INT", tmp_path / "plain", "orc"), [[1], [2]])
    (path,) = (tmp_path / "plain").iterdir()
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "x.orc.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert scan(files_table("i INT", tmp_path / "packed", "orc")) == [[1], [2]]


def test_what_is_refused(tmp_path: Path) -> None:
    for ddl, said in (("a TIME(3)", r"Unsupported type: TIME\(3\)"), ("a MULTISET<INT>", "Unsupported type: MULTISET")):
        with pytest.raises(FlowSqlError, match=said):
            insert(files_table(ddl, tmp_path / "t", "orc"), [])
        with pytest.raises(FlowSqlError, match=said):
            format_factory("orc").create(OptionValues({}), files_table(ddl, tmp_path, "orc")).encoder(columns_of(ddl))
    (tmp_path / "x.orc").write_bytes(b"no orc at all")
    with pytest.raises(FlowSqlError, match=r"x\.orc is no readable orc file"):
        scan(files_table("a INT", tmp_path, "orc"))


def test_times_that_arrow_cannot_hold_are_errors(tmp_path: Path) -> None:
    table = files_table("a TIMESTAMP(3)", tmp_path, "orc")
    insert(table, [[datetime.datetime(9999, 12, 31)]])
    with pytest.raises(FlowSqlError, match="out of range for nanosecond resolution"):
        scan(table)


def test_moments_that_java_cannot_read_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = files_table("a ROW<t TIMESTAMP(3)>", tmp_path, "orc")
    insert(table, [[{"t": datetime.datetime(1969, 12, 31, 23, 59, 59)}], [{"t": NOON}], [None]])
    assert "before 1970" not in caplog.text
    insert(table, [[{"t": datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000)}]])
    assert caplog.text.count("before 1970") == 1
    assert [["1969-12-31 23:59:59.500"]] in scan(table)
