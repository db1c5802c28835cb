"""Splits of scans of topics: one a partition, from the offset where the job begins to the one where its input ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import orjson

from flowsql_connectors.kafka.properties import reset_policy
from flowsql_connectors.kafka.questions import Partition, Questions, committed
from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.record import record

if TYPE_CHECKING:
    from flowsql_connectors.kafka.client import Cluster

_EARLIEST: Final = "earliest-offset"
_MASK: Final = 0x7FFFFFFF


@record
class Boundary:
    """Where reading begins or ends: a mode of ``scan.startup.mode`` or ``scan.bounded.mode``."""

    mode: str
    offsets: Mapping[int, int] | None = None
    timestamp_ms: int | None = None


@record
class TopicSplit:
    """A partition from ``offset`` on, without the first ``rows_done`` rows of that record.

    ``stop``: the offset before which reading ends; None: never.
    """

    topic: str
    partition: int
    offset: int
    rows_done: int = 0
    stop: int | None = None

    @property
    def id(self) -> str:
        """The partition's name."""
        return f"{self.topic}-{self.partition}"

    def encode(self) -> Split:
        """The split as opaque bytes."""
        return Split(self.id, orjson.dumps([self.topic, self.partition, self.offset, self.rows_done, self.stop]))

    @staticmethod
    def decode(split: Split) -> TopicSplit:
        """The split behind opaque bytes."""
        return TopicSplit(*orjson.loads(split.data))


class TopicEnumerator(SplitEnumerator):
    """Finds partitions when the job starts, and new ones if asked.

    Args:
        topics: names, or a pattern that names match as a whole.
        given: the table's properties.
        interval_ms: how often to look for new partitions; None: never.
    """

    def __init__(
        self,
        cluster: Cluster,
        topics: tuple[str, ...] | re.Pattern[str],
        given: Mapping[str, str],
        start: Boundary,
        stop: Boundary,
        interval_ms: int | None,
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._given = given
        self._start = start
        self._stop = stop
        self._interval_ms = interval_ms
        self._known: set[Partition] = set()

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All partitions that have something to read, or may have it later."""
        asked = self._cluster.questions()
        found = self._find(asked)
        self._known.update(found)
        return self._deal(self._splits(asked, found, self._start), parallelism)

    def discovery_interval_ms(self) -> int | None:
        """``scan.topic-partition-discovery.interval``."""
        return self._interval_ms

    def discover(self, parallelism: int) -> list[Split]:
        """Partitions that are new, from their first record on."""
        asked = self._cluster.questions()
        new = [partition for partition in self._find(asked) if partition not in self._known]
        return [split.encode() for split in self._splits(asked, new, Boundary(_EARLIEST))]

    def assign(self, found: list[Split], parallelism: int) -> list[list[Split]]:
        """Deal out new partitions, and remember them."""
        decoded = [TopicSplit.decode(split) for split in found]
        self._known.update((split.topic, split.partition) for split in decoded)
        return self._deal(decoded, parallelism)

    def redistribute(self, splits: list[Split], parallelism: int) -> list[list[Split]]:
        """Each partition by its own number, at its position."""
        return self._deal([TopicSplit.decode(split) for split in splits], parallelism)

    def snapshot(self) -> bytes:
        """The partitions that were dealt out."""
        return orjson.dumps(sorted(self._known))

    def restore(self, state: bytes) -> None:
        """The partitions that were dealt out."""
        self._known = {(topic, partition) for topic, partition in orjson.loads(state)}

    def _find(self, asked: Questions) -> list[Partition]:
        if isinstance(self._topics, tuple):
            found = asked.partitions(self._topics)
        else:
            everything = asked.partitions(None)
            found = {name: parts for name, parts in everything.items() if self._topics.fullmatch(name)}
        return sorted((topic, partition) for topic, partitions in found.items() for partition in partitions)

    def _splits(self, asked: Questions, partitions: list[Partition], start: Boundary) -> list[TopicSplit]:
        if not partitions:
            return []
        first = asked.earliest(partitions)
        starts = first if start.mode == _EARLIEST else self._offsets(asked, start, partitions)
        stops: Mapping[Partition, int | None] = dict.fromkeys(partitions)
        if self._stop.mode != "unbounded":
            stops = self._offsets(asked, self._stop, partitions, ends=True)
        splits = []
        for topic, partition in partitions:
            stop = stops[topic, partition]
            # Records before the first one are gone.
            begin = max(starts[topic, partition], first[topic, partition])
            if stop is None or begin < stop:
                splits.append(TopicSplit(topic, partition, begin, 0, stop))
        return splits

    def _offsets(
        self, asked: Questions, at: Boundary, partitions: list[Partition], ends: bool = False
    ) -> dict[Partition, int]:
        match at.mode:
            case "earliest-offset":
                return asked.earliest(partitions)
            case "latest-offset":
                return asked.latest(partitions)
            case "timestamp":
                assert at.timestamp_ms is not None
                return asked.at(at.timestamp_ms, partitions)
            case "specific-offsets":
                assert at.offsets is not None
                given = {(topic, p): at.offsets[p] for topic, p in partitions if p in at.offsets}
                unnamed = [one for one in partitions if one not in given]
                return {**self._unnamed(asked, unnamed), **given} if unnamed else given
        return self._of_group(asked, partitions, ends)

    def _unnamed(self, asked: Questions, partitions: list[Partition]) -> dict[Partition, int]:
        """Offsets of partitions that 'specific-offsets' leaves out: those of the group, else the first ones."""
        if self._cluster.group is None:
            topic, partition = partitions[0]
            raise BindError(
                "missing-option",
                f"'specific-offsets' names no offset of partition {partition} of topic '{topic}', and there is no "
                "group that could have one.",
                hint="name an offset for each partition, or set 'properties.group.id'",
            )
        told = committed(self._cluster, partitions)
        found = {partition: offset for partition, offset in told.items() if offset is not None}
        return {**asked.earliest([one for one in partitions if one not in found]), **found}

    def _of_group(self, asked: Questions, partitions: list[Partition], ends: bool) -> dict[Partition, int]:
        told = committed(self._cluster, partitions)
        unknown = [partition for partition, offset in told.items() if offset is None]
        found = {partition: offset for partition, offset in told.items() if offset is not None}
        if unknown and ends:
            topic, partition = unknown[0]
            raise ConnectorError(
                "kafka-no-offset",
                f"Partition {topic}-{partition} should stop at committed offset, but there is no committed offset of "
                f"this partition for group {self._cluster.group}.",
                hint="'scan.bounded.mode' = 'latest-offset' reads what is there",
            )
        if ends:
            return found
        reset = reset_policy(self._given)
        if unknown and reset == "none":
            topic, partition = unknown[0]
            raise ConnectorError(
                "kafka-no-offset",
                f"Undefined offset with no reset policy for partitions: [{topic}-{partition}]: group "
                f"'{self._cluster.group}' has committed none.",
                hint="'scan.startup.mode' = 'earliest-offset' reads all, 'properties.auto.offset.reset' says where to "
                "begin without an offset",
            )
        if reset == "earliest":
            return {**found, **asked.earliest(unknown)}
        return {**found, **asked.latest(unknown)}

    def _deal(self, splits: list[TopicSplit], parallelism: int) -> list[list[Split]]:
        """Flink's rule: the partitions of a topic one after another, from a reader on that the topic's name tells."""
        dealt: list[list[Split]] = [[] for _ in range(parallelism)]
        for split in sorted(splits, key=lambda split: (split.topic, split.partition)):
            first = ((_java_hash(split.topic) * 31) & _MASK) % parallelism
            dealt[(first + split.partition) % parallelism].append(split.encode())
        return dealt


def _java_hash(text: str) -> int:
    """``String.hashCode``, without its sign."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value
