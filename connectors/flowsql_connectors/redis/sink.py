"""INSERT INTO tables of a Redis server: rows wait a little, and go in one round trip each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.messages.sink import MessageSinkFactory
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.redis.client import connect, told
from flowsql_connectors.redis.content import Content, content_of
from flowsql_connectors.redis.keys import key_template
from flowsql_connectors.redis.options import MAX_LENGTH, TTL_MS, Structure, checked, options_of
from flowsql_connectors.services.changes import LastRows, last_of_rows
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import SinkSpec, TableSpec


class RedisSinkFactory(MessageSinkFactory):
    """Makes sinks that write hashes and strings by the primary key, and append to lists and streams."""

    identifier = "redis"
    formats: ClassVar[bool] = False
    upserts: ClassVar[bool] = True

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans, lookups, sinks and the format."""
        return options_of(table)

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """The table has keys, and values that hold its columns."""
        checked(sink.table)
        content = content_of(sink.table, values, key_template(sink.table, values))
        if content.structure in (Structure.LIST, Structure.STREAM) and sink.table.primary_key:
            kind = content.structure.value
            raise BindError(
                "invalid-option-value",
                f"Table {sink.table.name} has a primary key, and a {kind} takes rows at its end alone.",
                hint="leave out PRIMARY KEY and say 'key' = '...', or take a hash",
            )

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """A connection of its own."""
        return RedisOutlet(sink.table, values, context.configuration)


class RedisOutlet(MessageOutlet):
    """Writes the rows of one subtask."""

    def __init__(self, table: TableSpec, values: OptionValues, configuration: Mapping[str, str]) -> None:
        names = [column.name for column in table.columns]
        self._keys = tuple(names.index(name) for name in table.primary_key)
        self._content: Content = content_of(table, values, key_template(table, values))
        self._values = values
        self._configuration = configuration
        self._ttl_ms = values.get(TTL_MS)
        self._max_length = values.get(MAX_LENGTH)
        self._client: Any = None

    def open(self) -> None:
        """A client, which connects when it is first asked."""
        self._client = connect(self._values)

    def send(self, rows: Outgoing) -> None:
        """One pipeline of commands."""
        last = last_of_rows(rows.columns, rows.kinds, self._keys)
        names = self._content.template.keys(dict(enumerate(last.columns)), last.rows).to_pylist()
        texts = self._content.texts(last.columns, last.rows, self._configuration)
        with told(self._values):
            pipeline = self._client.pipeline(transaction=False)
            self._add(pipeline, names, [text.to_pylist() for text in texts], last)
            pipeline.execute()

    def _add(self, pipeline: Any, names: list[bytes], texts: list[list[bytes | None]], rows: LastRows) -> None:
        fields = self._content.fields
        gone = [False] * rows.rows if rows.gone is None else rows.gone.tolist()
        for at, name in enumerate(names):
            if gone[at]:
                pipeline.delete(name)
                continue
            values = [column[at] for column in texts]
            match self._content.structure:
                case Structure.HASH:
                    _put_hash(pipeline, name, dict(zip(fields, values, strict=True)))
                case Structure.STRING:
                    if values[0] is None:
                        pipeline.delete(name)
                    else:
                        pipeline.set(name, values[0], px=self._ttl_ms)
                case Structure.LIST:
                    self._push(pipeline, name, values[0])
                case Structure.STREAM:
                    self._append(pipeline, name, dict(zip(fields, values, strict=True)))
            if self._ttl_ms is not None and self._content.structure is not Structure.STRING:
                pipeline.pexpire(name, self._ttl_ms)

    def _push(self, pipeline: Any, name: bytes, value: bytes | None) -> None:
        if value is None:
            raise ConnectorError("redis-null", "A row whose value is NULL is no element of a list.")
        pipeline.rpush(name, value)
        if self._max_length is not None:
            pipeline.ltrim(name, -self._max_length, -1)

    def _append(self, pipeline: Any, name: bytes, fields: dict[bytes, bytes | None]) -> None:
        there = {field: value for field, value in fields.items() if value is not None}
        if not there:
            raise ConnectorError("redis-null", "A row whose columns are all NULL is no entry of a stream.")
        pipeline.xadd(name, there, maxlen=self._max_length, approximate=False)

    def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _put_hash(pipeline: Any, name: bytes, fields: dict[bytes, bytes | None]) -> None:
    there = {field: value for field, value in fields.items() if value is not None}
    if there:
        pipeline.hset(name, mapping=there)
    if len(there) < len(fields):
        pipeline.hdel(name, *(field for field in fields if field not in there))
