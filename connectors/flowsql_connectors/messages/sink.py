"""Sinks of messages: rows wait a little, are encoded, and go together; at each checkpoint all of them have arrived."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from time import sleep
from typing import ClassVar, Final

from flowsql_connectors.formats.format import EncodeContext, FileFormat, MessageEncoder
from flowsql_connectors.messages.backoff import Backoff
from flowsql_connectors.messages.format_option import format_of, format_options
from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.options import SINK_PARALLELISM, ConnectorOption, OptionSet, OptionValues, parse_natural
from flowsql_connectors.spi.alarm import ALARM
from flowsql_connectors.spi.counters import BYTES_SENT
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, UPSERT, ChangelogMode
from flowsql_core.types.logical import LogicalType

FLUSH_ROWS = ConnectorOption(
    "sink.buffer-flush.max-rows", parse_natural, 100, "Rows that are sent together at least; 0: no matter how many."
)
FLUSH_MS = ConnectorOption(
    "sink.buffer-flush.interval", parse_duration_ms, 1_000, "How long rows wait to be sent; 0: until a checkpoint."
)
RETRIES = ConnectorOption("sink.max-retries", parse_natural, 3, "How often rows that were not taken are sent again.")
FLUSH_OPTIONS: Final = (FLUSH_ROWS, FLUSH_MS, RETRIES)
#: What every sink has.
SINK_OPTIONS: Final = OptionSet(optional=(SINK_PARALLELISM, *FLUSH_OPTIONS))


@record
class Flushing:
    """When rows are sent: ``rows`` at least wait, or the first of them for ``interval_ms``; 0: no matter.

    ``backoff``: how often those that were not taken are sent again. ``bytes``: rows also go when those that wait take
    so many; 0: no matter. ``at_checkpoints``: a checkpoint waits for them.
    """

    rows: int
    interval_ms: int
    backoff: Backoff
    bytes: int = 0
    at_checkpoints: bool = True


class MessageSinkFactory(SinkFactory):
    """Makes sinks of messages. A connector says its options and makes outlets."""

    #: Options beside ``connector``, ``format``, those of the format, ``sink.parallelism`` and ``flush_options``. Of
    #: tables that are also read, merged with ``SOURCE_OPTIONS``.
    own_options: ClassVar[OptionSet] = OptionSet()
    #: Options of when rows are sent, which :meth:`flushing` reads.
    flush_options: ClassVar[tuple[ConnectorOption[int], ...]] = FLUSH_OPTIONS
    #: Metadata keys that rows may have, with their types.
    metadata: ClassVar[Mapping[str, LogicalType]] = {}
    #: Whether rows are encoded by a format; the format where a table names none.
    formats: ClassVar[bool] = True
    default_format: ClassVar[str | None] = None
    #: Whether changes are written by the primary key of tables that have one.
    upserts: ClassVar[bool] = False
    #: Whether the outlet takes every kind of change.
    changes: ClassVar[bool] = False
    #: Whether one subtask alone writes.
    alone: ClassVar[bool] = False
    #: Whether outlets are opened before there is a row: others connect to them.
    listens: ClassVar[bool] = False

    @abstractmethod
    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """An outlet of one subtask. Nothing is connected yet.

        Raises:
            ConnectorError: the client library is not installed.
        """

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Refuse options that do not fit together, when a statement is planned.

        Raises:
            BindError: with what would be right.
        """

    def flushing(self, values: OptionValues) -> Flushing:
        """When rows are sent, and how often again."""
        return Flushing(values.get(FLUSH_ROWS), values.get(FLUSH_MS), Backoff(attempts=values.get(RETRIES)))

    def options(self, table: TableSpec) -> OptionSet:
        """All options of a table."""
        parallelism = () if self.alone else (SINK_PARALLELISM,)
        made = self.own_options.merged(OptionSet(optional=(*parallelism, *self.flush_options)))
        return made.merged(format_options(table, self.default_format)) if self.formats else made

    def writable_metadata(self, table: TableSpec) -> Mapping[str, LogicalType]:
        """What the connector names."""
        return self.metadata

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink."""
        values = self.options(sink.table).check(sink.table)
        self.check(sink, values)
        return MessageSink(self, sink, values)


class MessageSink(TableSink):
    """An INSERT whose rows are sent."""

    def __init__(self, factory: MessageSinkFactory, sink: SinkSpec, values: OptionValues) -> None:
        self._factory = factory
        self._sink = sink
        self._values = values
        self._upserts = factory.upserts and bool(sink.table.primary_key)
        self._format: FileFormat | None = None
        if factory.formats:
            self._format = format_of(sink.table, values, factory.default_format)

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """Changes by key, all of them, or what the format has a form of."""
        if self._factory.changes:
            return wanted
        if self._upserts:
            return UPSERT
        return INSERT_ONLY if self._format is None else self._format.changelog_mode

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        if self._factory.alone:
            return 1
        return self._values.get(SINK_PARALLELISM)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with an outlet of its own."""
        encoder = None
        if self._format is not None:
            encoder = self._format.message_encoder(self._sink.table.columns, EncodeContext(context.configuration))
        outlet = self._factory.outlet(self._sink, self._values, context)
        by_outlet = self._upserts or self._factory.changes
        writer = MessageWriter(self._sink, encoder, by_outlet, outlet, self._factory.flushing(self._values), context)
        if self._factory.listens:
            writer.open()
        return writer


class MessageWriter(SinkWriter):
    """Sends when enough rows wait, when they waited long enough, and at each checkpoint.

    Args:
        kinds_by_outlet: the format knows nothing of changes: their kinds are the outlet's.
    """

    def __init__(
        self,
        sink: SinkSpec,
        encoder: MessageEncoder | None,
        kinds_by_outlet: bool,
        outlet: MessageOutlet,
        flushing: Flushing,
        context: WriterContext,
    ) -> None:
        self._columns = len(sink.table.columns)
        self._metadata = sink.metadata
        self._encoder = encoder
        self._kinds_by_outlet = kinds_by_outlet
        self._outlet = outlet
        self._flushing = flushing
        self._context = context
        self._waiting: list[Outgoing] = []
        self._rows = 0
        self._bytes = 0
        #: Counts the flushes: an alarm that was set before one is out of date.
        self._flushes = 0
        self._open = False
        self._closed = False

    def open(self) -> None:
        """Connect; done before the first rows are sent, unless it was done before.

        Raises:
            ConnectorError: it fails.
        """
        if not self._open:
            self._outlet.open()
            self._open = True

    def write(self, batch: ChangelogBatch) -> None:
        """Keep the rows, and send if there are enough."""
        if not batch.num_rows:
            return
        first = not self._waiting
        self._waiting.append(self._encoded(batch))
        self._rows += batch.num_rows
        limits = self._flushing
        if limits.bytes:
            self._bytes += sum(column.nbytes for column in batch.columns)
        if (limits.rows and self._rows >= limits.rows) or (limits.bytes and self._bytes >= limits.bytes):
            self._flush()
        elif first and self._flushing.interval_ms:
            number = self._flushes
            ALARM.after(self._flushing.interval_ms / 1000, lambda: self._context.submit(lambda: self._due(number)))

    def _encoded(self, batch: ChangelogBatch) -> Outgoing:
        columns = tuple(batch.columns[: self._columns])
        values = None
        if self._encoder is not None:
            values = self._encoder.encode(columns, batch.num_rows, None if self._kinds_by_outlet else batch.kinds)
        metadata = dict(zip(self._metadata, batch.columns[self._columns :], strict=True))
        return Outgoing(batch.num_rows, values, columns, batch.kinds, metadata)

    def _due(self, number: int) -> None:
        if number == self._flushes and not self._closed:
            self._flush()

    def flush(self, end_of_input: bool) -> None:
        """All rows have arrived, unless checkpoints are not to wait for them."""
        if end_of_input or self._flushing.at_checkpoints:
            self._flush()

    def _flush(self) -> None:
        self._flushes += 1
        waiting, self._waiting, self._rows, self._bytes = self._waiting, [], 0, 0
        if not waiting:
            return
        rows = Outgoing.joined(waiting)
        failures = 0
        while True:
            try:
                self.open()
                self._outlet.send(rows)
                break
            except ConnectorError as error:
                self._outlet.close()
                self._open = False
                failures += 1
                pause_s = self._flushing.backoff.pause_s(failures) if error.retryable else None
                if pause_s is None:
                    raise
                sleep(pause_s)
        if rows.values is not None:
            self._context.count(BYTES_SENT, rows.values.nbytes)

    def close(self) -> None:
        """Release the connection; rows that wait are not sent."""
        self._closed = True
        self._outlet.close()
