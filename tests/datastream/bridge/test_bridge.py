"""Tables of streams and streams of tables: one job, with types, kinds of changes, row times and watermarks kept."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import pytest

from flowsql.common import Configuration, Duration, Instant, Row, RowKind, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import DataStream, ProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from flowsql.table import ChangelogMode, DataTypes, Schema, StreamTableEnvironment, Table
from flowsql.table.expressions import col
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError, NotSupportedYetError, PlanError

D = decimal.Decimal
PAIR = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])
ROWS = [("a", 1), ("b", 2), ("a", 3)]


@pytest.fixture(params=[1, 2], ids=["alone", "parallel"])
def env(request: pytest.FixtureRequest) -> StreamExecutionEnvironment:
    made = StreamExecutionEnvironment.get_execution_environment()
    return made.set_parallelism(request.param)


@pytest.fixture
def tables(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    return StreamTableEnvironment.create(env)


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as values:
        return list(values)


def rows_of(table: Table) -> list[tuple[str, Any]]:
    with table.execute().collect() as rows:
        return [(row.get_row_kind().short_string(), *row) for row in rows]


def final(rows: list[Any]) -> list[tuple[Any, ...]]:
    """What is left when all changes were applied, sorted."""
    left: list[tuple[Any, ...]] = []
    for row in rows:
        if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            left.append(tuple(row))
        else:
            left.remove(tuple(row))
    return sorted(left)


def test_a_stream_is_a_table_and_a_table_a_stream(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    table = tables.from_data_stream(env.from_collection(ROWS, PAIR).map(lambda row: row, PAIR))
    assert [str(type_) for type_ in table.get_resolved_schema().get_column_data_types()] == ["STRING", "INT"]
    doubled = tables.to_data_stream(table.select(col("name"), (col("n") * 2).alias("d")).where(col("d") > 2))
    assert sorted((row.name, row.d) for row in collected(doubled)) == [("a", 6), ("b", 4)]
    lengths = doubled.map(lambda row: row.d + 1, Types.LONG())
    again = tables.from_data_stream(lengths)
    assert sorted(rows_of(again)) == [("+I", 5), ("+I", 7)]


def test_all_types_make_the_round(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    types = {
        "s": Types.STRING(), "bo": Types.BOOLEAN(), "by": Types.BYTE(), "sh": Types.SHORT(), "i": Types.INT(),
        "l": Types.LONG(), "f": Types.FLOAT(), "d": Types.DOUBLE(), "bd": Types.BIG_DEC(), "at": Types.INSTANT(),
        "da": Types.SQL_DATE(), "ti": Types.SQL_TIME(), "ts": Types.SQL_TIMESTAMP(),
        "b": Types.PRIMITIVE_ARRAY(Types.BYTE()), "ia": Types.BASIC_ARRAY(Types.INT()),
        "m": Types.MAP(Types.STRING(), Types.LONG()), "r": Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.INSTANT()]),
        "oa": Types.OBJECT_ARRAY(Types.ROW([Types.INT()])),
    }  # fmt: skip
    values = (
        "ä", True, -8, 16, 32, 2**40, 0.5, 1.25, D("1.5"), Instant(5, 123456789), datetime.date(1969, 12, 31),
        datetime.time(1, 2, 3), datetime.datetime(1960, 1, 2, 3, 4, 5, 678000), b"\x00\xff", [1, None], {"k": 5},
        Row(x=1, y=Instant(-1, 0)), [Row(f0=7)],
    )  # fmt: skip
    stream = env.from_collection([values, (None,) * len(types)], Types.ROW_NAMED(list(types), list(types.values())))
    found = collected(tables.to_data_stream(tables.from_data_stream(stream)))
    full = next(row for row in found if row.s is not None)
    for name, wanted in zip(types, values, strict=True):
        have = full[name]
        assert have == (D("1.500000000000000000") if name == "bd" else wanted), name
        assert type(have) is type(wanted), name
    assert [list(row) for row in found if row.s is None] == [[None] * len(types)]


def test_tuples_and_single_values_are_columns(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    pairs = tables.from_data_stream(env.from_collection([(1, "x")], Types.TUPLE([Types.INT(), Types.STRING()])))
    assert rows_of(pairs.select(col("f1"), col("f0"))) == [("+I", "x", 1)]
    single = tables.from_data_stream(env.from_collection([5], Types.LONG()))
    assert rows_of(single) == [("+I", 5)]
    with pytest.raises(NotSupportedYetError, match="PickledByteArray"):
        tables.from_data_stream(env.from_collection([5]))


def test_fields_are_named_or_chosen(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    stream = env.from_collection([("a", 1)], PAIR)
    assert rows_of(tables.from_data_stream(stream, col("x"), col("y")).select(col("y"), col("x"))) == [("+I", 1, "a")]
    assert rows_of(tables.from_data_stream(stream, col("n").alias("m"))) == [("+I", 1)]
    with pytest.raises(NotSupportedYetError, match="field of from_data_stream"):
        tables.from_data_stream(stream, col("n") + 1)


def test_updating_tables_are_no_data_streams(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    tables.create_temporary_view("t", env.from_collection(ROWS, PAIR))
    counts = tables.sql_query("SELECT name, COUNT(*) AS c FROM t GROUP BY name")
    with pytest.raises(PlanError, match=r"Table sink '\*anonymous_datastream_sink\$\d+\*' doesn't support consuming"):
        tables.to_data_stream(counts)
    with pytest.raises(PlanError, match="doesn't support consuming update changes"):
        tables.to_append_stream(counts, PAIR)
    found = collected(tables.to_changelog_stream(counts))
    assert final(found) == [("a", 2), ("b", 1)]
    assert {row.get_row_kind() for row in found} == {RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER}
    upserts = collected(tables.to_changelog_stream(counts, None, ChangelogMode.upsert()))
    assert RowKind.UPDATE_BEFORE not in {row.get_row_kind() for row in upserts}
    flags = collected(tables.to_retract_stream(counts, Types.ROW([Types.STRING(), Types.LONG()])))
    assert sorted((flag, *row) for flag, row in flags) == [
        (False, "a", 1), (True, "a", 1), (True, "a", 2), (True, "b", 1),
    ]  # fmt: skip


def test_append_streams_have_the_type_asked(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    table = tables.from_data_stream(env.from_collection(ROWS, PAIR))
    pairs = tables.to_append_stream(table, Types.TUPLE([Types.STRING(), Types.FLOAT()]))
    assert sorted(collected(pairs)) == [("a", 1.0), ("a", 3.0), ("b", 2.0)]
    assert sorted(collected(tables.to_append_stream(table.select(col("n")), Types.INT()))) == [1, 2, 3]


def test_changelogs_keep_their_kinds(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    changes = [
        Row.of_kind(RowKind.INSERT, "a", 1),
        Row.of_kind(RowKind.UPDATE_BEFORE, "a", 1),
        Row.of_kind(RowKind.UPDATE_AFTER, "a", 5),
        Row.of_kind(RowKind.INSERT, "b", 2),
        Row.of_kind(RowKind.DELETE, "b", 2),
    ]
    stream = env.from_collection(changes, PAIR)
    table = tables.from_changelog_stream(stream)
    assert [row[0] for row in rows_of(table)] == ["+I", "-U", "+U", "+I", "-D"]
    back = collected(tables.to_changelog_stream(table))
    assert [(row.get_row_kind(), *row) for row in back] == [(row.get_row_kind(), *row) for row in changes]
    tables.create_temporary_view("c", table)
    sums = tables.sql_query("SELECT name, SUM(n) AS s FROM c GROUP BY name")
    assert final(collected(tables.to_changelog_stream(sums))) == [("a", 5)]
    with pytest.raises(FlowSqlError, match="expects insert-only records"):
        rows_of(tables.from_data_stream(stream))
    with pytest.raises(BindError, match="not a row type"):
        tables.from_changelog_stream(env.from_collection([1], Types.INT()))


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class WithTime(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield ctx.timestamp(), ctx.timer_service().current_watermark(), tuple(value)


def timed(env: StreamExecutionEnvironment) -> DataStream:
    env.configure(Configuration().set_string("pipeline.auto-watermark-interval", "0 ms"))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500))
    data = [("a", 1000), ("b", 2500), ("a", 4000), ("a", 12000)]
    stream = env.from_collection(data, Types.TUPLE([Types.STRING(), Types.LONG()]))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Second()))


def test_timestamps_become_row_times_and_timestamps_again(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    schema = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)").watermark(
        "rowtime", "SOURCE_WATERMARK()"
    ).build()  # fmt: skip
    table = tables.from_data_stream(timed(env), schema)
    assert str(table.get_resolved_schema().columns[2].type) == "TIMESTAMP_LTZ(3) *ROWTIME*"
    tables.create_temporary_view("t", table)
    counts = tables.sql_query(
        "SELECT f0, COUNT(*) AS c, window_time AS wt "
        "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(rowtime), INTERVAL '5' SECOND)) "
        "GROUP BY f0, window_start, window_end, window_time"
    )
    found = collected(tables.to_data_stream(counts).process(WithTime()))
    assert sorted((time, value[:2]) for time, _, value in found) == [
        (4999, ("a", 2)), (4999, ("b", 1)), (14999, ("a", 1)),
    ]  # fmt: skip
    assert {value[2].to_epoch_milli() for _, _, value in found} == {4999, 14999}


def test_a_stream_without_timestamps_has_no_row_time(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    stream = env.from_collection([("a", 1)], PAIR)
    plain = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)").build()
    assert rows_of(tables.from_data_stream(stream, plain)) == [("+I", "a", 1, None)]
    marked = Schema.new_builder().from_schema(plain).watermark("rowtime", "SOURCE_WATERMARK()").build()
    with pytest.raises(FlowSqlError, match="Rowtime timestamp is not defined"):
        rows_of(tables.from_data_stream(stream, marked))


def test_a_schema_orders_types_and_computes(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    stream = env.from_collection([("a", 1)], PAIR)
    schema = (
        Schema.new_builder()
        .column_by_expression("twice", "n * 2")
        .column("name", DataTypes.STRING())
        .build()
    )  # fmt: skip
    table = tables.from_data_stream(stream, schema)
    assert table.get_schema().get_field_names() == ["twice", "name"]
    assert rows_of(table) == [("+I", 2, "a")]
    typed = Schema.new_builder().column("n", "DECIMAL(10, 2)").column("name", "STRING").build()
    assert rows_of(tables.from_data_stream(stream, typed)) == [("+I", D("1.00"), "a")]
    derived = Schema.new_builder().column_by_expression("more", "n + 1").build()
    assert rows_of(tables.from_data_stream(stream, derived)) == [("+I", "a", 1, 2)]
    with pytest.raises(BindError, match="Unable to find a field named 'nosuch'"):
        tables.from_data_stream(stream, Schema.new_builder().column("nosuch", "INT").build())
    wrong = Schema.new_builder().column("name", "INT").build()
    with pytest.raises(FlowSqlError, match="column 'name' is no INT"):
        rows_of(tables.from_data_stream(stream, wrong))


def test_watermarks_of_a_table_over_a_stream(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    type_ = Types.ROW([Types.INSTANT(), Types.STRING(), Types.FLOAT()])
    data = [
        (Instant.of_epoch_milli(ms), name, n) for ms, name, n in [(1000, "a", 1.5), (4000, "b", 2.0), (9000, "a", 1)]
    ]
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "CAST(f0 AS TIMESTAMP(3))")
        .column("f1", DataTypes.STRING())
        .column("f2", DataTypes.FLOAT())
        .watermark("ts", "ts - INTERVAL '3' SECOND")
        .build()
    )  # fmt: skip
    table = tables.from_data_stream(env.from_collection(data, type_), schema).alias("ts", "name", "price")
    tables.create_temporary_view("t", table)
    sums = tables.sql_query(
        "SELECT name, SUM(price) AS s, window_end FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)) "
        "GROUP BY name, window_start, window_end"
    )
    assert sorted((row.name, row.s) for row in collected(tables.to_data_stream(sums))) == [
        ("a", 1.0), ("a", 1.5), ("b", 2.0),
    ]  # fmt: skip


def test_tables_and_streams_run_as_one_job(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = env.from_collection(ROWS, PAIR)
    tables.create_temporary_view("t", stream)
    counts = tables.to_changelog_stream(tables.sql_query("SELECT name, SUM(n) AS s FROM t GROUP BY name"))
    counts.filter(lambda row: row.s > 3).map(lambda row: ("table", row.s)).print()
    stream.map(lambda row: ("stream", row.n)).print()
    graph = env.job_graph()
    names = [node.name for vertex in graph.vertices for node in vertex.operators]
    assert names.count("Collection Source") == 1
    assert "GroupAggregate" in names
    counts.filter(lambda row: row.s > 3).map(lambda row: ("table", row.s)).print()
    stream.map(lambda row: ("stream", row.n)).print()
    env.execute()
    lines = sorted(line.rpartition("> ")[2] for line in capsys.readouterr().out.splitlines())
    assert lines == ["('stream', 1)", "('stream', 2)", "('stream', 3)", "('table', 4)"]


def test_inserts_of_tables_over_streams_run_at_once(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.execute_sql("CREATE TABLE printed (name STRING, n INT) WITH ('connector' = 'print')")
    env.from_collection([0]).print("later")
    tables.from_data_stream(env.from_collection(ROWS, PAIR)).execute_insert("printed").wait()
    assert sorted(line.rpartition("> ")[2] for line in capsys.readouterr().out.splitlines()) == [
        "+I[a, 1]", "+I[a, 3]", "+I[b, 2]",
    ]  # fmt: skip
    env.execute()
    assert capsys.readouterr().out.splitlines()[0].endswith("> 0")


def test_pure_tables_need_no_stream(tables: StreamTableEnvironment) -> None:
    table = tables.from_elements([(1, "a"), (2, "b")], ["id", "name"])
    assert sorted(tuple(row) for row in collected(tables.to_data_stream(table))) == [(1, "a"), (2, "b")]
    assert sorted(rows_of(table)) == [("+I", 1, "a"), ("+I", 2, "b")]


def test_a_target_schema_converts(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    table = tables.from_data_stream(env.from_collection([("a", 1)], PAIR))
    # By position, as Flink: the names of the table do not count.
    schema = Schema.new_builder().column("n", "STRING").column("name", "BIGINT").build()
    (row,) = collected(tables.to_changelog_stream(table, schema))
    assert row.as_dict() == {"n": "a", "name": 1}
    with pytest.raises(BindError, match="Cause: Different number of columns"):
        tables.to_changelog_stream(table, Schema.new_builder().column("name", "STRING").build())
    schema = Schema.new_builder().column("name", "STRING").column("n", "STRING").build()
    with pytest.raises(BindError, match="Incompatible types for sink column 'n' at position 2"):
        tables.to_changelog_stream(table, schema)


def test_environments_do_not_mix(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    other = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(BindError, match="different StreamExecutionEnvironment"):
        tables.from_data_stream(other.from_collection([1], Types.INT()))
    with pytest.raises(ValueError, match="No argument found"):
        StreamTableEnvironment.create()
    theirs = StreamTableEnvironment.create(other).from_elements([(1,)], ["x"])
    with pytest.raises(BindError, match="different TableEnvironment"):
        tables.to_data_stream(theirs)


def test_two_row_times_are_refused(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    schema = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)").watermark(
        "rowtime", "SOURCE_WATERMARK()"
    ).build()  # fmt: skip
    table = tables.from_data_stream(timed(env), schema)
    with pytest.raises(BindError, match="more than one rowtime attribute column"):
        tables.to_data_stream(table.select(col("rowtime"), col("rowtime").alias("again")))


def test_what_functions_make_of_a_row_time_is_none(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    schema = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)").watermark(
        "rowtime", "SOURCE_WATERMARK()"
    ).build()  # fmt: skip
    tables.create_temporary_view("timed", tables.from_data_stream(timed(env), schema))
    query = tables.sql_query("SELECT rowtime AS a, rowtime + INTERVAL '1' SECOND AS b FROM timed")
    assert str(query.get_resolved_schema()).count("*ROWTIME*") == 2
    told = collected(tables.to_data_stream(query))
    assert all((row[1].to_epoch_milli() - row[0].to_epoch_milli()) == 1_000 for row in told)
    assert told


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.BATCH, RuntimeExecutionMode.AUTOMATIC])
def test_runtime_modes_do_not_mix(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment, mode: RuntimeExecutionMode
) -> None:
    rows = tables.to_data_stream(tables.from_data_stream(env.from_collection(ROWS, PAIR)))
    env.set_runtime_mode(mode)
    rows.print()
    with pytest.raises(NotSupportedYetError, match="different runtime modes"):
        env.execute()
    if mode is RuntimeExecutionMode.BATCH:
        env.recorder.sinks.clear()
        table = tables.from_data_stream(env.from_collection(ROWS, PAIR)).where(col("n") > 1)
        assert sorted(map(tuple, collected(tables.to_data_stream(table)))) == [("a", 3), ("b", 2)]


def test_upserts_become_a_full_changelog(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    kind = RowKind
    given = [
        Row.of_kind(kind.INSERT, "a", 1), Row.of_kind(kind.UPDATE_AFTER, "a", 1),
        Row.of_kind(kind.UPDATE_AFTER, "b", 5),
        Row.of_kind(kind.UPDATE_AFTER, "a", 7), Row.of_kind(kind.DELETE, "a", None), Row.of_kind(kind.DELETE, "c", 0),
        Row.of_kind(kind.INSERT, "a", 9),
    ]  # fmt: skip
    stream = env.from_collection(given, PAIR)
    schema = Schema.new_builder().primary_key("name").build()
    table = tables.from_changelog_stream(stream, schema, ChangelogMode.upsert())
    assert "ChangelogNormalize(key=[name])" in table.explain()
    found = rows_of(table)
    assert [row for row in found if row[1] == "a"] == [
        ("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 7), ("-D", "a", 7), ("+I", "a", 9),
    ]  # fmt: skip
    assert [row for row in found if row[1] != "a"] == [("+I", "b", 5)]
    for bad, message in ((None, "requires defining a primary key"), (Schema.new_builder().build(), "primary key")):
        with pytest.raises(BindError, match=message):
            tables.from_changelog_stream(stream, bad, ChangelogMode.upsert())
    with pytest.raises(BindError, match="Primary key column 'x' is not defined"):
        tables.from_changelog_stream(stream, Schema.new_builder().primary_key("x").build(), ChangelogMode.upsert())


def test_an_upsert_stream_tells_every_change(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    tables.create_temporary_view("t", env.from_collection([("a", 1), ("a", 2), ("b", 3)], PAIR))
    sums = tables.sql_query("SELECT name, SUM(n) AS s FROM t GROUP BY name")
    schema = Schema.new_builder().primary_key("name").build()
    found = collected(tables.to_changelog_stream(sums, schema, ChangelogMode.upsert()))
    told = [(str(row.get_row_kind()), *row) for row in found]
    assert sorted(told, key=lambda row: row[1:]) == [("+I", "a", 1), ("+U", "a", 3), ("+I", "b", 3)]


def test_a_stream_of_a_table_keeps_the_types_of_its_columns(
    env: StreamExecutionEnvironment, tables: StreamTableEnvironment
) -> None:
    query = (
        "SELECT CAST('1.50' AS DECIMAL(10, 2)) AS d, TIMESTAMP '2024-01-02 03:04:05.678' AS t, 'text' AS s, "
        "ARRAY[1, 2] AS a, CAST(NULL AS INT) AS n"
    )
    table = tables.sql_query(query)
    again = tables.from_data_stream(tables.to_data_stream(table))
    types = [str(type_) for type_ in again.get_resolved_schema().get_column_data_types()]
    assert types == [str(type_) for type_ in table.get_resolved_schema().get_column_data_types()]
    assert types[:2] == ["DECIMAL(10, 2) NOT NULL", "TIMESTAMP(3) NOT NULL"]
    assert rows_of(again) == rows_of(table)


def test_numbers_of_tuples_are_never_null(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    stream = env.from_collection([("a", 1), (None, None)], pair)
    table = tables.from_data_stream(stream)
    assert [str(type_) for type_ in table.get_resolved_schema().get_column_data_types()] == ["STRING", "INT NOT NULL"]
    with pytest.raises(ExecutionError, match="'f1' is NOT NULL"):
        rows_of(table)
    named = tables.from_data_stream(stream, col("x"), col("y"))
    assert [str(type_) for type_ in named.get_resolved_schema().get_column_data_types()] == ["STRING", "INT"]
    assert sorted(rows_of(named), key=str) == [("+I", "a", 1), ("+I", None, None)]


def test_retracted_rows_keep_their_kinds(env: StreamExecutionEnvironment, tables: StreamTableEnvironment) -> None:
    tables.create_temporary_view("t", env.from_collection([("a", 1), ("a", 2)], PAIR))
    counted = tables.sql_query("SELECT name, COUNT(*) FROM t GROUP BY name")
    pair = Types.ROW([Types.STRING(), Types.LONG()])
    found = collected(tables.to_retract_stream(counted, pair))
    assert [(added, str(row.get_row_kind()), tuple(row)) for added, row in found] == [
        (True, "+I", ("a", 1)), (False, "-U", ("a", 1)), (True, "+U", ("a", 2)),
    ]  # fmt: skip
