"""INSERT INTO topics: writers that send, flush at checkpoints, and hold keys' newest rows back where asked to."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from flowsql_connectors.kafka.client import Cluster
from flowsql_connectors.kafka.encode import RecordEncoder, Records
from flowsql_connectors.kafka.options import (
    FLUSH_INTERVAL_MS,
    FLUSH_ROWS,
    GUARANTEE,
    PARTITIONER,
    TRANSACTION_PREFIX,
)
from flowsql_connectors.kafka.producer import RecordProducer, joined
from flowsql_connectors.kafka.properties import given_properties
from flowsql_connectors.kafka.record_format import RecordFormat
from flowsql_connectors.kafka.transactions import CollectingWriter, TransactionCommitter
from flowsql_connectors.options import SINK_PARALLELISM, OptionValues
from flowsql_connectors.spi.alarm import ALARM
from flowsql_connectors.spi.sink import Committable, Committer, SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import SinkSpec
from flowsql_core.row import UPSERT, ChangelogMode


class TopicSink(TableSink):
    """A sink of a ``kafka`` or ``upsert-kafka`` table.

    Args:
        topics: that rows may go to, the first one where they do not say; or what the names of all match.
        upserts: records are the newest rows of their keys.
    """

    def __init__(
        self,
        sink: SinkSpec,
        values: OptionValues,
        records: RecordFormat,
        topics: tuple[str, ...] | re.Pattern[str],
        upserts: bool,
    ) -> None:
        self._sink = sink
        self._values = values
        self._records = records
        self._topics = topics
        self._topic = None if isinstance(topics, re.Pattern) else topics[0]
        self._upserts = upserts
        self._cluster = Cluster(given_properties(sink.table))
        self._partitioner = "default" if upserts else values.get(PARTITIONER)

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """Upserts, or what the format of the values holds."""
        return UPSERT if self._upserts else self._records.value_format.changelog_mode

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        return self._values.get(SINK_PARALLELISM)

    def create_committer(self) -> Committer | None:
        """Who writes the transactions of exactly once."""
        prefix = self._values.get(TRANSACTION_PREFIX)
        if self._values.get(GUARANTEE) != "exactly-once" or prefix is None:
            return None
        return TransactionCommitter(self._cluster, prefix, self._topic, self._partitioner)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with a producer of its own."""
        encoder = RecordEncoder(self._sink, self._records, self._upserts, self._topics, context.configuration)
        guarantee = self._values.get(GUARANTEE)
        writer: TopicWriter | CollectingWriter
        if guarantee == "exactly-once":
            writer = CollectingWriter(encoder, context.subtask)
        else:
            producer = RecordProducer(self._cluster, self._topic, self._partitioner, context.subtask)
            writer = TopicWriter(encoder, producer, guarantee != "none", context)
        rows, interval_ms = self._values.get(FLUSH_ROWS), self._values.get(FLUSH_INTERVAL_MS)
        return HoldingWriter(writer, rows, interval_ms, context) if self._upserts and rows else writer


class TopicWriter(SinkWriter):
    """Sends rows as they come.

    Args:
        waits: a checkpoint is complete only once the brokers have all rows before it.
    """

    def __init__(self, encoder: RecordEncoder, producer: RecordProducer, waits: bool, context: WriterContext) -> None:
        self.encoder = encoder
        self._producer = producer
        self._waits = waits
        self._context = context

    def write(self, batch: ChangelogBatch) -> None:
        """All rows of a batch."""
        self.send(self.encoder.encode(batch))

    def send(self, records: Records) -> None:
        """Records that are encoded."""
        self._producer.write(records, self._context)

    def flush(self, end_of_input: bool) -> None:
        """At the end all rows are sent, whatever is guaranteed in case of failures."""
        if self._waits or end_of_input:
            self._producer.flush()
        else:
            self._producer.check()

    def close(self) -> None:
        """Rows behind the last checkpoint may be lost: the job goes back to it, or ended."""
        self._producer.close()


class HoldingWriter(SinkWriter):
    """Holds rows back for a while: of each key only the newest one is sent.

    Args:
        max_rows: held at most.
        interval_ms: for at most so long.
    """

    def __init__(
        self, writer: TopicWriter | CollectingWriter, max_rows: int, interval_ms: int, context: WriterContext
    ) -> None:
        self._writer = writer
        self._max_rows = max_rows
        self._interval_ms = interval_ms
        self._submit: Callable[[Callable[[], None]], None] = context.submit
        self._held: list[Records] = []
        self._rows = 0
        #: Number of what is held, so that an alarm for what was sent meanwhile does nothing.
        self._turn = 0
        self._closed = False

    def write(self, batch: ChangelogBatch) -> None:
        """Hold the rows; send when there are many."""
        if not self._held:
            turn = self._turn
            ALARM.after(self._interval_ms / 1000, lambda: self._submit(lambda: self._due(turn)))
        self._held.append(self._writer.encoder.encode(batch))
        self._rows += batch.num_rows
        if self._rows >= self._max_rows:
            self._send()

    def flush(self, end_of_input: bool) -> None:
        """Nothing is held over a checkpoint."""
        self._send()
        self._writer.flush(end_of_input)

    def prepare_commit(self) -> list[Committable]:
        """What the writer below has."""
        return self._writer.prepare_commit()

    def close(self) -> None:
        """As the writer below."""
        self._closed = True
        self._writer.close()

    def _due(self, turn: int) -> None:
        if turn == self._turn and not self._closed:
            self._send()

    def _send(self) -> None:
        if not self._held:
            return
        held, self._held, self._rows = self._held, [], 0
        self._turn += 1
        records = joined(held)
        codes = np.asarray(records.keys.dictionary_encode().indices)
        last = np.zeros(codes.max() + 1, np.int64)
        last[codes] = np.arange(len(codes))
        self._writer.send(records.take(np.sort(last)))
