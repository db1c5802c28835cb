"""A session that the program handed in, its DataFrames as tables, and answers as DataFrames."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from flowsql.table import EnvironmentSettings
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_runtime.spark.sessions.current import spark_host
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

ROWS = (
    "SELECT id, id % 3 AS k, CAST(id AS STRING) AS s, named_struct('a', id, 'b', array(id)) AS st, "
    "timestamp_ntz'2020-01-01 00:00:01' AS ts FROM range(1000)"
)


@pytest.fixture(scope="module")
def spark() -> Any:
    """A session as a program has it: with Spark's own defaults."""
    hurry()
    made = spark_host(Configuration(values={"table.local-time-zone": "UTC"})).session.newSession()
    made.conf.set("spark.sql.ansi.enabled", "true")
    made.conf.set("spark.sql.shuffle.partitions", "3")
    return made


@pytest.fixture
def session(spark: Any) -> TableEnvironment:
    return TableEnvironment.create(spark=spark)


def test_frames_stay_in_spark_both_ways(session: TableEnvironment, spark: Any, staged: list[str]) -> None:
    frame = spark.sql(ROWS)
    table = session.from_spark(frame)
    types = [str(type_) for type_ in table.get_schema().get_field_data_types()]
    assert types[:3] == ["BIGINT NOT NULL", "BIGINT", "STRING NOT NULL"]
    session.create_temporary_view("v", table)
    answer = session.sql_query(
        "SELECT k, COUNT(*) AS n, MAX(UPPER(s)) AS `größte`, MAX(ts) AS ts FROM v GROUP BY k"
    ).to_spark()
    assert answer.sparkSession is spark
    assert answer.columns == ["k", "n", "größte", "ts"]
    # Neither session changed the settings of the other: this division fails as the program's settings say.
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    joined = answer.join(frame.groupBy("k").count(), "k").orderBy("k").toArrow().to_pylist()
    assert [(row["k"], row["n"], row["größte"], row["count"]) for row in joined] == [
        (0, 334, "999", 334), (1, 333, "997", 333), (2, 333, "998", 333),
    ]  # fmt: skip
    assert not staged, "rows went through the driver"
    views = [one.name for one in spark.catalog.listTables("global_temp")]
    assert views
    assert not any(name.startswith("flowsql_answer") for name in views)


def test_what_spark_lacks_runs_in_its_tasks(session: TableEnvironment, spark: Any) -> None:
    session.create_temporary_view("w", session.from_spark(spark.sql(ROWS)))
    windows = session.sql_query(
        "SELECT k, TUMBLE_START(ts, INTERVAL '1' SECOND) AS w, COUNT(*) AS n FROM w "
        "GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND)"
    ).to_spark()
    assert sorted(row["n"] for row in windows.toArrow().to_pylist()) == [333, 333, 334]
    table_function = session.sql_query(
        "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '1' SECOND) "
        "GROUP BY window_start"
    )
    assert table_function.to_spark().toArrow().column("n").to_pylist() == [1000]
    names = session.sql_query("SELECT id, UUID() AS u FROM w").to_spark()
    # Of two looks at the frame both see the same values: each row was computed once.
    assert names.join(names, ["id", "u"]).count() == 1000


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id AS x, k AS y FROM renamed", {"x": [1], "y": [2]}),
        ("SELECT id AS k, k AS id FROM renamed", {"k": [1], "id": [2]}),
        ("SELECT k AS a, id AS b FROM renamed", {"a": [2], "b": [1]}),
    ],
)
def test_renamed_columns(session: TableEnvironment, spark: Any, query: str, columns: dict[str, list[int]]) -> None:
    session.create_temporary_view("renamed", session.from_spark(spark.sql("SELECT 1 AS id, 2 AS k")))
    assert session.sql_query(query).to_spark().toArrow().to_pydict() == columns


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_texts_with_a_collation_are_compared_by_their_bytes(session: TableEnvironment, spark: Any, engine: str) -> None:
    session.get_config().set("execution.batch.engine", engine)
    frame = spark.sql(
        "SELECT s COLLATE UNICODE_CI AS s, array(s COLLATE UTF8_LCASE) AS list, "
        "named_struct('f', s COLLATE UTF8_LCASE) AS st FROM VALUES ('a'), ('A') AS t(s)"
    )
    session.create_temporary_view("collated", session.from_spark(frame))

    def rows(sql: str) -> list[Any]:
        return sorted(tuple(row.values()) for row in session.sql_query(sql).to_arrow().to_pylist())

    assert rows("SELECT s, COUNT(*) FROM collated GROUP BY s") == [("A", 1), ("a", 1)]
    assert rows("SELECT COUNT(DISTINCT s), COUNT(DISTINCT st.f) FROM collated") == [(2, 2)]
    assert rows("SELECT s FROM collated WHERE s = 'A' AND list[1] = 'A' AND st.f = 'A' AND s LIKE 'A%'") == [("A",)]
    assert rows("SELECT a.s FROM collated a JOIN collated b ON a.s = b.s") == [("A",), ("a",)]


@pytest.fixture
def with_times(spark: Any) -> Iterator[None]:
    keys = ("spark.sql.timeType.enabled", "spark.sql.timestampNanosTypes.enabled")
    for key in keys:
        spark.conf.set(key, "true")
    yield
    for key in keys:
        spark.conf.unset(key)


@pytest.mark.parametrize("engine", ["spark", "local"])
@pytest.mark.usefixtures("with_times")
def test_times_and_variants(session: TableEnvironment, spark: Any, engine: str) -> None:
    session.get_config().set("execution.batch.engine", engine)
    frame = spark.sql(
        """SELECT * FROM VALUES (TIME'10:00:01.123', parse_json('{"b": [1.50, "x"], "a": null}')), (NULL, NULL)
        AS t(t, v)"""
    )
    table = session.from_spark(frame)
    assert [str(type_) for type_ in table.get_schema().get_field_data_types()] == ["TIME(3)", "VARIANT"]
    session.create_temporary_view("timed", table)
    shown = session.sql_query("SELECT MAX(t) AS t, COUNT(v) AS n FROM timed WHERE t > TIME '09:00:00'").to_arrow()
    assert shown.to_pylist() == [{"t": datetime.time(10, 0, 1, 123_000), "n": 1}]
    shown = session.sql_query("SELECT JSON_STRING(v['b'][1]) AS v FROM timed WHERE v IS NOT NULL").to_arrow()
    assert shown.to_pylist() == [{"v": "1.5"}]
    session.create_temporary_view("micros", session.from_spark(spark.sql("SELECT TIME'10:00:01.123456' AS `it's`")))
    with pytest.raises(FlowSqlError, match=r"the column 'it's' has more digits than milliseconds, which TIME keeps"):
        session.sql_query("SELECT COUNT(DISTINCT `it's`) FROM micros").to_arrow()


def test_rows_of_the_program_go_to_spark(session: TableEnvironment) -> None:
    frame = session.from_arrow(pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})).to_spark()
    assert frame.toArrow().to_pydict() == {"a": [1, 2, 3], "b": ["x", None, "z"]}


def test_frames_at_home(session: TableEnvironment, spark: Any) -> None:
    session.get_config().set("execution.batch.engine", "local")
    table = session.from_spark(spark.sql(ROWS))
    session.create_temporary_view("h", table)
    assert session.sql_query("SELECT id, st FROM h WHERE id < 2").to_arrow().to_pylist() == [
        {"id": 0, "st": {"a": 0, "b": [0]}}, {"id": 1, "st": {"a": 1, "b": [1]}},
    ]  # fmt: skip


def test_a_frame_alone_brings_its_session(spark: Any) -> None:
    session = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table = session.from_spark(spark.range(5))
    assert table.to_spark().sparkSession is spark


def test_options_of_a_given_session_are_its_own(session: TableEnvironment) -> None:
    session.get_config().set("spark.executor.memory", "3g")
    with pytest.raises(ConnectorError, match=r"'spark\.executor\.memory' cannot change to '3g'") as caught:
        session.from_elements([(1,)], ["a"]).to_spark()
    assert "the session that the program gave" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT CAST('10:00:00' AS TIME) AS t", r"to_spark\(\): Spark has no type for the column 't' \(TIME\(0\)\)"),
        ("SELECT INTERVAL '1' DAY AS t", r"to_spark\(\): Spark has no type for the column 't' \(INTERVAL"),
        ("SELECT nothing FROM (VALUES (1)) AS v(a)", "Column 'nothing' not found"),
    ],
)
def test_answers_that_are_no_frames(session: TableEnvironment, sql: str, message: str) -> None:
    with pytest.raises(FlowSqlError, match=message):
        session.sql_query(sql).to_spark()


def test_what_is_no_table(session: TableEnvironment, spark: Any) -> None:
    with pytest.raises(FlowSqlError, match=r"no type for the column 'i' \(interval day\)"):
        session.from_spark(spark.sql("SELECT INTERVAL '1' DAY AS i"))
    with pytest.raises(FlowSqlError, match="VARIANT inside of the column 'v' has no type in SQL"):
        session.from_spark(spark.sql("SELECT array(parse_json('1')) AS v"))
    with pytest.raises(FlowSqlError, match="two columns 'a'"):
        session.from_spark(spark.sql("SELECT 1 AS a, 2 AS a"))
    with pytest.raises(FlowSqlError, match="this one reads a stream"):
        session.from_spark(spark.readStream.format("rate").load())
    with pytest.raises(FlowSqlError, match="takes a DataFrame of pyspark, not a list"):
        session.from_spark([1])
    with pytest.raises(FlowSqlError, match="'spark' takes a SparkSession of pyspark, not a int"):
        TableEnvironment.create(spark=3)
    streaming = TableEnvironment.create(EnvironmentSettings.in_streaming_mode(), spark=spark)
    with pytest.raises(FlowSqlError, match="needs batch mode"):
        streaming.from_elements([(1,)], ["a"]).to_spark()


@pytest.mark.usefixtures("with_times")
def test_nanoseconds_are_refused_in_a_sentence(session: TableEnvironment, spark: Any) -> None:
    try:
        frame = spark.sql("SELECT CAST('2020-01-01 00:00:00.123456789' AS TIMESTAMP_NTZ(9)) AS t")
    except Exception as error:
        pytest.skip(f"this release of Spark has no timestamps of nine digits: {error}")
    with pytest.raises(FlowSqlError, match=r"pyspark has no type for a column \(timestamp_ntz\(9\)\)"):
        session.from_spark(frame)
