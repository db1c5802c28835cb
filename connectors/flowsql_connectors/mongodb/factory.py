"""Factories of ``mongodb`` tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from flowsql_connectors.messages.backoff import Backoff
from flowsql_connectors.messages.client import imported
from flowsql_connectors.messages.outlet import MessageOutlet
from flowsql_connectors.messages.sink import Flushing, MessageSinkFactory
from flowsql_connectors.mongodb.options import (
    FLUSH_MS,
    FLUSH_ROWS,
    GUARANTEE,
    SINK_PAUSE_MS,
    SINK_RETRIES,
    checked,
    options_of,
)
from flowsql_connectors.mongodb.types import check_types
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.sink import WriterContext
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.types import logical as t


class MongoSourceFactory(SourceFactory):
    """Makes scans and lookups of collections."""

    identifier = "mongodb"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans, lookups and sinks."""
        return options_of(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan.

        Raises:
            BindError: options contradict each other, or a column has no BSON type.
            ConnectorError: the client library is not installed.
        """
        imported("pymongo", self.identifier, "mongodb")
        from flowsql_connectors.mongodb.source import MongoSource

        return MongoSource(scan, configuration)


class MongoSinkFactory(MessageSinkFactory):
    """Makes sinks that add documents, or with a primary key update and delete them by it."""

    identifier = "mongodb"
    formats: ClassVar[bool] = False
    upserts: ClassVar[bool] = True

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans, lookups and sinks."""
        return options_of(table)

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Each row has one ``_id``, and values that documents hold."""
        table = sink.table
        checked(table)
        check_types(table)
        imported("pymongo", self.identifier, "mongodb")
        names = [column.name for column in table.columns]
        if "_id" in names and table.primary_key != ("_id",):
            raise BindError(
                "ambiguous-key",
                "Ambiguous keys being used due to the presence of an _id field. "
                "Either use the _id column as the key, or rename the _id column.",
                hint="PRIMARY KEY (_id) NOT ENFORCED",
            )
        for name in table.primary_key:
            type_ = table.columns[names.index(name)].type
            if isinstance(type_, t.ArrayType | t.MapType | t.RowType | t.BinaryStringType):
                raise BindError(
                    "invalid-primary-key",
                    f"The table has a primary key on columns of illegal types: {type_.as_nullable()}.",
                )
        if sink.overwrite and not table.primary_key:
            raise BindError(
                "overwrite-without-key", "INSERT OVERWRITE writes by key, and the table has no primary key."
            )

    def flushing(self, values: OptionValues) -> Flushing:
        """By ``sink.buffer-flush.*``."""
        pause_ms = values.get(SINK_PAUSE_MS)
        backoff = Backoff(pause_ms, pause_ms, values.get(SINK_RETRIES))
        waits = values.get(GUARANTEE) != "none"
        return Flushing(values.get(FLUSH_ROWS), values.get(FLUSH_MS), backoff, at_checkpoints=waits)

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """A client of its own."""
        from flowsql_connectors.mongodb.sink import MongoOutlet

        return MongoOutlet(sink.table, values)
