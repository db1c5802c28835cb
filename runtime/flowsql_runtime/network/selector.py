"""Channel selectors: which rows of a batch go to which channel. One per ship strategy."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_compute.keys import key_hash64, subtask_of
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import InternalError
from flowsql_core.graph.job import Partitioning, ShipStrategy

#: Per channel its part of the batch, or None where it gets nothing.
Parts = list[ChangelogBatch | None]
CustomPartitioner = Callable[[ChangelogBatch, int], npt.NDArray[np.int32]]


class ChannelSelector(Protocol):
    """Deals the rows of a batch to channels."""

    def select(self, batch: ChangelogBatch) -> Parts:
        """One entry per channel. Every channel gets the whole watermark track, by its part or else by the writer."""
        ...


class FirstChannelSelector:
    """FORWARD, which has no other channel, and GLOBAL: everything to the first one."""

    def __init__(self, channels: int) -> None:
        self._rest: Parts = [None] * (channels - 1)

    def select(self, batch: ChangelogBatch) -> Parts:
        """All rows to one channel."""
        return [batch, *self._rest]


class BroadcastSelector:
    """BROADCAST: all rows to all channels, by reference; of Python objects each channel but one gets copies."""

    def __init__(self, channels: int) -> None:
        self._channels = channels

    def select(self, batch: ChangelogBatch) -> Parts:
        """The same batch for everyone."""
        if batch.holds_objects and self._channels > 1:
            # Loaded by jobs of DataStreams only.
            from flowsql_runtime.stream.copies import copied_batch

            return [batch, *(copied_batch(batch) for _ in range(self._channels - 1))]
        return [batch] * self._channels


class AssigningSelector:
    """Base of those that compute a channel per row."""

    def __init__(self, channels: int) -> None:
        self.channels = channels

    def assign(self, batch: ChangelogBatch) -> npt.NDArray[np.int32]:
        """The channel of each row, int32 (n,)."""
        raise NotImplementedError

    def select(self, batch: ChangelogBatch) -> Parts:
        """Stable split: rows of a channel keep their order."""
        return split_by_channel(batch, self.assign(batch), self.channels)


class HashSelector:
    """HASH: by key group of the key columns."""

    def __init__(self, channels: int, keys: tuple[int, ...], max_parallelism: int) -> None:
        self._channels = channels
        self._keys = keys
        self._owners = subtask_of(np.arange(max_parallelism, dtype=np.int32), max_parallelism, channels)

    def select(self, batch: ChangelogBatch) -> Parts:
        """To each channel the rows whose key groups it owns; one channel, or no key, needs no hash."""
        if self._channels == 1 or not self._keys:
            return [batch, *[None] * (self._channels - 1)]
        # Loaded where a job first hashes.
        from flowsql_runtime.kernels.split import deal

        order = np.empty(batch.num_rows, np.int32)
        ends = np.empty(self._channels, np.int64)
        hashes = key_hash64([batch.columns[index] for index in self._keys])
        deal(hashes, self._owners, order, ends, np.empty(batch.num_rows, np.int32))
        parts: Parts = []
        start = 0
        for end in ends.tolist():
            if end - start == batch.num_rows:
                parts.append(batch)
            else:
                parts.append(batch.part(order[start:end]) if end > start else None)
            start = end
        return parts


class RoundRobinSelector(AssigningSelector):
    """REBALANCE and RESCALE: row by row in turn, starting where the last batch stopped."""

    def __init__(self, channels: int, first: int) -> None:
        super().__init__(channels)
        self._next = first

    def assign(self, batch: ChangelogBatch) -> npt.NDArray[np.int32]:
        """Consecutive channels."""
        turns = (self._next + np.arange(batch.num_rows)) % self.channels
        self._next = (self._next + batch.num_rows) % self.channels
        return turns.astype(np.int32)


class ShuffleSelector(AssigningSelector):
    """SHUFFLE: each row to a random channel."""

    def __init__(self, channels: int, rng: random.Random) -> None:
        super().__init__(channels)
        self._rng = np.random.default_rng(rng.getrandbits(64))

    def assign(self, batch: ChangelogBatch) -> npt.NDArray[np.int32]:
        """Uniform channels."""
        return self._rng.integers(0, self.channels, batch.num_rows, dtype=np.int32)


class CustomSelector(AssigningSelector):
    """CUSTOM: a program's function names the channels."""

    def __init__(self, channels: int, partitioner: CustomPartitioner) -> None:
        super().__init__(channels)
        self._partitioner = partitioner

    def assign(self, batch: ChangelogBatch) -> npt.NDArray[np.int32]:
        """What the function answers; it must name existing channels."""
        chosen = np.asarray(self._partitioner(batch, self.channels), dtype=np.int32)
        if len(chosen) != batch.num_rows or (len(chosen) and not 0 <= chosen.min() <= chosen.max() < self.channels):
            raise InternalError(f"a custom partitioner must name one channel below {self.channels} per row")
        return chosen


def split_by_channel(batch: ChangelogBatch, channel: npt.NDArray[np.int32], channels: int) -> Parts:
    """Rows by channel in their order, each with the track remapped; None for a channel without rows."""
    if channels == 2:
        # The common case on small machines: two selections are cheaper than a sort.
        to_second = channel != 0
        second = np.flatnonzero(to_second)
        if not len(second):
            return [batch, None]
        if len(second) == batch.num_rows:
            return [None, batch]
        return [batch.take(np.flatnonzero(~to_second)), batch.take(second)]
    counts = np.bincount(channel, minlength=channels)
    if counts.max(initial=0) == batch.num_rows:
        only: Parts = [None] * channels
        only[int(counts.argmax())] = batch
        return only
    small = channel.astype(np.uint8 if channels <= 256 else np.uint16)  # radix sort below 16 bits
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(counts)
    return [batch.take(order[end - count : end]) if count else None for count, end in zip(counts, ends, strict=True)]


def make_selector(
    partitioning: Partitioning,
    channels: int,
    max_parallelism: int,
    rng: random.Random,
    resources: Mapping[str, Any],
) -> ChannelSelector:
    """The selector of one producing subtask.

    Args:
        partitioning: of the exchange edge.
        channels: consuming subtasks that it is connected to, see :func:`receivers`.
        max_parallelism: of the consumer (key groups).
        rng: of the producing task.
        resources: the job's objects (custom partitioners).
    """
    match partitioning.strategy:
        case ShipStrategy.FORWARD | ShipStrategy.GLOBAL:
            return FirstChannelSelector(channels)
        case ShipStrategy.BROADCAST:
            return BroadcastSelector(channels)
        case ShipStrategy.HASH:
            return HashSelector(channels, partitioning.keys, max_parallelism)
        case _ if channels == 1:
            return FirstChannelSelector(1)
        case ShipStrategy.REBALANCE:
            return RoundRobinSelector(channels, rng.randrange(channels))
        case ShipStrategy.RESCALE:
            return RoundRobinSelector(channels, 0)
        case ShipStrategy.SHUFFLE:
            return ShuffleSelector(channels, rng)
        case ShipStrategy.CUSTOM:
            return CustomSelector(channels, resources[partitioning.resource or ""])
    raise AssertionError(partitioning.strategy)


def receivers(strategy: ShipStrategy, subtask: int, parallelism: int, consumers: int) -> range:
    """The consuming subtasks that one producer is connected to: for FORWARD and RESCALE not all, as in Flink.

    Args:
        subtask: of the producer, below ``parallelism``.
        parallelism: of the producer.
        consumers: parallelism of the consumer.

    Source: Flink, ``DistributionPattern.POINTWISE``.
    """
    match strategy:
        case ShipStrategy.FORWARD:
            if consumers != parallelism:
                raise InternalError(f"a FORWARD edge joins parallelism {parallelism} with {consumers}")
            return range(subtask, subtask + 1)
        case ShipStrategy.RESCALE:
            first = subtask * consumers // parallelism
            return range(first, max(first + 1, (subtask + 1) * consumers // parallelism))
        case _:
            return range(consumers)
