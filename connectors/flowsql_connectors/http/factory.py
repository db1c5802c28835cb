"""Factories of ``http`` tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from flowsql_connectors.http import options as of
from flowsql_connectors.http.lookup import HttpLookup
from flowsql_connectors.http.sink import PostOutlet
from flowsql_connectors.http.source import METADATA, PollFeed
from flowsql_connectors.messages.feed import FeedContext, MessageFeed
from flowsql_connectors.messages.lookup import LookupMessageFactory, LookupMessageSource, MessageLookup
from flowsql_connectors.messages.outlet import MessageOutlet
from flowsql_connectors.messages.sink import MessageSinkFactory
from flowsql_connectors.messages.web import shown, with_headers
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.lookup import LookupContext
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.types.logical import LogicalType


class HttpSourceFactory(LookupMessageFactory):
    """Makes scans and lookups."""

    identifier = "http"
    own_options = of.HTTP_OPTIONS
    metadata: ClassVar[Mapping[str, LogicalType]] = METADATA
    tells_backlog: ClassVar[bool] = True

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's, the format's, and the headers that the table names."""
        return with_headers(super().options(table), table)

    def check(self, table: TableSpec, values: OptionValues, scan: ScanSpec) -> None:
        """Refuse options that do not fit together."""
        of.check(table, values)
        of.check_json(table, values)

    def bounded(self, values: OptionValues) -> bool:
        """Without ``scan.interval`` there is one poll."""
        return not values.has(of.INTERVAL_MS)

    def origin(self, values: OptionValues) -> str:
        """The address."""
        return shown(values.get(of.URL))

    def guarantee(self, values: OptionValues, checkpointed: bool) -> str | None:
        """With cursors the server is asked again for the page where the job stood."""
        if values.get(of.PAGINATION) == "cursor":
            return None
        return "at least once: a poll that was not through is made again"

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        """Polls."""
        return PollFeed(table, values, context)

    def lookup(self, source: LookupMessageSource, values: OptionValues, context: LookupContext) -> MessageLookup:
        """Requests by key."""
        return HttpLookup(source, values, context)

    def concurrent(self, values: OptionValues) -> bool:
        """Requests are made side by side."""
        return True


class HttpSinkFactory(MessageSinkFactory):
    """Makes sinks."""

    identifier = "http"
    own_options = of.HTTP_OPTIONS

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's, the format's, and the headers that the table names."""
        return with_headers(super().options(table), table)

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Refuse options that do not fit together.

        Raises:
            BindError: as well, where messages of the format cannot stand together in one request.
        """
        of.check(sink.table, values)
        of.plain_url(sink.table, values)
        name = sink.table.option("format")
        if values.get(of.REQUEST_MODE) == "batch" and name not in (*of.JSON_FORMATS, "csv", "raw"):
            raise BindError(
                "invalid-option-value",
                f"Messages of format '{name}' cannot stand together in one request: add "
                f"'{of.REQUEST_MODE.key}' = 'single'.",
            )

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """Requests."""
        return PostOutlet(sink.table, values)
