"""Blocking exchanges: memory up to the share, then files; everything comes back as it was, and nothing stays."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, PyObjectColumn, RowTimes, WatermarkTrack
from flowsql_core.element import END_OF_INPUT, IDLE, CheckpointBarrier, Watermark
from flowsql_core.errors import ExecutionError
from flowsql_core.graph import specs as s
from flowsql_core.graph.job import JobGraph, ResultPartitionType, ShipStrategy
from flowsql_core.types.logical import BIGINT
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network import spill
from flowsql_runtime.network.blocking import SpillableSubpartition
from flowsql_runtime.network.channel import ConsumerQueue, Element, referenced_bytes
from flowsql_runtime.network.gate import InputGate, InputProcessor
from flowsql_runtime.network.spill import SpillSpace, temporary_folders
from flowsql_runtime.task.mailbox import Mailbox
from flowsql_runtime.task.memory import MemoryBudget, OperatorMemory

from ..fake_connector import FakeStore, install
from ..graphs import Collected, collect, edge, graph, schema, vertex

ONE = schema(n=BIGINT)


class Wire:
    """One blocking channel with its reader."""

    def __init__(self, folders: str, share_bytes: int, budget_bytes: int = 1 << 40) -> None:
        self.budget = MemoryBudget(budget_bytes)
        self.space = SpillSpace(folders, "job")
        self.queue = ConsumerQueue(Mailbox())
        self.channel = SpillableSubpartition(
            Mailbox(), self.queue, 0, 0, OperatorMemory(self.budget, "exchange"), share_bytes, self.space
        )
        self._gate = InputProcessor(self.queue, [InputGate(0, [self.channel])], TaskMetrics("r", 0))

    def send(self, *elements: Element) -> None:
        for element in elements:
            self.channel.put(element, referenced_bytes(element) if isinstance(element, ChangelogBatch) else 0)

    def received(self) -> list[Element]:
        found: list[Element] = []
        while (arrived := self._gate.next()) is not None:
            found += arrived[1]
        return found


def numbers(first: int, rows: int = 1000) -> ChangelogBatch:
    return ChangelogBatch.of([pa.array(range(first, first + rows), pa.int64())])


def files(folder: Path) -> list[Path]:
    """Files of batches: a job's folder holds the file too whose lock says that it lives."""
    return sorted(path for path in folder.rglob("*.arrows"))


def same(found: Element, wanted: Element) -> bool:
    if not isinstance(wanted, ChangelogBatch) or not isinstance(found, ChangelogBatch):
        return found == wanted

    def beside(batch: ChangelogBatch) -> list[object]:
        times = batch.row_times
        arrays = [batch.kinds]
        arrays += [None, None] if times is None else [times.values_ms, times.valid]
        arrays += [None, None] if batch.track is None else [batch.track.offsets, batch.track.wm_ms]
        return [None if array is None else (array.dtype, array.tolist()) for array in arrays]

    columns = all(a.equals(b) for a, b in zip(found.columns, wanted.columns, strict=True))
    return columns and found.num_rows == wanted.num_rows and beside(found) == beside(wanted)


def rich(first: int) -> ChangelogBatch:
    """A slice with everything that a batch may carry."""
    rows = 50
    columns = (
        pa.array([None if n % 7 == 0 else f"text {n}" for n in range(first, first + rows)]),
        pa.array([[n, None] for n in range(rows)], pa.list_(pa.int32())),
        pa.array(range(rows), pa.decimal128(20, 2)),
    )
    kinds = np.arange(rows, dtype=np.uint8) % 4
    times = RowTimes(np.arange(rows, dtype=np.int64), np.arange(rows) % 3 > 0)
    track = WatermarkTrack(np.array([5, 49], np.int32), np.array([first, first + 10], np.int64))
    return ChangelogBatch(columns, rows, kinds, times, track).slice(3, 49)


def test_nothing_is_seen_before_the_end_and_order_is_kept_over_memory_and_files(tmp_path: Path) -> None:
    wire = Wire(str(tmp_path), share_bytes=20_000)
    in_memory: list[Element] = [numbers(0), numbers(1000), Watermark(5), rich(10)]
    sent = [*in_memory, numbers(2000), rich(100), Watermark(600), numbers(3000, 1), IDLE]
    wire.send(*sent)
    assert not wire.queue.entries
    assert wire.budget.reserved_bytes <= 20_000
    assert files(tmp_path)
    wire.send(END_OF_INPUT)
    found = wire.received()
    batches = [element for element in found if isinstance(element, ChangelogBatch)]
    wanted = [element for element in sent if isinstance(element, ChangelogBatch)]
    assert len(batches) == len(wanted)
    for got, want in zip(batches, wanted, strict=True):
        assert same(got, want)
    assert found[-1] == END_OF_INPUT
    assert Watermark(600) in found
    assert wire.budget.reserved_bytes == 0
    assert not files(tmp_path), "a file goes with the last batch that is read from it"
    wire.space.close()
    assert not list(tmp_path.iterdir())


def test_within_the_share_nothing_is_written(tmp_path: Path) -> None:
    wire = Wire(str(tmp_path), share_bytes=1 << 20)
    wire.send(numbers(0), numbers(1000), END_OF_INPUT)
    assert not list(tmp_path.iterdir())
    assert [element.num_rows for element in wire.received() if isinstance(element, ChangelogBatch)] == [1000, 1000]


def test_a_full_budget_spills_instead_of_failing(tmp_path: Path) -> None:
    wire = Wire(str(tmp_path), share_bytes=1 << 20, budget_bytes=10_000)
    wire.send(*[numbers(1000 * n) for n in range(50)], END_OF_INPUT)
    assert wire.channel.spilled_bytes > 0
    assert sum(element.num_rows for element in wire.received() if isinstance(element, ChangelogBatch)) == 50_000


def test_folders_are_taken_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql_runtime.network.blocking.FILE_BYTES", 1)
    first, second, third = (tmp_path / name for name in "abc")
    wire = Wire(f"{first},{second} | {third}", share_bytes=0)
    wire.send(*[numbers(1000 * n) for n in range(7)])
    assert [len(files(folder)) for folder in (first, second, third)] == [3, 2, 2]
    wire.send(END_OF_INPUT)
    found = [element.columns[0][0].as_py() for element in wire.received() if isinstance(element, ChangelogBatch)]
    assert found == [1000 * n for n in range(7)]
    assert not files(tmp_path)


def test_the_folders_of_the_option() -> None:
    assert temporary_folders("/a, /b|/c:/d") == (Path("/a"), Path("/b"), Path("/c"), Path("/d"))
    assert len(temporary_folders("")) == 1


def test_objects_stay_in_memory_and_are_refused_politely() -> None:
    objects = np.empty(10, dtype=object)
    batch = ChangelogBatch.of([PyObjectColumn(objects)])
    wire = Wire("/nowhere", share_bytes=0, budget_bytes=1000)
    wire.send(batch)
    with pytest.raises(ExecutionError, match=r"'exchange'.*flowsql.memory"):
        wire.send(batch)


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel's own full device; its file name is what the writer opens.
    made = SpillSpace.new_file

    def on_full_device(space: SpillSpace, types: tuple[object, ...]) -> spill.SpillFile:
        found = made(space, types)
        found.path.symlink_to("/dev/full")
        return found

    monkeypatch.setattr(SpillSpace, "new_file", on_full_device)
    wire = Wire(str(tmp_path), share_bytes=0)
    with pytest.raises(ExecutionError) as failed:
        wire.send(*[numbers(n, 100_000) for n in range(20)])
    assert failed.value.code == "spill-failed"
    assert failed.value.message == (
        f"Rows that memory cannot hold could not be written to '{tmp_path}': the disk is full."
    )
    assert "io.tmp.dirs" in (failed.value.hint or "")
    wire.space.close()
    assert not list(tmp_path.iterdir())


def test_an_unusable_folder_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExecutionError, match=f"cannot be written to '{tmp_path}/file/x': {os.strerror(errno.ENOTDIR)}"):
        SpillSpace(f"{tmp_path},{tmp_path}/file/x", "job").check()


def test_a_reader_that_wants_no_more_frees_memory_and_files(tmp_path: Path) -> None:
    wire = Wire(str(tmp_path), share_bytes=10_000)
    wire.send(numbers(0), numbers(1), numbers(2))
    assert files(tmp_path)
    wire.channel.stop()
    wire.send(numbers(3), END_OF_INPUT)
    assert not files(tmp_path)
    assert wire.budget.reserved_bytes == 0
    assert wire.received() == []


def test_a_cut_hands_over_what_stood_before_it(tmp_path: Path) -> None:
    wire = Wire(str(tmp_path), share_bytes=0)
    wire.send(numbers(0), CheckpointBarrier(1, 0))
    batch, barrier = wire.received()
    assert same(batch, numbers(0))
    assert barrier == CheckpointBarrier(1, 0)


# -- whole jobs


def blocking_graph(folder: Path, parallelism: int = 2) -> JobGraph:
    source = vertex(
        1, s.ScanSpec(s.TableSpec(("c", "d", "t"), ONE, ()), (0,), ONE), parallelism=parallelism, output=ONE
    )
    sink = vertex(2, collect(ONE), parallelism=parallelism, output=ONE)
    blocking = edge(source, sink, ShipStrategy.REBALANCE, partition_type=ResultPartitionType.BLOCKING)
    return graph(
        [source, sink], [blocking], {"io.tmp.dirs": str(folder), "flowsql.source.batch-rows": "4096"}, out=Collected()
    )


def big_store(monkeypatch: pytest.MonkeyPatch, rows: int = 300_000) -> FakeStore:
    store = FakeStore({f"s{part}": [(part * rows + n,) for n in range(rows)] for part in range(2)})  # type: ignore[misc]
    store.types = (pa.int64(),)
    return install(monkeypatch, store)


def test_a_job_with_more_rows_than_memory_spills_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big_store(monkeypatch)
    made: list[Path] = []
    new_file = SpillSpace.new_file

    def seen(space: SpillSpace, types: tuple[object, ...]) -> spill.SpillFile:
        found = new_file(space, types)
        made.append(found.path)
        return found

    monkeypatch.setattr(SpillSpace, "new_file", seen)
    job_graph = blocking_graph(tmp_path)
    cluster = LocalCluster(memory_bytes=2 << 20)  # the rows take 4.8 MB
    job = cluster.run(job_graph)
    assert job.status is JobStatus.FINISHED
    out = job_graph.resources["out"]
    assert sorted(value for batch in out.batches for value in batch.columns[0].to_pylist()) == list(range(600_000))
    assert made
    assert not list(tmp_path.iterdir())
    assert cluster.budget is not None
    assert cluster.budget.reserved_bytes == 0


@pytest.mark.parametrize("how", ["cancel", "failure"])
def test_files_go_when_the_job_does_not_end_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    big_store(monkeypatch)
    cluster = LocalCluster(memory_bytes=1 << 20)
    append = spill.SpillFile.append
    written, go_on = threading.Event(), threading.Event()

    def watched(file: spill.SpillFile, batch: ChangelogBatch) -> None:
        append(file, batch)
        if file.unread == 3:
            written.set()
            assert go_on.wait(60)
            if how == "failure":
                raise ExecutionError("broken", "broken on purpose")

    monkeypatch.setattr(spill.SpillFile, "append", watched)
    job = cluster.submit(blocking_graph(tmp_path))
    assert written.wait(60)
    assert files(tmp_path)
    if how == "cancel":
        job.cancel()
    go_on.set()
    if how == "cancel":
        job.cancel_and_wait()
        assert job.status is JobStatus.CANCELED
    else:
        with pytest.raises(ExecutionError, match="broken on purpose"):
            job.wait(60)
        assert job.status is JobStatus.FAILED
    assert not list(tmp_path.iterdir())
    assert cluster.budget is not None
    assert cluster.budget.reserved_bytes == 0


def test_a_job_with_an_unusable_folder_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big_store(monkeypatch, rows=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExecutionError, match="Temporary files cannot be written to"):
        LocalCluster().submit(blocking_graph(tmp_path / "file" / "x"))
