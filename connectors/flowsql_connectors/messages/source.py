"""Scans of messages: what the factory of a connector says of them, and the table source that it makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

import pyarrow as pa

from flowsql_connectors.bad_row_options import BAD_ROW_OPTIONS
from flowsql_connectors.formats.format import FileFormat
from flowsql_connectors.messages.backoff import RECONNECT_OPTIONS, Backoff
from flowsql_connectors.messages.bad_messages import bad_message_policy, with_letter_table
from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
from flowsql_connectors.messages.format_option import format_of, format_options
from flowsql_connectors.messages.reader import MessageReader
from flowsql_connectors.messages.rows import OF_VALUE, MessageDecoding, MessageRows
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.counters import lose_silently
from flowsql_connectors.spi.source import (
    ReaderContext,
    SourceFactory,
    SourceReader,
    Split,
    SplitEnumerator,
    TableSource,
)
from flowsql_connectors.watermark_options import WATERMARK_OPTIONS
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.row import ChangelogMode
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType

#: What every source has.
SOURCE_OPTIONS: Final = OptionSet(optional=(*RECONNECT_OPTIONS, *WATERMARK_OPTIONS, *BAD_ROW_OPTIONS))
_INTERVAL: Final = "execution.checkpointing.interval"


def is_checkpointed(configuration: Mapping[str, str]) -> bool:
    """Whether a job makes checkpoints by itself."""
    return parse_duration_ms(configuration.get(_INTERVAL, "0")) > 0


class MessageSourceFactory(SourceFactory):
    """Makes sources of messages. A connector says its options and makes feeds."""

    #: Options beside ``connector``, ``format``, those of the format, ``reconnect.*``, ``scan.watermark.*`` and
    #: ``on-error*``. Of tables that are also written, merged with ``SINK_OPTIONS``.
    own_options: ClassVar[OptionSet] = OptionSet()
    #: Metadata keys of messages with their types.
    metadata: ClassVar[Mapping[str, LogicalType]] = {}
    #: The format where a table names none.
    default_format: ClassVar[str | None] = None
    #: Whether feeds tell when they have caught up, for ``flowsql.trigger`` = ``available-now``.
    tells_backlog: ClassVar[bool] = False

    @abstractmethod
    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        """A feed of one split. Nothing is connected yet.

        Raises:
            ConnectorError: the client library is not installed.
        """

    def guarantee(self, values: OptionValues, checkpointed: bool) -> str | None:
        """What becomes of messages when the job fails and is restored, in a few words; None: each counts once."""
        return "at most once: what came since the last checkpoint is not read again"

    def origin(self, values: OptionValues) -> str:
        """Where messages come from, in a few words without secrets: server, and what is read there.

        Dead letters tell it. Of another origin a message of the same position and bytes is another one.
        """
        return self.identifier

    def splits(self, values: OptionValues) -> Sequence[str]:
        """Names of parts that are read side by side, each by a feed of its own."""
        return ("all",)

    def bounded(self, values: OptionValues) -> bool:
        """Whether the messages end."""
        return False

    def check(self, table: TableSpec, values: OptionValues, scan: ScanSpec) -> None:
        """Refuse options that do not fit together, when a statement is planned.

        Raises:
            BindError: with what would be right.
        """

    def options(self, table: TableSpec) -> OptionSet:
        """All options of a table."""
        return self.own_options.merged(SOURCE_OPTIONS).merged(format_options(table, self.default_format))

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan."""
        values = self.options(scan.table).check(scan.table)
        self.check(scan.table, values, scan)
        return MessageSource(self, scan, values, configuration)

    def with_referenced(self, table: TableSpec, referenced: TableSpec) -> TableSpec:
        """The table with the folder of its dead-letter table as an option instead of that table's name."""
        return with_letter_table(table, referenced)


class MessageSource(TableSource):
    """A scan of messages."""

    def __init__(
        self, factory: MessageSourceFactory, scan: ScanSpec, values: OptionValues, configuration: Mapping[str, str]
    ) -> None:
        self.factory = factory
        self.scan = scan
        self.values = values
        self._checkpointed = is_checkpointed(configuration)
        self.format: FileFormat = format_of(scan.table, values, factory.default_format)
        self.format.check(scan.table.columns, configuration)
        arrays = self.format.identifier == "json"
        self._bad_messages = bad_message_policy(scan, values, factory.origin(values), factory.metadata, arrays)
        known = self.metadata_columns()
        for key in scan.metadata:
            if key not in known:
                raise BindError(
                    "no-such-metadata",
                    f"Invalid metadata key '{key}' of table '{scan.table.name}'.",
                    hint=f"the {factory.identifier} connector has {', '.join(known) or 'none'}",
                )

    @property
    def bounded(self) -> bool:
        """What the connector says."""
        return self.factory.bounded(self.values)

    @property
    def tells_backlog(self) -> bool:
        """What the connector says."""
        return self.factory.tells_backlog

    @property
    def changelog_mode(self) -> ChangelogMode:
        """What messages of the format carry."""
        return self.format.changelog_mode

    def supports_projection(self) -> bool:
        """Only wanted columns are converted."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """What the connector tells of messages; what the format tells."""
        told = self.format.metadata_columns()
        return {**{OF_VALUE + key: type_ for key, type_ in told.items()}, **self.factory.metadata}

    def guarantee(self) -> str | None:
        """What the connector says."""
        return self.factory.guarantee(self.values, self._checkpointed)

    def create_enumerator(self) -> SplitEnumerator:
        """The splits that the connector names."""
        return _Splits(self.factory.splits(self.values))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with a thread a split."""
        scan = self.scan
        empty = ChangelogBatch.of(tuple(pa.array([], to_arrow(column.type)) for column in scan.output), num_rows=0)

        policy = self._bad_messages
        #: Letters have what the connector tells, whatever the query reads of it.
        told_all = policy is not None and policy.folder is not None
        silent = replace(context, lose=lose_silently)
        idle: list[MessageRows] = []

        def fault(messages: Sequence[bytes]) -> str | None:
            # A decoder is of one thread at a time.
            try:
                rows = idle.pop()
            except IndexError:
                rows = MessageRows(self.format, scan, self.factory.metadata, silent)
            try:
                rows.decode(Arrived(messages), lambda index: f"message {index + 1} of {len(messages)}")
            except ExecutionError as error:
                return error.message
            finally:
                idle.append(rows)
            return None

        def make_feed(split: str) -> MessageFeed:
            made = FeedContext(
                split,
                context.subtask,
                tuple(key for key in self.factory.metadata if told_all or key in scan.metadata),
                is_checkpointed(context.configuration),
                context.configuration,
                context.clock,
                context.lose,
                fault if policy is None else lambda messages: None,
            )
            return self.factory.feed(scan.table, self.values, made)

        def make_rows(split: str) -> MessageDecoding:
            rows = MessageRows(self.format, scan, self.factory.metadata, context)
            return rows if policy is None else policy.tolerant(rows, split, context)

        return MessageReader(make_feed, make_rows, Backoff.of(self.values), context.batch_rows, context.count, empty)


class _Splits(SplitEnumerator):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All of them, dealt out in turn."""
        return [[Split(name, b"") for name in self._names[subtask::parallelism]] for subtask in range(parallelism)]
