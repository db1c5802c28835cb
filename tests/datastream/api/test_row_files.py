"""Files of rows by columns: parquet read as a source, parquet and orc written, each row once over a failure."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from flowsql.common import Configuration, RestartStrategies, Row, Types, WatermarkStrategy
from flowsql.common.serialization import BulkWriterFactory
from flowsql.datastream import DataStream, StreamExecutionEnvironment
from flowsql.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from flowsql.datastream.connectors.hybrid_source import HybridSource
from flowsql.datastream.formats.avro import AvroBulkWriters, AvroSchema, GenericRecordAvroTypeInfo
from flowsql.datastream.formats.orc import OrcBulkWriters
from flowsql.datastream.formats.parquet import AvroParquetWriters, ParquetBulkWriters, ParquetColumnarRowInputFormat
from flowsql.table import DataTypes as D
from flowsql.table.types import DataType
from flowsql_core.errors import ExecutionError, NotSupportedYetError

HERE = BucketAssigner.base_path_bucket_assigner()
NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def row_type(**fields: DataType) -> Any:
    return D.ROW([D.FIELD(name, type_) for name, type_ in fields.items()])


BASIC: Final = row_type(
    c=D.CHAR(10), v=D.VARCHAR(10), b=D.BYTES(), o=D.BOOLEAN(), d=D.DECIMAL(2, 0), i=D.INT(), l=D.BIGINT(), f=D.DOUBLE(),
    dt=D.DATE().bridged_to("java.sql.Date"), ts=D.TIMESTAMP(3).bridged_to("java.sql.Timestamp"),
    a=D.ARRAY(D.STRING()), m=D.MAP(D.INT(), D.STRING()),
)  # fmt: skip
BASIC_INFO: Final = Types.ROW_NAMED(
    ["c", "v", "b", "o", "d", "i", "l", "f", "dt", "ts", "a", "m"],
    [
        Types.STRING(), Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.BOOLEAN(), Types.BIG_DEC(),
        Types.INT(), Types.LONG(), Types.DOUBLE(), Types.SQL_DATE(), Types.SQL_TIMESTAMP(),
        Types.OBJECT_ARRAY(Types.STRING()), Types.MAP(Types.INT(), Types.STRING()),
    ],
)  # fmt: skip
ROWS: Final = [
    Row(
        "char", "varchar", b"\x00bytes", True, Decimal("1.5"), 2**31 - 1, -(2**63), 2e-308,
        datetime.date(1970, 1, 1), datetime.datetime(1970, 1, 2, 3, 4, 5, 600_000), ["a", "b"], {0: "a", 1: "b"},
    ),
    Row(*[None] * 12),
]  # fmt: skip


def write(env: StreamExecutionEnvironment, folder: Path, factory: BulkWriterFactory) -> Path:
    sink = FileSink.for_bulk_format(str(folder), factory).with_bucket_assigner(HERE).build()
    env.from_collection(ROWS, BASIC_INFO).sink_to(sink)
    env.execute()
    (file,) = folder.glob("part-*")
    return file


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as values:
        return list(values)


def columnar(env: StreamExecutionEnvironment, path: Path, *settings: Any, **fields: DataType) -> list[Any]:
    reader = ParquetColumnarRowInputFormat(row_type(**fields), *settings)
    source = FileSource.for_bulk_file_format(reader, str(path)).build()
    return collected(env.from_source(source, NO_WATERMARKS, "parquet"))


def test_rows_go_into_orc_files(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    options = Configuration().set_string("orc.compress", "ZSTD")
    file = write(env, tmp_path, OrcBulkWriters.for_row_type(BASIC, options))
    read = orc.ORCFile(file)
    assert read.compression == "ZSTD"
    first, second = read.read().to_pylist()
    assert set(second.values()) == {None}
    assert first == {
        "c": "char", "v": "varchar", "b": b"\x00bytes", "o": True, "d": Decimal(2), "i": 2**31 - 1, "l": -(2**63),
        "f": 2e-308, "dt": datetime.date(1970, 1, 1), "ts": datetime.datetime(1970, 1, 2, 3, 4, 5, 600_000),
        "a": ["a", "b"], "m": [(0, "a"), (1, "b")],
    } | {"c": first["c"]}  # fmt: skip
    assert first["c"].rstrip() == "char"


def test_rows_of_parquet_files_are_a_source(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    write(env, tmp_path, ParquetBulkWriters.for_row_type(BASIC, utc_timestamp=True))
    kinds = {field.name: field.data_type for field in BASIC.fields}
    first, second = columnar(env, tmp_path, None, 10, True, True, **kinds)
    assert first.as_dict() == {**dict(zip(kinds, ROWS[0], strict=True)), "d": Decimal(2)}
    assert list(second) == [None] * 12
    assert columnar(env, tmp_path, None, 1, False, True, l=D.BIGINT(), missing=D.STRING()) == [
        Row(l=-(2**63), missing=None),
        Row(l=None, missing=None),
    ]


def test_names_in_any_case_of_letters(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    pq.write_table(pa.table({"Id": [1], "x": ["a"]}), tmp_path / "a.parquet")
    assert columnar(env, tmp_path, None, 10, True, True, ID=D.BIGINT()) == [Row(ID=None)]
    assert columnar(env, tmp_path, None, 10, True, False, ID=D.BIGINT(), X=D.STRING()) == [Row(ID=1, X="a")]
    pq.write_table(pa.table({"id": [1], "ID": [2]}), tmp_path / "a.parquet")
    with pytest.raises(ExecutionError, match="columns 'id' and 'ID', which differ in case alone"):
        columnar(env, tmp_path, None, 10, True, False, ID=D.BIGINT())


def test_a_moment_is_a_datetime_of_the_machines_zone(
    env: StreamExecutionEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    pq.write_table(pa.table({"t": pa.array([moment], pa.timestamp("ms", "UTC"))}), tmp_path / "a.parquet")
    (row,) = columnar(env, tmp_path, None, 10, True, True, t=D.TIMESTAMP_LTZ(3))
    assert row.t == moment
    assert row.t.utcoffset() == datetime.timedelta(hours=8)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="batch_size must be above 0"):
        ParquetColumnarRowInputFormat(BASIC, None, 0)
    with pytest.raises(TypeError, match="row_type must be an instance of RowType"):
        ParquetColumnarRowInputFormat(D.INT())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is not a BulkFormat"):
        FileSource.for_bulk_file_format(object(), "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'DATE' does not support a conversion from or to class 'java\.lang\.String'"):
        D.DATE().bridged_to("java.lang.String")
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(BASIC), "x").build()
    with pytest.raises(NotSupportedYetError, match="hybrid sources"):
        HybridSource.builder(source).build().spec_maker()


NUMBER: Final = AvroSchema.parse_string('{"type": "record", "name": "n", "fields": [{"name": "n", "type": "long"}]}')


def read_avro(file: Path) -> list[int]:
    with file.open("rb") as stream:
        return [record["n"] for record in fastavro.reader(stream)]  # type: ignore[call-overload, index]


WRITERS: Final[dict[str, tuple[BulkWriterFactory, Any, Callable[[Path], list[int]]]]] = {
    "avro": (AvroBulkWriters.for_generic_record(NUMBER), GenericRecordAvroTypeInfo(NUMBER), read_avro),
    "parquet of avro": (
        AvroParquetWriters.for_generic_record(NUMBER),
        GenericRecordAvroTypeInfo(NUMBER),
        lambda file: pq.read_table(file)["n"].to_pylist(),
    ),
    "orc": (
        OrcBulkWriters.for_row_type(row_type(n=D.BIGINT())),
        Types.ROW_NAMED(["n"], [Types.LONG()]),
        lambda file: orc.read_table(file)["n"].to_pylist(),
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_are_written_once_over_a_failure(tmp_path: Path, name: str) -> None:
    factory, type_, read = WRITERS[name]
    options = Configuration()
    options.set_string("flowsql.source.batch-rows", "1").set_string("execution.checkpointing.interval", "10 ms")
    env = StreamExecutionEnvironment.get_execution_environment(options).set_parallelism(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    failed, never = threading.Event(), threading.Event()

    class FailsOnce:
        def __deepcopy__(self, memo: Any) -> FailsOnce:
            return self

        def __call__(self, number: int) -> Any:
            if not failed.is_set():
                if len(list(tmp_path.glob("part-*"))) >= 2:
                    failed.set()
                    raise RuntimeError("on purpose")
                never.wait(0.01)
            return {"n": number} if isinstance(type_, GenericRecordAvroTypeInfo) else Row(n=number)

    sink = FileSink.for_bulk_format(str(tmp_path), factory).with_bucket_assigner(HERE).build()
    env.from_collection(range(300), Types.LONG()).map(FailsOnce(), type_).sink_to(sink)
    env.execute()
    assert failed.is_set()
    assert sorted(number for file in tmp_path.glob("part-*") for number in read(file)) == list(range(300))
    assert list(tmp_path.glob(".*")) == []
