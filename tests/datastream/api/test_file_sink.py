"""``FileSink``: what PyFlink 2.3 wrote of the same streams; every row once over cuts, failures and restarts."""

from __future__ import annotations

import datetime
import itertools
import re
import threading
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flowsql.common import Configuration, Encoder, JobClient, RestartStrategies, Row, Types, WatermarkStrategy
from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flowsql.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from flowsql.datastream.connectors.number_seq import NumberSequenceSource
from flowsql.datastream.formats.csv import CsvBulkWriters, CsvSchema, CsvSchemaBuilder
from flowsql.datastream.formats.orc import OrcBulkWriters
from flowsql.datastream.formats.parquet import ParquetBulkWriters
from flowsql.table import DataTypes, StreamTableEnvironment
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.registry import is_source

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HERE = BucketAssigner.base_path_bucket_assigner()


def rows(folder: Path, charset: str = "UTF-8") -> FileSink.RowFormatBuilder:
    return FileSink.for_row_format(str(folder), Encoder.simple_string_encoder(charset)).with_bucket_assigner(HERE)


def files(folder: Path) -> list[tuple[str, str]]:
    """Visible files, ``U`` for ids of writers, and their contents."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return sorted((_UUID.sub("U", str(path.relative_to(folder))), path.read_text()) for path in found)


def lines(folder: Path) -> list[str]:
    return sorted(line for _, text in files(folder) for line in text.splitlines())


def hidden(folder: Path) -> list[Path]:
    return list(folder.rglob(".*"))


@pytest.mark.parametrize(
    ("elements", "type_", "text"),
    [
        ([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]), "(a,1)\n"),
        ([Row("a", 1, None)], Types.ROW([Types.STRING(), Types.INT(), Types.DOUBLE()]), "+I[a, 1, null]\n"),
        (
            [Row("a", 1.5, [1, 2])],
            Types.ROW_NAMED(["x", "y", "z"], [Types.STRING(), Types.DOUBLE(), Types.LIST(Types.INT())]),
            "+I[a, 1.5, [1, 2]]\n",
        ),
        (
            [Row("a", Row(1, "é"), {"k": 1})],
            Types.ROW(
                [Types.STRING(), Types.ROW([Types.INT(), Types.STRING()]), Types.MAP(Types.STRING(), Types.INT())]
            ),
            "+I[a, +I[1, é], {k=1}]\n",
        ),
        (
            [
                Row(
                    True, 1.0, 1e20, b"ab", datetime.date(2020, 1, 2), datetime.time(3, 4, 5),
                    datetime.datetime(2020, 1, 2, 3, 4, 5, 678000), [1.5],
                )
            ],
            Types.ROW(
                [
                    Types.BOOLEAN(), Types.FLOAT(), Types.DOUBLE(), Types.PRIMITIVE_ARRAY(Types.BYTE()),
                    Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.BASIC_ARRAY(Types.DOUBLE()),
                ]
            ),
            "+I[true, 1.0, 1.0E20, [97, 98], 2020-01-02, 03:04:05, 2020-01-02 03:04:05.678, [1.5]]\n",
        ),
        ([1.0, 1e-5, 1e7], Types.DOUBLE(), "1.0\n1.0E-5\n1.0E7\n"),
        # PyFlink writes the address of a byte array here.
        ([("a", 1), 5], None, "('a', 1)\n5\n"),
    ],
)  # fmt: skip
def test_lines_are_javas_texts(
    env: StreamExecutionEnvironment, tmp_path: Path, elements: list[Any], type_: TypeInformation | None, text: str
) -> None:
    env.from_collection(elements, type_).sink_to(rows(tmp_path).build())
    env.execute()
    assert files(tmp_path) == [("part-U-0", text)]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (
            "TIMESTAMP '2020-01-02 03:04:05.100', DATE '2020-01-02', TIME '03:04:05', "
            "CAST(1.50 AS DECIMAL(10, 2)), TRUE",
            "+I[2020-01-02T03:04:05.100, 2020-01-02, 03:04:05, 1.50, true]\n",
        ),
        (
            "CAST(TIMESTAMP '2020-01-02 03:04:05' AS TIMESTAMP_LTZ(3)), x'6162', ARRAY[1, 2], MAP['k', 1.5], "
            "ROW(1, 'x')",
            "+I[2020-01-02T03:04:05Z, [97, 98], [1, 2], {k=1.5}, +I[1, x]]\n",
        ),
        (
            "TIMESTAMP '2020-01-02 03:04:00', TIMESTAMP '2020-01-02 03:04:05.123456', TIME '03:04:00', "
            "CAST(NULL AS INT), CAST(1e10 AS DOUBLE), CAST(1.1 AS FLOAT), CAST(1000000 AS DECIMAL(20, 0))",
            "+I[2020-01-02T03:04, 2020-01-02T03:04:05.123456, 03:04, null, 1.0E10, 1.1, 1000000]\n",
        ),
        ("ARRAY['a', 'b'], ARRAY[TIMESTAMP '2020-01-02 03:04:05']", "+I[[a, b], [2020-01-02T03:04:05]]\n"),
    ],
)
def test_rows_of_tables_are_javas_texts(
    env: StreamExecutionEnvironment, tmp_path: Path, columns: str, text: str
) -> None:
    tables = StreamTableEnvironment.create(env)
    tables.get_config().set("table.local-time-zone", "UTC")
    tables.to_data_stream(tables.sql_query(f"SELECT {columns}")).sink_to(rows(tmp_path).build())
    env.execute()
    assert files(tmp_path) == [("part-U-0", text)]


def csv_schema() -> CsvSchemaBuilder:
    return CsvSchema.builder().add_number_column("id").add_string_column("name").add_boolean_column("b")


PLAIN = Types.ROW_NAMED(["id", "name", "b"], [Types.LONG(), Types.STRING(), Types.BOOLEAN()])
PLAIN_ROWS = [Row(1, "a,b", True), Row(None, "é\\x'y\"", None), Row(3, None, False)]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (csv_schema(), '1,"a,b",true\n,"é\\x\'y""",\n3,,false\n'),
        (csv_schema().set_use_header(), 'id,name,b\n1,"a,b",true\n,"é\\x\'y""",\n3,,false\n'),
        (csv_schema().set_null_value("NULL"), '1,"a,b",true\nNULL,"é\\x\'y""",NULL\n3,NULL,false\n'),
        (csv_schema().set_quote_char("'"), "1,'a,b',true\n,'é\\x''y\"',\n3,,false\n"),
        (csv_schema().disable_quote_char(), "1,a,b,true\n,é\\x'y\",\n3,,false\n"),
        (csv_schema().set_escape_char("\\"), '1,"a,b",true\n,"é\\\\x\'y""",\n3,,false\n'),
    ],
)
def test_csv_files_are_flinks(
    env: StreamExecutionEnvironment, tmp_path: Path, schema: CsvSchemaBuilder, text: str
) -> None:
    sink = FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(schema.build()))
    env.from_collection(PLAIN_ROWS, PLAIN).sink_to(sink.with_bucket_assigner(HERE).build())
    env.execute()
    assert files(tmp_path) == [("part-U-0", text)]


@pytest.mark.parametrize(
    ("schema", "type_", "row", "text"),
    [
        (
            CsvSchema.builder()
            .add_number_column("id", number_type=DataTypes.INT())
            .add_array_column("list", ",")
            .set_column_separator("|"),
            Types.ROW([Types.INT(), Types.LIST(Types.STRING())]),
            Row(1, ["x", "y"]),
            '1|"x,y"\n',
        ),
        (
            CsvSchema.builder()
            .add_number_column("d", DataTypes.DECIMAL(10, 2))
            .add_number_column("f", DataTypes.DOUBLE())
            .add_array_column("l", element_type=DataTypes.INT()),
            Types.ROW([Types.BIG_DEC(), Types.DOUBLE(), Types.OBJECT_ARRAY(Types.INT())]),
            Row(Decimal("100.50"), 1e10, [1, None]),
            "100.5,1.0E10,1;\n",
        ),
        (  # a column's own separator goes before the schema's
            CsvSchema.builder().add_array_column("l", element_type=DataTypes.INT()).set_array_element_separator("/"),
            Types.ROW([Types.LIST(Types.INT())]),
            Row([1, 2]),
            "1;2\n",
        ),
        (
            CsvSchema.builder()
            .add_array_column("l", element_type=DataTypes.INT())
            .remove_array_element_separator(0)
            .set_array_element_separator("/"),
            Types.ROW([Types.LIST(Types.INT())]),
            Row([1, 2]),
            "1/2\n",
        ),
    ],
)
def test_columns_of_csv_files(
    env: StreamExecutionEnvironment,
    tmp_path: Path,
    schema: CsvSchemaBuilder,
    type_: TypeInformation,
    row: Row,
    text: str,
) -> None:
    sink = FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(schema.build()))
    env.from_collection([row], type_).sink_to(sink.with_bucket_assigner(HERE).build())
    env.execute()
    assert files(tmp_path) == [("part-U-0", text)]


def test_parquet_files_hold_the_rows(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("s", DataTypes.STRING()),
            DataTypes.FIELD("l", DataTypes.ARRAY(DataTypes.INT())),
            DataTypes.FIELD("t", DataTypes.TIMESTAMP(3)),
        ]
    )
    options = Configuration().set_string("parquet.compression", "ZSTD")
    sink = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(row_type, options, True))
    type_ = Types.ROW([Types.STRING(), Types.LIST(Types.INT()), Types.SQL_TIMESTAMP()])
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5)
    stream = env.from_collection([Row("a", [1, 2], moment), Row(None, None, None)], type_)
    stream.sink_to(sink.with_bucket_assigner(HERE).build())
    env.execute()
    (path,) = tmp_path.iterdir()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    assert pq.read_table(path).to_pylist() == [
        {"s": "a", "l": [1, 2], "t": moment},
        {"s": None, "l": None, "t": None},
    ]


def test_folders_by_default_bear_the_hour(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    env.from_collection(["a", "b"], Types.STRING()).sink_to(sink.build())
    before = f"{datetime.datetime.now():%Y-%m-%d--%H}"
    env.execute()
    after = f"{datetime.datetime.now():%Y-%m-%d--%H}"
    ((name, text),) = files(tmp_path)
    assert name in (f"{before}/part-U-0", f"{after}/part-U-0")
    assert text == "a\nb\n"


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_files_are_merged(env: StreamExecutionEnvironment, tmp_path: Path, mode: RuntimeExecutionMode) -> None:
    """What PyFlink wrote, in both modes."""
    env.set_runtime_mode(mode)
    by_size = FileCompactStrategy.builder().set_size_threshold(20).set_num_compact_threads(2).build()
    sink = (
        rows(tmp_path)
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=10))
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("p").with_part_suffix("s").build())
        .enable_compact(by_size, FileCompactor.concat_file_compactor())
    )
    env.from_collection([f"{number:03}" for number in range(12)], Types.STRING()).sink_to(sink.build())
    env.execute()
    assert files(tmp_path) == [
        ("compacted-p-U-0s", "000\n001\n002\n003\n004\n005\n"),
        ("compacted-p-U-2s", "006\n007\n008\n009\n010\n011\n"),
    ]
    sink.disable_compact()
    env.from_collection(["x"], Types.STRING()).sink_to(sink.build())
    env.execute()
    assert ("p-U-0s", "x\n") in files(tmp_path)


def test_every_setting_reaches_the_writer(tmp_path: Path) -> None:
    merging = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).set_size_threshold(4)
    sink = (
        FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder("ISO-8859-1"))
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy", "Europe/Berlin"))
        .with_bucket_check_interval(5_000)
        .with_rolling_policy(RollingPolicy.default_rolling_policy(1, 2, 3))
        .with_output_file_config(OutputFileConfig("a", "b"))
        .enable_compact(merging.set_num_compact_threads(5).build(), FileCompactor.concat_file_compactor(b"\n"))
        .build()
    )
    assert dict(sink.spec().table.options) == {
        "connector": "file-sink",
        "path": str(tmp_path),
        "format": "lines",
        "charset": "ISO-8859-1",
        "bucket.pattern": "yyyy",
        "bucket.zone": "Europe/Berlin",
        "sink.rolling-policy.check-interval": "5000 ms",
        "sink.rolling-policy.file-size": "1 b",
        "sink.rolling-policy.rollover-interval": "2 ms",
        "sink.rolling-policy.inactivity-interval": "3 ms",
        "part.prefix": "a",
        "part.suffix": "b",
        "compaction.checkpoints": "3",
        "compaction.size": "4",
        "compaction.threads": "5",
        "compaction.by": "concat",
        "compaction.delimiter": "0a",
    }


def test_settings_are_those_of_the_writing_operator(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    stream = env.from_collection(range(8), Types.INT()).key_by(lambda value: value % 2)
    stream.sink_to(rows(tmp_path).build()).name("files").uid("my-files").set_parallelism(2)
    graph = env.job_graph()
    (vertex,) = [one for one in graph.vertices if one.operators[-1].uid == "my-files"]
    assert (vertex.operators[-1].name, vertex.parallelism) == ("files", 2)
    LocalCluster().run(graph)
    assert lines(tmp_path) == [str(number) for number in range(8)]
    assert len(files(tmp_path)) == 2


def test_the_older_sink_writes_the_same_files(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="Use FileSink instead"):
        sink = (
            StreamingFileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
            .with_bucket_assigner(HERE)
            .with_bucket_check_interval(1000)
            .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
            .build()
        )
    env.from_collection(["a"], Types.STRING()).add_sink(sink)
    env.execute()
    assert files(tmp_path) == [("part-U-0", "a\n")]


ROW_TYPE = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())])


def csv_sink(*columns: str) -> FileSink:
    schema = CsvSchema.builder()
    for column in columns:
        schema.add_number_column(column)
    return FileSink.for_bulk_format("/tmp/x", CsvBulkWriters.for_schema(schema.build())).build()


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda env: FileCompactStrategy.builder().build(), ValueError, "At least one trigger condition"),
        (
            lambda env: FileCompactStrategy.builder().enable_compaction_on_checkpoint(0),
            ValueError,
            "should be more than 0",
        ),
        (lambda env: FileCompactStrategy.builder().set_num_compact_threads(0), ValueError, "should be more than 0"),
        (lambda env: RollingPolicy.default_rolling_policy(part_size=0), ValueError, "part_size must be above 0"),
        (lambda env: rows(Path("/tmp/x")).with_bucket_check_interval(0), ValueError, "should be positive"),
        (lambda env: FileSink.for_row_format("", Encoder.simple_string_encoder()), ConnectorError, "empty"),
        (lambda env: FileSink.for_row_format("/tmp/x", None), TypeError, "not an Encoder"),
        (lambda env: FileSink.for_bulk_format("/tmp/x", None), TypeError, "not a BulkWriterFactory"),
        (
            lambda env: FileSink.for_bulk_format(
                "/tmp/x", ParquetBulkWriters.for_row_type(ROW_TYPE)
            ).with_rolling_policy(RollingPolicy.default_rolling_policy()),
            ValueError,
            "must be OnCheckpointRollingPolicy for bulk format",
        ),
        (
            lambda env: ParquetBulkWriters.for_row_type(ROW_TYPE, Configuration().set_string("parquet.nosuch", "1")),
            ValueError,
            r"'parquet\.nosuch' is no option of parquet files",
        ),
        (
            lambda env: OrcBulkWriters.for_row_type(ROW_TYPE, Configuration().set_string("orc.nosuch", "1")),
            ValueError,
            r"'orc\.nosuch' is no option of orc files",
        ),
        (lambda env: BucketAssigner.date_time_bucket_assigner("bogus"), ExecutionError, "Unknown pattern letter: b"),
        (lambda env: env.from_collection([1]).sink_to(csv_sink("a")), TypeError, "takes a stream of rows"),
        (
            lambda env: env.from_collection([(1,)], Types.TUPLE([Types.INT()])).sink_to(csv_sink("a", "b")),
            TypeError,
            "have 1 fields, the bulk format has 2",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(
    env: StreamExecutionEnvironment, use: Callable[[StreamExecutionEnvironment], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as refused:
        use(env)
    assert len(str(refused.value).splitlines()) == 1


def test_a_value_that_does_not_fit_its_column_fails(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    sink = FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(csv_schema().build()))
    mixed = Types.ROW([Types.STRING(), Types.STRING(), Types.BOOLEAN()])
    env.from_collection([Row("x", "y", True)], mixed).sink_to(sink.build())
    with pytest.raises(ExecutionError, match="A value of column 'id' is no BIGINT"):
        env.execute()
    assert hidden(tmp_path) == []


# -- once, over cuts and failures

TEXTS = [f"{number:04}" for number in range(400)]
BUILDERS: dict[str, Callable[[Path], FileSink]] = {
    "rolling": lambda folder: (
        rows(folder).with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=300)).build()
    ),
    "on checkpoints": lambda folder: (
        rows(folder).with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    ),
    "merging": lambda folder: (
        rows(folder)
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=100))
        .enable_compact(
            FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).set_size_threshold(400).build(),
            FileCompactor.concat_file_compactor(),
        )
        .build()
    ),
}


def copying(folder: Path, sink: Callable[[Path], FileSink], parallelism: int) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.configuration.set("flowsql.source.batch-rows", "16")
    env.from_collection(TEXTS, Types.STRING()).rebalance().sink_to(sink(folder)).uid("sink")
    return env.job_graph()


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(("before", "behind"), list(itertools.product((1, 2, 3, 4), repeat=2)))
def test_rows_are_written_once_over_a_cut(tmp_path: Path, name: str, before: int, behind: int) -> None:
    graph = copying(tmp_path, BUILDERS[name], before)
    (source,) = [node.uid for vertex in graph.vertices for node in vertex.operators if is_source(node.spec)]
    job = LocalCluster().submit(graph, cut={(source, 0): 150})
    job.wait(60)
    assert set(lines(tmp_path)) <= set(TEXTS[:150])
    LocalCluster().run(copying(tmp_path, BUILDERS[name], behind), restored=job.snapshot)
    assert lines(tmp_path) == TEXTS
    assert hidden(tmp_path) == []


class FailsOnce:
    """Lets elements through slowly until a checkpoint was committed, and fails at the next one."""

    def __init__(self, committed: Callable[[], bool]) -> None:
        self.committed = committed
        self.failed = threading.Event()
        self.never = threading.Event()

    def __deepcopy__(self, memo: Any) -> FailsOnce:
        return self

    def __call__(self, text: str) -> str:
        if not self.failed.is_set():
            if self.committed():
                self.failed.set()
                raise RuntimeError("on purpose")
            self.never.wait(0.01)
        return text


@pytest.mark.parametrize("sinks", [1, 2])
def test_rows_are_written_once_over_a_failure(tmp_path: Path, sinks: int) -> None:
    """With two sinks into one folder: neither takes the other one's files for leftovers of the first attempt."""
    options = Configuration()
    options.set_string("flowsql.source.batch-rows", "1").set_string("execution.checkpointing.interval", "10 ms")
    env = StreamExecutionEnvironment.get_execution_environment(options).set_parallelism(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    gate = FailsOnce(lambda: len(files(tmp_path)) >= 2 * sinks)
    stream = env.from_collection(TEXTS, Types.STRING()).map(gate, Types.STRING())
    for number in range(sinks):
        stream.rebalance().sink_to(BUILDERS["on checkpoints"](tmp_path)).uid(f"sink {number}").set_parallelism(2)
    env.execute()
    assert gate.failed.is_set()
    assert Counter(lines(tmp_path)) == Counter(dict.fromkeys(TEXTS, sinks))
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("name", ["rolling", "merging"])
@pytest.mark.parametrize("drain", [True, False])
def test_a_job_that_is_drained_shows_all_that_it_wrote(tmp_path: Path, name: str, drain: bool) -> None:
    """What a savepoint without the end leaves hidden is shown by the job that goes on from it."""
    folder = tmp_path / "out"
    never = threading.Event()

    def slowly(number: int) -> str:
        never.wait(0.001)
        return f"{number:04}"

    def run(options: Configuration, last: int) -> JobClient:
        env = StreamExecutionEnvironment.get_execution_environment(options).set_parallelism(1)
        env.configuration.set("flowsql.source.batch-rows", "1")
        numbers = env.from_source(NumberSequenceSource(1, last), WatermarkStrategy.no_watermarks(), "numbers")
        numbers.uid("numbers").map(slowly, Types.STRING()).sink_to(BUILDERS[name](folder)).uid("sink")
        return env.execute_async()

    client = run(Configuration(), 1_000_000)
    for _ in range(2000):
        if folder.exists():
            break
        client.trigger_savepoint(str(tmp_path / "beside")).result()
    path = client.stop_with_savepoint(drain, str(tmp_path / "saved")).result()
    shown = lines(folder)
    if drain:
        assert shown
        assert hidden(folder) == []
        assert shown == [f"{number:04}" for number in range(1, len(shown) + 1)]
        return
    assert hidden(folder)
    known = re.findall(r"[0-9]{4}", "".join(path.read_text() for path in folder.rglob("*") if path.is_file()))
    goes_on = Configuration().set_string("execution.state-recovery.path", path)
    run(goes_on, len(known) + 50).get_job_execution_result().result()
    assert lines(folder) == [f"{number:04}" for number in range(1, len(known) + 51)]
    assert hidden(folder) == []
