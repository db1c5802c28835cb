"""Parquet and orc files beside Spark, Delta Lake and Iceberg: each reads what FlowSQL writes, and FlowSQL what they do.

Each type, nested too, moments of five ages, and zones UTC and America/New_York where the reader has one.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from flowsql_core.errors import ExecutionError
from tests.connectors.formats.test_other_engines import DDL, INT64, MOMENTS, NEAR, _by_arrow, _maps, _plain, _rows
from tests.connectors.tables import insert, scan, table_of

ZONES: Final = ("UTC", "America/New_York")
UTC: Final = {"parquet.utc-timezone": "true"}


def write(folder: Path, moments: list[datetime.datetime], format_: str = "parquet", **options: str) -> Path:
    folder.mkdir()
    insert(
        table_of(DDL, {"connector": "filesystem", "path": str(folder), "format": format_, **options}), _rows(moments)
    )
    (file,) = folder.iterdir()
    return file.rename(folder / f"part.{format_}")


def read(folder: Path | str) -> list[Any]:
    files = {"connector": "filesystem", "path": str(folder), "format": "parquet", **UTC}
    return sorted(scan(table_of(DDL, files)), key=lambda row: row[0])


def expected(moments: list[datetime.datetime]) -> list[list[Any]]:
    return [_maps(_plain(row)) for row in _rows(moments)]


def found(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted((_maps(_plain(row)) for row in rows), key=lambda row: row[0])


def test_delta_lake(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    file = write(tmp_path / "here", MOMENTS, **INT64)
    ours = read(tmp_path / "here")
    table = pq.read_table(file)
    deltalake.convert_to_deltalake(str(tmp_path / "here"))
    rows = _by_arrow(lambda path: pa.table(deltalake.DeltaTable(str(path)).to_pyarrow_table()))(tmp_path / "here")
    assert found(rows) == expected(MOMENTS)
    deltalake.write_deltalake(str(tmp_path / "there"), table)
    assert read(tmp_path / "there") == ours


def test_iceberg(tmp_path: Path) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("n")
    file = write(tmp_path / "here", MOMENTS, **INT64)
    ours = read(tmp_path / "here")
    # Of pyiceberg 0.12: an array of rows that is NULL is read, and written, as one without elements.
    ours[-1][16] = []
    wanted = expected(MOMENTS)
    wanted[-1][16] = []
    table = pq.read_table(file)
    micros = [
        field.with_type(pa.timestamp("us", field.type.tz)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    theirs = catalog.create_table("n.theirs", schema=pa.schema(micros))
    theirs.add_files([str(file)])
    assert found(_by_arrow(lambda _: theirs.scan().to_arrow())(file)) == wanted
    written = catalog.create_table("n.written", schema=pa.schema(micros))
    written.append(table.cast(pa.schema(micros)))
    assert read(written.location().removeprefix("file://") + "/data") == ours


@pytest.mark.parametrize("type_", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(6)", "DATE"])
def test_numbers_in_orc_are_no_times(tmp_path: Path, type_: str) -> None:
    orc.write_table(pa.table({"t": [1_700_000_000_000_000]}), tmp_path / "a.orc")
    files = {"connector": "filesystem", "path": str(tmp_path), "format": "orc"}
    with pytest.raises(ExecutionError, match=r"Column 't' of file .* is int64, .*a number is no time"):
        scan(table_of(f"t {type_}", files))


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark.sql")
    session = pyspark.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("zone", ZONES)
def test_spark_reads(spark: Any, tmp_path: Path, zone: str) -> None:
    """INT96 holds no year that nanoseconds in 64 bits do not; orc before 1970 cannot be read by Java at all."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    cases = [("parquet", INT64, MOMENTS), ("parquet", {}, NEAR), ("orc", {}, [MOMENTS[3]])]
    for number, (format_, options, moments) in enumerate(cases):
        write(tmp_path / f"{number}", moments, format_, **options)
        frame = spark.read.format(format_).load(str(tmp_path / f"{number}"))
        rows = _by_arrow(lambda _, frame=frame: frame.toArrow())(tmp_path)
        assert found(rows) == expected(moments)


#: One row of Spark: a moment's day, its wall clock, and the moment in UTC.
OF_SPARK: Final = """SELECT 1 id, 9007199254740993L l, CAST(1.5 AS FLOAT) f, CAST(1.25 AS DECIMAL(9, 2)) d9,
    CAST('-1234567890123456789.0123456789' AS DECIMAL(38, 10)) d38, 'é' s, X'01FF' bi, DATE'{day}' dt,
    TIMESTAMP_NTZ'{at}' t, TIMESTAMP'{at}Z' z, array(CAST(1.5 AS DECIMAL(9, 2)), NULL) a, map('k', 1L) m,
    named_struct('x', 1, 'y', named_struct('w', CAST(1.25 AS DECIMAL(5, 2)))) r,
    array(named_struct('p', 1, 'q', 'z'), NULL) ar"""
SPARK_DDL: Final = (
    "id INT, l BIGINT, f FLOAT, d9 DECIMAL(9, 2), d38 DECIMAL(38, 10), s STRING, bi BYTES, dt DATE, t TIMESTAMP(6), "
    "z TIMESTAMP_LTZ(6), a ARRAY<DECIMAL(9, 2)>, m MAP<STRING, BIGINT>, r ROW<x INT, y ROW<w DECIMAL(5, 2)>>, "
    "ar ARRAY<ROW<p INT, q STRING>>"
)


@pytest.mark.nightly
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_parquet_of_spark(spark: Any, tmp_path: Path, zone: str, kind: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    for at in MOMENTS:
        text = at.isoformat(" ", "milliseconds").removesuffix(".000")
        folder = tmp_path / f"{at.year}"
        spark.sql(OF_SPARK.format(day=at.date(), at=text)).write.parquet(str(folder))
        files = {"connector": "filesystem", "path": str(folder), "format": "parquet", **UTC}
        assert scan(table_of(SPARK_DDL, files)) == [
            [
                1, 9007199254740993, 1.5, "1.25", "-1234567890123456789.0123456789", "é", "x01ff", str(at.date()), text,
                f"{text}Z", ["1.50", None], [["k", 1]], [1, ["1.25"]], [[1, "z"], None],
            ]
        ]  # fmt: skip


@pytest.mark.nightly
def test_orc_of_spark(spark: Any, tmp_path: Path) -> None:
    """A TIMESTAMP_NTZ is a number in Spark's files, which is refused; what it writes a second late is left out."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for number, text in enumerate(("1969-12-31 23:59:58.5", "2024-03-10 02:30:00", "1900-01-01 00:00:00.25")):
        folder = tmp_path / f"{number}"
        spark.sql(OF_SPARK.format(day="2024-03-10", at=text)).write.orc(str(folder))
        files = {"connector": "filesystem", "path": str(folder), "format": "orc"}
        moment = text if "." not in text else text.ljust(text.index(".") + 4, "0")
        assert scan(table_of("z TIMESTAMP_LTZ(3), ar ARRAY<ROW<p INT, q STRING>>", files)) == [
            [f"{moment}Z", [[1, "z"], None]]
        ]
        with pytest.raises(ExecutionError, match="a number is no time"):
            scan(table_of("t TIMESTAMP(3)", files))
