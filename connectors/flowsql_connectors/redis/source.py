"""Scans and lookups of tables of a Redis server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from flowsql_connectors.lookup.options import cache_of
from flowsql_connectors.messages.backoff import Backoff
from flowsql_connectors.messages.bad_messages import bad_message_policy
from flowsql_connectors.messages.reader import MessageReader
from flowsql_connectors.messages.rows import MessageDecoding
from flowsql_connectors.messages.web import shown
from flowsql_connectors.redis.client import connect, told
from flowsql_connectors.redis.content import content_of
from flowsql_connectors.redis.keys import key_template
from flowsql_connectors.redis.lookup import RedisLookup, read_values
from flowsql_connectors.redis.options import BOUNDED, KEY, STRUCTURE, URL, Structure, checked
from flowsql_connectors.redis.stream import METADATA, StreamFeed, StreamRows
from flowsql_connectors.services.parts import ScanPart, ScanPartCode, ScanPartEnumerator
from flowsql_connectors.spi.fetching import FetchingReader
from flowsql_connectors.spi.lookup import LookupContext, LookupTableSource, PartialCache, TableLookup
from flowsql_connectors.spi.source import ReaderContext, SourceReader, Split, SplitEnumerator
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType


class RedisSource(LookupTableSource):
    """Keys that a table's template matches, each once; or the entries of a stream."""

    def __init__(self, scan: ScanSpec, configuration: Mapping[str, str]) -> None:
        self._scan = scan
        self._configuration = configuration
        self._values = checked(scan.table)
        self._template = key_template(scan.table, self._values)
        self._content = content_of(scan.table, self._values, self._template)
        self._is_stream = self._values.get(STRUCTURE) is Structure.STREAM
        if self._is_stream and self._template.columns:
            raise BindError(
                "invalid-option-value",
                f"Table {scan.table.name} reads one stream, and its key has columns in it.",
                hint="a table a stream; INSERT may write to streams by column",
            )

        origin = f"{shown(self._values.get(URL))} {self._values.get(KEY) or ''}"
        self._bad_entries = bad_message_policy(scan, self._values, origin.strip(), METADATA, arrays=False)

    @property
    def bounded(self) -> bool:
        """Streams go on, unless ``scan.bounded.mode`` says otherwise."""
        return not self._is_stream or self._values.get(BOUNDED) == "latest"

    def supports_projection(self) -> bool:
        """Fields that nobody asks for are not fetched, or not decoded."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """Of the entries of streams."""
        return METADATA if self._is_stream else {}

    def stays_here(self) -> str | None:
        """Spark has no reader of its own."""
        return "no reader of Spark knows tables of Redis"

    def partial_cache(self) -> PartialCache | None:
        """``lookup.cache`` = PARTIAL."""
        cache = cache_of(self._values)
        return cache if isinstance(cache, PartialCache) else None

    @property
    def concurrent(self) -> bool:
        """The client takes a connection for each request."""
        return True

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """Round trips by key.

        Raises:
            BindError: streams have no keys; or a column of the key is not given.
        """
        if self._is_stream:
            raise BindError("lookup-key", f"Table {self._scan.table.name} is a stream, which is not looked up by key.")
        return RedisLookup(self._scan, self._content, self._values, context)

    def create_enumerator(self) -> SplitEnumerator:
        """All keys, or the stream."""
        return OneSplit() if self._is_stream else ScanPartEnumerator(lambda: [""])

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with a connection of its own."""
        if self._is_stream:
            return self._stream_reader(context)
        client = connect(self._values)
        read = _KeysReading(self, client, context)
        scan = self._scan
        return FetchingReader(
            ScanPartCode(), read.part, client.close, scan.output, None, scan.limit, context, "redis-reader"
        )

    def _stream_reader(self, context: ReaderContext) -> SourceReader:
        scan, values = self._scan, self._values
        key = b"".join(part.encode() for part in self._template.parts if isinstance(part, str))
        fields = [scan.table.columns[at].name for at in scan.projection]
        empty = ChangelogBatch.of(tuple(pa.array([], to_arrow(column.type)) for column in scan.output), num_rows=0)
        policy = self._bad_entries

        def make_rows(split: str) -> MessageDecoding:
            rows = StreamRows(scan)
            return rows if policy is None else policy.tolerant(rows, split, context)

        return MessageReader(
            lambda split: StreamFeed(key, fields, values),
            make_rows,
            Backoff.of(values),
            context.batch_rows,
            context.count,
            empty,
        )

    def supports_limit(self) -> bool:
        """Reading stops."""
        return not self._is_stream


class OneSplit(SplitEnumerator):
    """A stream is read by one subtask."""

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """To the first one."""
        return [[Split("stream", b"")] if subtask == 0 else [] for subtask in range(parallelism)]


class _KeysReading:
    """Reads all keys of a table, in their order, so that a scan that begins again finds its place."""

    def __init__(self, source: RedisSource, client: Any, context: ReaderContext) -> None:
        self._source = source
        self._client = client
        self._rows = context.batch_rows

    def part(self, part: ScanPart) -> Iterator[tuple[Sequence[Any], int]]:
        """Batches of all rows."""
        source, content = self._source, self._source._content
        places = source._scan.projection
        asked = [place for place in places if place not in content.template.columns]
        with told(source._values):
            kind = content.structure.value
            found = set(self._client.scan_iter(match=content.template.pattern.encode(), count=10_000, _type=kind))
            keys = pa.array(sorted(found), pa.binary())
        fits, of_keys = content.template.taken_apart(keys)
        keys = keys.filter(fits)
        for start in range(0, len(keys), self._rows):
            with told(source._values):
                positions, texts = read_values(self._client, content, keys.slice(start, self._rows), asked)
            of_texts, columns = content.rows(texts, asked, source._configuration, "A value")
            rows = pa.array((positions if of_texts is None else positions[of_texts]) + start)
            yield [columns[place] if place in columns else of_keys[place].take(rows) for place in places], len(rows)
