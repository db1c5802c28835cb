"""File sources: the job reads lines, lazily, split by split, whatever compressed them."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql.common import Duration, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from flowsql.datastream.connectors.file_system import FileSource, StreamFormat
from flowsql.datastream.connectors.hybrid_source import HybridSource
from flowsql.datastream.connectors.number_seq import NumberSequenceSource
from flowsql.datastream.functions import ProcessFunction
from flowsql_core.clock import ManualClock
from flowsql_core.errors import ConnectorError, FlowSqlError, PlanError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.stream_specs import CollectionSourceSpec, HybridSourceSpec, LineSourceSpec
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.stream.source.lines import lines_of

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def source(*paths: Path | str, charset: str = "UTF-8") -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), *map(str, paths))


def lines(env: StreamExecutionEnvironment, *paths: Path | str, charset: str = "UTF-8") -> DataStream:
    return env.from_source(source(*paths, charset=charset).build(), NO_WATERMARKS, "lines")


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as values:
        return list(values)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "gzip": lambda data: gzip.compress(data[:3]) + gzip.compress(data[3:]),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "deflate": zlib.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    "txt": bytes,
}


@pytest.mark.parametrize("extension", PACKED)
def test_what_compressed_a_file_is_known_by_its_extension(
    env: StreamExecutionEnvironment, tmp_path: Path, extension: str
) -> None:
    (tmp_path / f"a.{extension}").write_bytes(PACKED[extension]("eins\nzwei\r\ndrei\rfünf".encode()))
    assert collected(lines(env, tmp_path)) == ["eins", "zwei", "drei", "fünf"]


def test_a_damaged_file_is_named(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"no gzip")
    with pytest.raises(ConnectorError, match=r"a\.gz cannot be decompressed as gzip"):
        collected(lines(env, tmp_path))


@pytest.mark.parametrize(
    ("data", "charset", "expected"),
    [
        (b"", "UTF-8", []),
        (b"\n", "UTF-8", [""]),
        (b"a\n\nb\n", "UTF-8", ["a", "", "b"]),
        (b"a\r\n\r\r\nb", "UTF-8", ["a", "", "", "b"]),
        (b"a\xffb\n", "UTF-8", ["a�b"]),
        (b"a\xe4\n", "ISO-8859-1", ["aä"]),
        ("x\ny\n".encode("utf-16"), "UTF-16", ["x", "y"]),
        ("a\N{LINE SEPARATOR}b\x0bc\n".encode(), "UTF-8", ["a\N{LINE SEPARATOR}b\x0bc"]),
    ],
)
def test_lines_end_as_in_java(tmp_path: Path, data: bytes, charset: str, expected: list[str]) -> None:
    (tmp_path / "f").write_bytes(data)
    assert list(lines_of(str(tmp_path / "f"), charset)) == expected


def test_lines_may_be_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    long = ["a" * (9 << 20), "é" * (5 << 20)]
    (tmp_path / "f").write_text("\r\n".join(long), encoding="utf-8", newline="")
    assert list(lines_of(str(tmp_path / "f"), "UTF-8")) == long


def test_files_are_read_when_the_job_runs(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    stream = lines(env, tmp_path / "later")
    with pytest.raises(ConnectorError, match="later"):
        collected(stream)
    (tmp_path / "later").write_text("here\n")
    assert collected(stream) == ["here"]


def folder(tmp_path: Path) -> list[str]:
    found = []
    for number in range(7):
        texts = [f"{number}/{line}" for line in range(11 * number)]
        (tmp_path / f"{number}.gz").write_bytes(gzip.compress("".join(text + "\n" for text in texts).encode()))
        found += texts
    (tmp_path / "_hidden").write_text("no\n")
    return found


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_subtasks_share_the_files(env: StreamExecutionEnvironment, tmp_path: Path, parallelism: int) -> None:
    wanted = folder(tmp_path)
    stream = lines(env, tmp_path).set_parallelism(parallelism)
    found = collected(stream)
    assert sorted(found) == sorted(wanted)
    for number in range(7):
        part = [text for text in found if text.startswith(f"{number}/")]
        assert part == [text for text in wanted if text.startswith(f"{number}/")]
    if parallelism == 1:
        assert found == wanted


class Seen(list[Any]):
    """Keeps values of all subtasks; functions are copied, this is not."""

    def __deepcopy__(self, memo: object) -> Seen:
        return self


def graph(make: Callable[[StreamExecutionEnvironment], DataStream], seen: Seen) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    make(env).map(seen.append).print()
    return env.job_graph()


def starts(graph: JobGraph) -> dict[str, int]:
    kinds = (LineSourceSpec, HybridSourceSpec, CollectionSourceSpec)
    return {
        node.uid: vertex.parallelism
        for vertex in graph.vertices
        for node in vertex.operators
        if isinstance(node.spec, kinds)
    }


@pytest.mark.parametrize(("before", "behind", "rows"), [(1, 1, 30), (1, 3, 50), (3, 1, 20), (2, 3, 0), (3, 2, 10**6)])
def test_a_cut_source_goes_on_behind_its_last_line(tmp_path: Path, before: int, behind: int, rows: int) -> None:
    wanted = folder(tmp_path)
    seen = Seen()

    def make(parallelism: int) -> JobGraph:
        return graph(lambda env: lines(env, tmp_path).uid("files").set_parallelism(parallelism), seen)

    first = make(before)
    cut = {(uid, subtask): rows for uid, width in starts(first).items() for subtask in range(width)}
    job = LocalCluster().submit(first, cut=cut)
    job.wait(60)
    assert len(seen) <= before * rows
    LocalCluster().run(make(behind), restored=job.snapshot)
    assert sorted(seen) == sorted(wanted)


@pytest.mark.parametrize("rows", [0, 3, 5, 9, 12, 100])
def test_sources_one_behind_the_other_and_cut(tmp_path: Path, rows: int) -> None:
    (tmp_path / "a.txt").write_text("a1\na2\na3\na4\na5\n")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"b1\nb2\nb3\nb4\n"))
    (tmp_path / "c.txt").write_text("c1\nc2\nc3\n")
    wanted = [f"{name}{n}" for name, width in (("a", 5), ("b", 4), ("c", 3)) for n in range(1, width + 1)]
    seen = Seen()

    def make(env: StreamExecutionEnvironment) -> DataStream:
        first, *others = (source(tmp_path / name).build() for name in ("a.txt", "b.gz", "c.txt"))
        builder = HybridSource.builder(first)
        for other in others:
            builder.add_source(other)
        return env.from_source(builder.build(), NO_WATERMARKS, "hybrid").uid("hybrid")

    first = graph(make, seen)
    job = LocalCluster().submit(first, cut={(uid, 0): rows for uid in starts(first)})
    job.wait(60)
    assert seen == wanted[:rows]
    LocalCluster().run(graph(make, seen), restored=job.snapshot)
    assert seen == wanted


def test_hybrid_sources_are_of_one_type(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    numbers = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(NumberSequenceSource(7, 8)).build()
    assert collected(env.from_source(numbers, NO_WATERMARKS, "numbers")) == [1, 2, 3, 7, 8]
    mixed = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(source(tmp_path).build()).build()
    with pytest.raises(TypeError, match="different types"):
        env.from_source(mixed, NO_WATERMARKS, "mixed")


def test_new_files_are_found_every_interval(tmp_path: Path) -> None:
    """The function writes the next file; the clock moves on by the interval."""
    clock, seen = ManualClock(), Seen()
    (tmp_path / "0").write_text("0\n")

    def write_next(text: str) -> int:
        number = int(text) + 1
        if number == 4:
            raise ValueError("enough")
        (tmp_path / f"{number}").write_text(f"{number}\n")
        seen.append(number)
        clock.advance(100)
        return number

    env = StreamExecutionEnvironment.get_execution_environment()
    endless = source(tmp_path).monitor_continuously(Duration.of_millis(100)).build()
    env.from_source(endless, NO_WATERMARKS, "endless").map(write_next).print()
    with pytest.raises(FlowSqlError, match="enough"):
        LocalCluster(clock).run(env.job_graph())
    assert seen == [1, 2, 3]


def test_a_source_that_does_not_end_is_refused_in_batch_mode(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    endless = source(tmp_path).monitor_continuously(Duration.of_millis(100)).build()
    env.from_source(endless, NO_WATERMARKS, "endless").print()
    with pytest.raises(PlanError, match="Detected an UNBOUNDED source"):
        env.execute()
    with pytest.raises(ValueError, match="positive"):
        source(tmp_path).monitor_continuously(Duration.of_millis(0))


@pytest.mark.ticks
def test_files_read_one_behind_another_keep_a_watermark_each(tmp_path: Path) -> None:
    """Two files over the same time: the second one's lines are not late, though the clock ticks between them."""
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(100, 200, 10)))
    (tmp_path / "b").write_text("".join(f"{n}\n" for n in range(105, 205, 10)))
    clock, seen = ManualClock(), Seen()

    class Number(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value)

    class Note(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            seen.append((int(value), ctx.timer_service().current_watermark()))
            clock.advance(200)

    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Number())
    env.from_source(source(tmp_path).build(), strategy, "files").process(Note(), Types.STRING()).print()
    LocalCluster(clock).run(env.job_graph())
    assert [value for value, _ in seen] == [*range(100, 200, 10), *range(105, 205, 10)]
    assert not [entry for entry in seen if entry[0] < entry[1]]
    levels = [level for _, level in seen]
    assert levels == sorted(levels)
    # While the second file is read, its own times count.
    assert [level for level, _ in itertools.groupby(levels)][1:] == list(range(104, 194, 10))
