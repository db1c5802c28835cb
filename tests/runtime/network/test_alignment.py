"""Barriers over several channels: exact alignment, no barrier overtakes a row, whatever the interleaving."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import END_OF_INPUT, CheckpointBarrier, EndOfInput, Watermark
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network.channel import ConsumerQueue, LocalChannel
from flowsql_runtime.network.gate import InputGate, InputProcessor
from flowsql_runtime.task.mailbox import Mailbox

ROWS, BARRIER, MARK, END = "rows", "barrier", "watermark", "end"


class Wire:
    """Channels of some gates into one task, driven by hand."""

    def __init__(self, gates: tuple[int, ...], exactly_once: bool = True) -> None:
        self.queue = ConsumerQueue(Mailbox())
        self.channels = [
            [LocalChannel(Mailbox(), self.queue, gate, channel, 1 << 20) for channel in range(count)]
            for gate, count in enumerate(gates)
        ]
        self.flat = [channel for gate in self.channels for channel in gate]
        made = [InputGate(index, channels) for index, channels in enumerate(self.channels)]
        self.inputs = InputProcessor(self.queue, made, TaskMetrics("task", 0), exactly_once)
        self.sent = [0] * len(self.flat)
        self.seen: list[object] = []

    def rows(self, channel: int) -> None:
        """One batch, whose number of rows tells its place in the channel."""
        self.sent[channel] += 1
        self.flat[channel].put(ChangelogBatch((), self.sent[channel]), 8)

    def barrier(self, channel: int, number: int) -> None:
        self.flat[channel].put(CheckpointBarrier(number, 0))

    def drain(self) -> list[object]:
        """What the task sees until nothing can go on."""
        found: list[object] = []
        while (arrived := self.inputs.next()) is not None:
            found.extend(arrived[1])
        self.seen += found
        return found


def barriers(found: list[object]) -> list[int]:
    return [one.checkpoint_id for one in found if isinstance(one, CheckpointBarrier)]


def test_a_channel_waits_behind_its_barrier() -> None:
    wire = Wire((2,))
    wire.rows(0)
    wire.barrier(0, 1)
    wire.rows(0)
    assert len(wire.drain()) == 1
    assert wire.flat[0].backlog_bytes == 8, "what waits is still backlog"
    wire.rows(1)
    wire.barrier(1, 1)
    found = wire.drain()
    assert barriers(found[1:2]) == [1]
    assert len(found) == 3, "the row of channel 1, the barrier, the row that waited"
    assert wire.flat[0].backlog_bytes == 0


def test_alignment_spans_all_inputs_of_a_task() -> None:
    wire = Wire((1, 1))
    wire.barrier(0, 1)
    assert not wire.drain()
    wire.barrier(1, 1)
    assert barriers(wire.drain()) == [1]


def test_a_channel_that_ended_is_not_waited_for() -> None:
    wire = Wire((2,))
    wire.barrier(0, 1)
    wire.flat[1].put(END_OF_INPUT)
    assert barriers(wire.drain()) == [1]
    wire.barrier(0, 2)
    assert barriers(wire.drain()) == [2]


def test_a_checkpoint_that_was_given_up_blocks_nobody() -> None:
    wire = Wire((2,))
    wire.barrier(0, 1)
    wire.rows(0)
    assert not wire.drain()
    wire.inputs.give_up(1)
    assert len(wire.drain()) == 1
    wire.barrier(1, 1)
    assert not wire.drain(), "its last barrier means nothing"
    wire.barrier(0, 2)
    wire.barrier(1, 2)
    assert barriers(wire.drain()) == [2]


def test_a_newer_barrier_ends_the_alignment_of_a_lost_one() -> None:
    wire = Wire((2,))
    wire.barrier(0, 1)
    wire.rows(0)
    wire.drain()
    wire.barrier(1, 2)
    assert len(wire.drain()) == 1, "channel 0 goes on"
    wire.barrier(0, 2)
    assert barriers(wire.drain()) == [2]


def test_at_least_once_lets_rows_pass() -> None:
    wire = Wire((2,), exactly_once=False)
    wire.barrier(0, 1)
    wire.rows(0)
    assert len(wire.drain()) == 1
    wire.barrier(1, 1)
    assert barriers(wire.drain()) == [1]


STEPS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([ROWS, BARRIER, MARK, END, "task", "give up"])), max_size=60
)


@pytest.mark.hypothesis
@given(gates=st.sampled_from([(1,), (2,), (3,), (2, 1), (2, 3)]), steps=STEPS, exactly_once=st.booleans())
def test_any_interleaving_is_aligned(gates: tuple[int, ...], steps: list[tuple[int, str]], exactly_once: bool) -> None:
    """Each channel sends barriers 1, 2, ... between its rows; the task looks in between."""
    wire = Wire(gates, exactly_once)
    count = sum(gates)
    numbers, ended = [0] * count, [False] * count
    #: By channel and barrier: rows sent before it.
    before: dict[tuple[int, int], int] = {}
    given_up = 0
    for place, step in steps:
        channel = place % count
        if step == "task":
            wire.drain()
        elif step == "give up":
            given_up = max(given_up, min(numbers))
            wire.inputs.give_up(given_up)
        elif ended[channel]:
            continue
        elif step == ROWS:
            wire.rows(channel)
        elif step == MARK:
            wire.flat[channel].put(Watermark(wire.sent[channel]))
        elif step == BARRIER:
            numbers[channel] += 1
            before[channel, numbers[channel]] = wire.sent[channel]
            wire.barrier(channel, numbers[channel])
        else:
            ended[channel] = True
            wire.flat[channel].put(END_OF_INPUT)
    wire.drain()
    _check(wire, before, count, exactly_once)
    # No barrier is lost for ever: once every channel sends one more, or has ended, it comes.
    top = max(numbers) + 1
    for channel in range(count):
        if not ended[channel]:
            wire.barrier(channel, top)
    found = wire.drain()
    if not all(ended):
        assert barriers(found)[-1:] == [top]
        assert not wire.queue.entries


def _check(wire: Wire, before: dict[tuple[int, int], int], count: int, exactly_once: bool) -> None:
    """At a barrier the task has seen, of each channel, all rows before it, and with exactly once no row behind it."""
    seen_rows = 0
    order: list[int] = []
    for element in wire.seen:
        if isinstance(element, ChangelogBatch):
            seen_rows += 1
        elif isinstance(element, CheckpointBarrier):
            order.append(element.checkpoint_id)
            wanted = sum(before.get((channel, element.checkpoint_id), wire.sent[channel]) for channel in range(count))
            assert seen_rows == wanted if exactly_once else seen_rows >= wanted
    assert order == sorted(set(order)), "each barrier once, in order"
    assert sum(isinstance(element, EndOfInput) for element in wire.seen) <= len(wire.channels)
