"""What schemas and fields declare at the bridges: time attributes, timestamps beside the rows, required fields; and
INSERTs that run with the job of the streams."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from flowsql.common import Instant, Row, RowKind, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import DataStream, ProcessFunction, StreamExecutionEnvironment
from flowsql.table import ChangelogMode, DataTypes, Schema, StreamTableEnvironment, Table, TableEnvironment
from flowsql.table.expressions import col
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError, NotSupportedYetError

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class _Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class _WithTime(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield list(value), ctx.timestamp()


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


@pytest.fixture
def tables(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    made = StreamTableEnvironment.create(env)
    made.get_config().set_local_timezone("Europe/Berlin")
    return made


def timed(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Second())
    return env.from_collection([("a", 1000), ("b", 4000)], PAIR).assign_timestamps_and_watermarks(strategy)


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as values:
        return list(values)


def columns_of(table: Table) -> list[tuple[str, str]]:
    schema = table.get_resolved_schema()
    return [(column.get_name(), str(column)) for column in schema.get_columns()]


@pytest.mark.parametrize(
    ("type_", "hour"), [("TIMESTAMP_LTZ(3)", 0), ("TIMESTAMP_LTZ(6)", 0), ("TIMESTAMP(3)", 1), ("TIMESTAMP(9)", 1)]
)
def test_timestamps_are_columns_of_the_declared_type(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, type_: str, hour: int
) -> None:
    schema = Schema.new_builder().column_by_metadata("rowtime", type_).build()
    rows = tables.from_data_stream(timed(env), schema).select(col("rowtime").cast(DataTypes.STRING())).to_arrow()
    # Of a type with a zone and of one without the text is the clock of the session.
    texts = rows.column(0).to_pylist()
    assert [text[:19] for text in texts] == ["1970-01-01 01:00:01", "1970-01-01 01:00:04"]
    values = tables.from_data_stream(timed(env), schema).select(col("rowtime")).to_arrow().column(0)
    assert [value.hour for value in values.to_pylist()] == [hour, hour]


@pytest.mark.parametrize(("type_", "key"), [("BIGINT", None), ("STRING", "rowtime"), ("TIMESTAMP_LTZ(3)", "nope")])
def test_other_metadata_is_refused(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, type_: str, key: str | None
) -> None:
    schema = Schema.new_builder().column_by_metadata("rowtime", type_, key).build()
    with pytest.raises(BindError, match=r"Invalid (data type for metadata column|metadata key)"):
        tables.from_data_stream(timed(env), schema)


def test_fields_may_be_time_attributes(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    table = tables.from_data_stream(timed(env), col("name"), col("n"), col("rt").rowtime, col("pt").proctime)
    assert columns_of(table) == [
        ("name", "`name` STRING"),
        ("n", "`n` BIGINT"),
        ("rt", "`rt` TIMESTAMP(3) *ROWTIME*"),
        ("pt", "`pt` TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*"),
    ]
    # The clock is UTC's, whatever the session's zone; the row time becomes the timestamps again.
    rows = collected(tables.to_data_stream(table.select(col("name"), col("rt"))).process(_WithTime()))
    assert rows == [
        (["a", datetime.datetime(1970, 1, 1, 0, 0, 1)], 1000),
        (["b", datetime.datetime(1970, 1, 1, 0, 0, 4)], 4000),
    ]


def test_a_time_attribute_takes_the_place_of_a_field(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    by_place = tables.from_data_stream(timed(env), col("name"), col("at").rowtime)
    assert columns_of(by_place) == [("name", "`name` STRING"), ("at", "`at` TIMESTAMP(3) *ROWTIME*")]
    by_name = tables.from_data_stream(timed(env), col("f1").rowtime, col("f0"))
    assert columns_of(by_name) == [("f1", "`f1` TIMESTAMP(3) *ROWTIME*"), ("f0", "`f0` STRING")]


def test_fields_that_are_not_there_are_refused(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    with pytest.raises(BindError, match="does not match number of input fields"):
        tables.from_data_stream(timed(env), col("a"), col("b"), col("c"))
    with pytest.raises(BindError, match="zz is not a field of the stream"):
        tables.from_data_stream(timed(env), col("f1"), col("zz"))
    with pytest.raises(NotSupportedYetError, match="as a field of from_data_stream"):
        tables.from_data_stream(timed(env), col("f1") + 1)


def test_a_timestamp_may_stand_beside_the_rows(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    source = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)").build()
    target = (
        Schema.new_builder()
        .column("n", DataTypes.BIGINT())
        .column("name", DataTypes.STRING())
        .column_by_metadata("rowtime", DataTypes.TIMESTAMP_LTZ(3))
        .build()
    )
    turned = tables.from_data_stream(timed(env), source).select(col("f1"), col("f0"), col("rowtime"))
    stream = tables.to_changelog_stream(turned, target)
    assert collected(stream.process(_WithTime())) == [([1000, "a"], 1000), ([4000, "b"], 4000)]


def test_required_fields_are_never_null(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    target = Schema.new_builder().column("a", DataTypes.STRING().not_null()).column("b", DataTypes.BIGINT()).build()
    whole = tables.from_elements([("x", 1)], ["a", "b"])
    assert collected(tables.to_changelog_stream(whole, target)) == [Row(a="x", b=1)]
    holes = tables.from_elements([("x", 1), (None, 2)], ["a", "b"])
    with pytest.raises(ExecutionError, match="Column 'a' is NOT NULL, however, a null value"):
        collected(tables.to_changelog_stream(holes, target))


def test_a_key_and_upserts_leave_out_what_was_before(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    totals = (
        tables.from_elements([("x", 1), ("x", 2)], ["k", "v"])
        .group_by(col("k"))
        .select(col("k"), col("v").sum.alias("s"))
    )
    target = (
        Schema.new_builder()
        .primary_key("k")
        .column("k", DataTypes.STRING().not_null())
        .column("s", DataTypes.BIGINT())
        .build()
    )
    rows = collected(tables.to_changelog_stream(totals, target, ChangelogMode.upsert()))
    assert [(row.get_row_kind(), *row) for row in rows] == [
        (RowKind.INSERT, "x", 1),
        (RowKind.UPDATE_AFTER, "x", 3),
    ]


def test_inserts_run_with_the_job_of_the_streams(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.execute_sql("CREATE TABLE sink (name STRING, n BIGINT) WITH ('connector' = 'print')")
    stream = env.from_collection([("a", 1)], PAIR)
    together = tables.create_statement_set()
    together.add_insert("sink", tables.from_data_stream(stream))
    together.add_insert_sql("INSERT INTO sink VALUES ('b', CAST(2 AS BIGINT))")
    together.attach_as_datastream()
    stream.map(lambda pair: pair[1], Types.LONG()).print()
    assert capsys.readouterr().out == ""
    env.execute("both")
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "+I[a, 1]", "+I[b, 2]", "1"]
    with pytest.raises(FlowSqlError, match="NO statements"):
        together.attach_as_datastream()


def test_inserts_of_other_environments_have_no_stream_job() -> None:
    plain = TableEnvironment.create()
    plain.execute_sql("CREATE TABLE sink (n INT) WITH ('connector' = 'blackhole')")
    together = plain.create_statement_set().add_insert_sql("INSERT INTO sink VALUES (1)")
    with pytest.raises(BindError, match="needs the StatementSet of a StreamTableEnvironment"):
        together.attach_as_datastream()


def test_expressions_stay_as_they_were_written(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    schema = (
        Schema.new_builder()
        .column("f0", DataTypes.STRING())
        .column("f1", DataTypes.BIGINT())
        .column_by_expression("ts", "TO_TIMESTAMP_LTZ(f1, 3)")
        .watermark("ts", "ts - INTERVAL '2' SECOND")
        .build()
    )
    table = tables.from_data_stream(env.from_collection([("a", 1000)], PAIR), schema)
    text = str(table.get_resolved_schema())
    assert "AS TO_TIMESTAMP_LTZ(f1, 3)" in text
    assert "AS ts - INTERVAL '2' SECOND" in text
    assert collected(tables.to_data_stream(table.select(col("ts")))) == [Row(ts=Instant(1, 0))]
