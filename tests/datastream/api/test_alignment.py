"""Watermark alignment of streams: sources, splits and tables of one job wait for each other."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Duration, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import DataStream, StreamExecutionEnvironment
from flowsql.datastream.connectors.base import Source
from flowsql.datastream.connectors.file_system import FileSource, StreamFormat
from flowsql.datastream.connectors.hybrid_source import HybridSource
from flowsql.datastream.connectors.number_seq import NumberSequenceSource
from flowsql.table import StreamTableEnvironment
from flowsql_core.graph.stream_specs import AssignTimestampsSpec

pytestmark = pytest.mark.ticks

ROWS = 10_000
#: Elements within the drift and what the slow one has behind it by then, and those read at once before another look.
MOST = 66 + 1_024


#: Elements of all sources in the order in which they were read. Behind an exchange the order of two sources is open.
READ: list[str] = []


class Stamp(TimestampAssigner):
    """``name,milliseconds``."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        READ.append(value)
        return int(value.rpartition(",")[2])


def strategy(group: str = "g", of: Any = None) -> WatermarkStrategy:
    made = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(of or Stamp())
    return made.with_watermark_alignment(group, Duration.of_seconds(60), Duration.of_millis(5))


def files(path: Path) -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()


def write(path: Path, step_ms: int, rows: int = ROWS) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{path.name},{i * step_ms}\n" for i in range(rows)))


def read(env: StreamExecutionEnvironment, source: Source, **options: Any) -> DataStream:
    return env.from_source(source, strategy(**options), "aligned")


def collected(stream: DataStream) -> list[str]:
    with stream.execute_and_collect() as values:
        return list(values)


def read_row(value: str) -> str:
    READ.append(value)
    return value


def before_half(found: list[str], ahead: str) -> int:
    half = found.index(f"slow,{ROWS // 2}")
    return sum(value.startswith(f"{ahead},") for value in found[:half])


def names(found: list[str]) -> Counter[str]:
    return Counter(value.partition(",")[0] for value in found)


@pytest.fixture(autouse=True)
def nothing_read() -> None:
    READ.clear()


@pytest.fixture
def one(env: StreamExecutionEnvironment) -> StreamExecutionEnvironment:
    return env.set_parallelism(1)


@pytest.mark.parametrize("chained", [True, False])
def test_a_source_far_ahead_waits_for_its_group(one: StreamExecutionEnvironment, tmp_path: Path, chained: bool) -> None:
    if not chained:
        one.disable_operator_chaining()
    write(tmp_path / "f" / "fast", 1_000)
    write(tmp_path / "s" / "slow", 1)
    both = read(one, files(tmp_path / "f")).union(read(one, files(tmp_path / "s")))
    found = collected(both)
    assert before_half(READ, "fast") <= MOST
    assert names(found) == {"fast": ROWS, "slow": ROWS}


def test_a_split_far_ahead_waits_for_the_others_of_its_reader(one: StreamExecutionEnvironment, tmp_path: Path) -> None:
    write(tmp_path / "t" / "fast", 1_000)
    write(tmp_path / "t" / "slow", 1)
    found = collected(read(one, files(tmp_path / "t")))
    assert before_half(found, "fast") <= MOST
    for name, step in (("fast", 1_000), ("slow", 1)):
        assert [value for value in found if value.startswith(name)] == [f"{name},{i * step}" for i in range(ROWS)]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_more_files_than_stay_open_are_read_whole(
    env: StreamExecutionEnvironment, tmp_path: Path, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    wanted = [f"f{number:02}" for number in range(40)]
    for place, name in enumerate(wanted):
        write(tmp_path / "t" / name, 1_000 * (1 + place % 3), 2_500)
    found = collected(read(env, files(tmp_path / "t")))
    assert names(found) == dict.fromkeys(wanted, 2_500)
    for place, name in enumerate(wanted):
        step = 1_000 * (1 + place % 3)
        assert [value for value in found if value.startswith(name)] == [f"{name},{i * step}" for i in range(2_500)]


def test_other_kinds_of_sources_wait_too(one: StreamExecutionEnvironment, tmp_path: Path) -> None:
    class Thousands(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            READ.append(f"number,{value}")
            return 1_000 * int(value)

    write(tmp_path / "h" / "hybrid", 1_000)
    write(tmp_path / "h2" / "hybrid", 1_000)
    write(tmp_path / "s" / "slow", 1)
    both = HybridSource.builder(files(tmp_path / "h")).add_source(files(tmp_path / "h2")).build()
    numbers = read(one, NumberSequenceSource(1, ROWS), of=Thousands()).map(
        lambda number: f"number,{number}", Types.STRING()
    )
    found = collected(read(one, both).union(numbers, read(one, files(tmp_path / "s"))))
    assert before_half(READ, "hybrid") <= MOST
    assert before_half(READ, "number") <= MOST
    assert names(found) == {"hybrid": 2 * ROWS, "number": ROWS, "slow": ROWS}


def test_source_and_watermarks_have_the_parallelism_that_the_stream_is_given(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    env.set_parallelism(2)
    read(env, files(tmp_path)).set_parallelism(3).print()
    read(env, NumberSequenceSource(1, 2)).print()
    vertices = [vertex for vertex in env.job_graph().vertices if len(vertex.operators) > 1]
    aligned = {
        vertex.parallelism: [type(node.spec) for node in vertex.operators][1]
        for vertex in vertices
        if not vertex.head.number_of_inputs
    }
    assert aligned == {3: AssignTimestampsSpec, 1: AssignTimestampsSpec}


def test_a_stream_that_is_stamped_later_waits_for_nobody(one: StreamExecutionEnvironment, tmp_path: Path) -> None:
    """Only ``from_source`` heeds alignment, as in Flink."""
    write(tmp_path / "t" / "fast", 1_000)
    write(tmp_path / "t" / "slow", 1)
    lines = one.from_source(files(tmp_path / "t"), WatermarkStrategy.no_watermarks(), "lines")
    assert before_half(collected(lines.assign_timestamps_and_watermarks(strategy())), "fast") == ROWS


def test_tables_and_streams_of_one_group_wait_for_each_other(one: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env = StreamTableEnvironment.create(one)
    (tmp_path / "table.csv").write_text(
        "".join(f"{i},{datetime(1970, 1, 1) + timedelta(seconds=i)}\n" for i in range(ROWS))
    )
    env.execute_sql(
        "CREATE TABLE t (i INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', "
        f"'format' = 'csv', 'path' = '{tmp_path / 'table.csv'}', 'scan.watermark.alignment.group' = 'g', "
        "'scan.watermark.alignment.max-drift' = '60 s', 'scan.watermark.alignment.update-interval' = '5 ms')"
    )
    write(tmp_path / "s" / "slow", 1)
    write(tmp_path / "f" / "fast", 1_000)
    table = env.to_data_stream(env.from_path("t")).map(lambda row: read_row(f"table,{row[0]}"), Types.STRING())
    fast = env.to_data_stream(env.from_data_stream(read(one, files(tmp_path / "f")))).map(
        lambda row: row[0], Types.STRING()
    )
    found = collected(table.union(fast, read(one, files(tmp_path / "s"))))
    assert before_half(READ, "table") <= MOST
    assert before_half(READ, "fast") <= MOST
    assert names(found) == {"table": ROWS, "fast": ROWS, "slow": ROWS}


def test_without_watermarks_nobody_is_in_the_group(one: StreamExecutionEnvironment, tmp_path: Path) -> None:
    write(tmp_path / "f" / "fast", 1_000)
    write(tmp_path / "s" / "slow", 1)
    none = WatermarkStrategy.no_watermarks().with_timestamp_assigner(Stamp())
    silent = none.with_watermark_alignment("g", Duration.of_seconds(60), Duration.of_hours(1))
    both = read(one, files(tmp_path / "f")).union(one.from_source(files(tmp_path / "s"), silent, "silent"))
    assert names(collected(both)) == {"fast": ROWS, "slow": ROWS}


def test_drift_and_interval_are_checked() -> None:
    plain = WatermarkStrategy.for_monotonous_timestamps()
    with pytest.raises(ValueError, match="must not be negative"):
        plain.with_watermark_alignment("g", Duration.of_millis(-1))
    with pytest.raises(ValueError, match="must be positive"):
        plain.with_watermark_alignment("g", Duration.of_millis(1), Duration.of_millis(0))
    made = plain.with_watermark_alignment("g", Duration.of_millis(1)).alignment
    assert made is not None
    assert made.update_interval_ms == 1_000
