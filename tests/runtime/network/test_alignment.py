"""Barriers over several channels: exact alignment, no barrier overtakes a row, whatever the interleaving."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import END_OF_INPUT, CheckpointBarrier, EndOfInput, Watermark
from flowsql_runtime.checkpoint.encode import decode_in_flight, encode_in_flight
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
@example(gates=(2,), steps=[(0, BARRIER), (0, BARRIER)], exactly_once=True)
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


# -- unaligned


class OvertakingWire(Wire):
    """Barriers are announced as they are put; the task overtakes when it is due."""

    def __init__(self, gates: tuple[int, ...]) -> None:
        super().__init__(gates)
        self.inputs.on_announced(lambda channel, barrier: self.inputs.announced(barrier))

    def barrier(self, channel: int, number: int, after_ms: int = 0) -> None:
        barrier = CheckpointBarrier(number, 0, unaligned_after_ms=after_ms)
        self.flat[channel].put(barrier)
        self.flat[channel].announce(barrier)

    def mails(self, now_ms: int = 0) -> int | None:
        """What the task does between two elements; the number of a barrier that overtook."""
        self.queue.mailbox.run_mails()
        if self.inputs.due_ms is not None and self.inputs.due_ms <= now_ms:
            return self.inputs.overtake().checkpoint_id
        return None


def test_a_barrier_overtakes_what_waits_before_it() -> None:
    wire = OvertakingWire((2,))
    wire.rows(0)
    wire.rows(1)
    wire.barrier(0, 1)
    wire.rows(0)
    assert wire.mails() == 1
    assert wire.inputs.recorded() is None, "channel 1 has not sent its barrier"
    wire.rows(1)
    wire.barrier(1, 1)
    wire.mails()
    found = wire.inputs.recorded()
    assert found is not None
    assert [(one.channel, one.element.num_rows) for one in found.elements] == [(0, 1), (1, 1), (1, 2)]  # type: ignore[union-attr]
    assert len(wire.drain()) == 4, "all of it is processed, no channel waits"


def test_a_barrier_waits_as_long_as_it_says_before_it_overtakes() -> None:
    wire = OvertakingWire((2,))
    wire.rows(0)
    wire.barrier(0, 1, after_ms=100)
    assert wire.mails(99) is None
    assert len(wire.drain()) == 1
    wire.rows(0)
    assert not wire.drain(), "until then it is aligned"
    assert wire.mails(100) == 1
    wire.barrier(1, 1)
    wire.mails(100)
    found = wire.inputs.recorded()
    assert found is not None
    assert not found.elements, "nothing was before the barrier any more"
    assert len(wire.drain()) == 1


def test_what_was_in_flight_comes_first_after_a_restore() -> None:
    wire = OvertakingWire((1, 2))
    for channel in (0, 1, 2):
        wire.rows(channel)
    wire.flat[1].put(Watermark(7))
    for channel in (0, 1, 2):
        wire.barrier(channel, 1)
    assert wire.mails() == 1
    found = wire.inputs.recorded()
    assert found is not None
    again = OvertakingWire((1, 2))
    again.rows(0)
    again.inputs.put_back(decode_in_flight(encode_in_flight(found, False).data, False))
    assert [type(one) for one in again.drain()] == [ChangelogBatch] * 4
    again.flat[2].put(Watermark(9))
    assert again.drain() == [Watermark(7)], "the watermark that was on its way counts"


UNALIGNED = st.sampled_from([ROWS, BARRIER, END, "element", "mails"])


@pytest.mark.hypothesis
@given(
    gates=st.sampled_from([(1,), (2,), (2, 1), (2, 2)]),
    steps=st.lists(st.tuples(st.integers(0, 3), UNALIGNED), max_size=60),
    after_ms=st.sampled_from([0, 5]),
)
def test_what_is_processed_and_what_was_in_flight_make_up_the_snapshot(
    gates: tuple[int, ...], steps: list[tuple[int, str]], after_ms: int
) -> None:
    """One barrier a channel, anywhere between its rows. When it is complete, each channel's rows before the barrier
    are either processed before the snapshot or in flight, none twice."""
    wire = OvertakingWire(gates)
    count = sum(gates)
    before: list[int | None] = [None] * count
    ended = [False] * count
    processed_at: list[int] | None = None
    processed = [0] * count
    now_ms = 0
    numbers = {id(channel): place for place, channel in enumerate(wire.flat)}

    def take() -> None:
        nonlocal processed_at
        entries = wire.queue.entries
        head = next((entry for entry in entries if entry[0] not in wire.inputs._aligner.blocked), None)
        arrived = wire.inputs.next()
        for element in () if arrived is None else arrived[1]:
            if isinstance(element, ChangelogBatch):
                assert head is not None
                processed[numbers[id(head[0])]] += 1
            elif isinstance(element, CheckpointBarrier):
                assert processed_at is None
                processed_at = list(processed)

    def mails() -> None:
        nonlocal processed_at
        if wire.mails(now_ms) is not None:
            assert processed_at is None
            processed_at = list(processed)

    for place, step in steps:
        channel = place % count
        now_ms += 1
        if step == "element":
            take()
        elif step == "mails":
            mails()
        elif ended[channel]:
            continue
        elif step == ROWS:
            wire.rows(channel)
        elif step == BARRIER and before[channel] is None:
            before[channel] = wire.sent[channel]
            wire.barrier(channel, 1, after_ms)
        elif step == END:
            ended[channel] = True
            wire.flat[channel].put(END_OF_INPUT)
    for channel in range(count):
        if before[channel] is None and not ended[channel]:
            before[channel] = wire.sent[channel]
            wire.barrier(channel, 1, after_ms)
    now_ms += 10
    mails()
    for _ in range(200):
        take()
        mails()
    assert sum(processed) == sum(wire.sent), "nothing is lost on the way"
    if all(number is None for number in before):
        return
    assert processed_at is not None
    found = wire.inputs.recorded()
    assert not wire.inputs._recorder or found is not None
    in_flight = [0] * count
    place_of = {(gate, one): sum(gates[:gate]) + one for gate in range(len(gates)) for one in range(gates[gate])}
    for one in () if found is None else found.elements:
        in_flight[place_of[one.input_index, one.channel]] += 1
    wanted = [wire.sent[channel] if before[channel] is None else before[channel] for channel in range(count)]
    assert [a + b for a, b in zip(processed_at, in_flight, strict=True)] == wanted
