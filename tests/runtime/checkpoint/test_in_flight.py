"""Rows on their way in an unaligned checkpoint, put back at the parallelism that they were saved at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.element import IDLE, MIN_WATERMARK, CheckpointBarrier, Watermark
from flowsql_core.graph.job import Partitioning, ShipStrategy
from flowsql_runtime.checkpoint.manifest import Manifest, OperatorState, encode_manifest
from flowsql_runtime.checkpoint.recovery import SnapshotReader
from flowsql_runtime.checkpoint.storage import MemoryStorage
from flowsql_runtime.checkpoint.write import write_task
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network.channel import ConsumerQueue, Element, LocalChannel
from flowsql_runtime.network.gate import InputGate, InputProcessor
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.task.mailbox import Mailbox
from flowsql_runtime.task.restore import TaskPlace


def inputs() -> tuple[list[LocalChannel], InputProcessor]:
    """One gate of two channels."""
    queue = ConsumerQueue(Mailbox())
    channels = [LocalChannel(Mailbox(), queue, 0, index, 1 << 20) for index in range(2)]
    return channels, InputProcessor(queue, [InputGate(0, channels)], TaskMetrics("task", 0))


def rows(value: int, watermark_ms: int) -> ChangelogBatch:
    track = WatermarkTrack(np.array([1], np.int32), np.array([watermark_ms], np.int64))
    return ChangelogBatch.of([pa.array([value])]).with_track(track)


def seen(processor: InputProcessor) -> list[Element]:
    found: list[Element] = []
    while (arrived := processor.next()) is not None:
        found.extend(arrived[1])
    return found


def saved() -> SnapshotReader:
    """The producer of channel 1 is far ahead, with rows on their way; that of channel 0 holds the watermark at 10."""
    channels, processor = inputs()
    channels[0].put(rows(1, 10))
    channels[1].put(rows(2, 30))
    seen(processor)
    channels[1].put(rows(3, 40))
    channels[0].put(Watermark(11))
    channels[0].put(IDLE)
    barrier = CheckpointBarrier(1, 0, unaligned_after_ms=0)
    for channel in channels:
        channel.put(barrier)
    processor.announced(barrier)
    processor.overtake()
    found = processor.recorded()
    assert found is not None
    assert len(found.elements) == 3
    folder = MemoryStorage().folder("chk-1")
    state = write_task(folder, "0-0.state", 0, {"op": OperatorSnapshot()}, False, -1, found).states["op"]
    operator = OperatorState("op", "op", "", 1, 128, (state,))
    folder.publish(encode_manifest(Manifest(1, "checkpoint", 0, "", "", {"op": operator}), b""))
    return SnapshotReader(folder)


@pytest.mark.parametrize("own", [False, True])
def test_watermarks_of_channels_come_back_only_with_the_splits_behind_them(own: bool) -> None:
    """Where splits are dealt out anew, what channel 1 had promised is no promise of its new producer.

    The producers may have changed places: the one that was ahead sends through channel 0 now. Were channel 1 still
    at 40, the time would be 40 and the rows from 20 on late.
    """
    place = TaskPlace(0, 1, range(128), 128, ((Partitioning(ShipStrategy.HASH, (0,)), 2),), own)
    in_flight = saved().task(["op"], place).in_flight
    assert in_flight is not None
    channels, processor = inputs()
    channels[0].put(Watermark(50))
    channels[1].put(Watermark(20))
    processor.put_back(in_flight)
    found = seen(processor)
    batches = [one for one in found if isinstance(one, ChangelogBatch)]
    assert [batch.columns[0].to_pylist() for batch in batches] == [[3]], "the rows come back in any case"
    risen = [one.timestamp_ms for one in found if isinstance(one, Watermark)]
    tracked = [batch.track.last_ms for batch in batches if batch.track is not None]
    assert max([*risen, *tracked], default=MIN_WATERMARK) == (40 if own else 20)
