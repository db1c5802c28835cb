"""Scans and lookups of collections."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from flowsql_connectors.lookup.keyed_rows import KeyedRows
from flowsql_connectors.lookup.options import cache_of
from flowsql_connectors.mongodb.client import collection_of, connect, told
from flowsql_connectors.mongodb.conditions import ID, condition
from flowsql_connectors.mongodb.from_bson import column_of
from flowsql_connectors.mongodb.options import (
    COLLECTION,
    DATABASE,
    FETCH,
    FILTERS,
    LOOKUP_PAUSE_MS,
    LOOKUP_RETRIES,
    NO_TIMEOUT,
    checked,
)
from flowsql_connectors.mongodb.parts import filter_of, found_parts
from flowsql_connectors.mongodb.to_bson import bson_values, object_id
from flowsql_connectors.mongodb.types import check_types
from flowsql_connectors.options import OptionValues
from flowsql_connectors.services.parts import ScanPart, ScanPartCode, ScanPartEnumerator
from flowsql_connectors.spi.fetching import FetchingReader
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, LookupTableSource, PartialCache, TableLookup
from flowsql_connectors.spi.source import ReaderContext, SourceReader, SplitEnumerator
from flowsql_core.errors import ConnectorError
from flowsql_core.expr import Expr
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.logical import Column, Schema

#: Keys of one request.
_KEYS: Final = 1_000


class MongoSource(LookupTableSource):
    """The documents of a collection."""

    def __init__(self, scan: ScanSpec, configuration: Mapping[str, str]) -> None:
        self._scan = scan
        self._values = checked(scan.table)
        check_types(scan.table)

    def stays_here(self) -> str | None:
        """Spark's own reader is another connector's."""
        return "no reader of Spark knows tables of the connector 'mongodb'"

    def supports_projection(self) -> bool:
        """The server leaves fields out."""
        return True

    def supports_filters(self, filters: tuple[Expr, ...]) -> tuple[bool, ...]:
        """Comparisons of numbers and texts, IS NULL, and what AND and OR make of them; as the options allow."""
        allowed = self._values.get(FILTERS) == "always"
        return tuple(allowed and condition(each, self._scan.table.columns) is not None for each in filters)

    def supports_limit(self) -> bool:
        """The server stops."""
        return True

    def partial_cache(self) -> PartialCache | None:
        """``lookup.cache`` = PARTIAL."""
        cache = cache_of(self._values)
        return cache if isinstance(cache, PartialCache) else None

    @property
    def concurrent(self) -> bool:
        """The client has connections for several requests."""
        return True

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """Queries by key."""
        return MongoLookup(self._scan, self._values, context.keys)

    def create_enumerator(self) -> SplitEnumerator:
        """The parts that ``scan.partition.strategy`` finds."""
        return ScanPartEnumerator(lambda: found_parts(self._values))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with a client of its own."""
        reading = _Reading(self._scan, self._values)
        scan = self._scan
        return FetchingReader(
            ScanPartCode(), reading.part, reading.close, scan.output, None, scan.limit, context, "mongodb-reader"
        )


def _projection(columns: Sequence[Column]) -> dict[str, int]:
    names = {column.name: 1 for column in columns}
    return names if ID in names else {**names, ID: 0} if names else {ID: 1}


def _columns(documents: Sequence[dict[str, Any]], columns: Schema, values: OptionValues) -> list[Any]:
    place = f"a document of '{values.get(DATABASE)}.{values.get(COLLECTION)}'"
    return [column_of([document.get(column.name) for document in documents], column, place) for column in columns]


class _Reading:
    """The client of a reader, which begins in its thread."""

    def __init__(self, scan: ScanSpec, values: OptionValues) -> None:
        self._scan = scan
        self._values = values
        self._client: Any = None

    def part(self, part: ScanPart) -> Iterator[tuple[Sequence[Any], int]]:
        """Batches of a part."""
        scan, values = self._scan, self._values
        if self._client is None:
            self._client = connect(values)
        conditions = [condition(each, scan.table.columns) for each in scan.filters]
        wanted = [filter_of(part.where), *(each for each in conditions if each is not None)]
        wanted = [each for each in wanted if each]
        with told(values):
            cursor = collection_of(self._client, values).find(
                {} if not wanted else wanted[0] if len(wanted) == 1 else {"$and": wanted},
                _projection(scan.output),
                batch_size=values.get(FETCH),
                no_cursor_timeout=values.get(NO_TIMEOUT),
                limit=scan.limit or 0,
            )
            with cursor:
                while documents := list(islice(cursor, values.get(FETCH))):
                    yield _columns(documents, scan.output, values), len(documents)

    def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            self._client.close()


class MongoLookup(TableLookup):
    """Asks for the keys of each batch in one query.

    Args:
        scan: whose output is wanted. ``keys``: places in it that are given.
    """

    fewest_keys: int = _KEYS

    def __init__(self, scan: ScanSpec, values: OptionValues, keys: tuple[int, ...]) -> None:
        self._columns = scan.output
        self._values = values
        self._keys = keys
        self._closed = threading.Event()
        self._client = connect(values)
        self._collection = collection_of(self._client, values)

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """The rows of each key."""
        retries = self._values.get(LOOKUP_RETRIES)
        for attempt in range(retries + 1):
            try:
                with told(self._values):
                    return self._find(keys)
            except ConnectorError as error:
                pause_s = self._values.get(LOOKUP_PAUSE_MS) / 1000
                if not error.retryable or attempt == retries or self._closed.wait(pause_s):
                    raise
        raise AssertionError("the last attempt answers or raises")

    def _find(self, keys: Sequence[Any]) -> FoundRows:
        columns = [self._columns[key] for key in self._keys]
        asked = [bson_values(array, column.type) for array, column in zip(keys, columns, strict=True)]
        documents: list[dict[str, Any]] = []
        for start in range(0, len(keys[0]), _KEYS):
            wanted = _of_keys(columns, [values[start : start + _KEYS] for values in asked])
            documents += self._collection.find(wanted, _projection(self._columns), batch_size=self._values.get(FETCH))
        found = _columns(documents, self._columns, self._values)
        return KeyedRows(found, self._keys).find(keys)

    def close(self) -> None:
        """End the connections."""
        self._closed.set()
        self._client.close()


def _of_keys(columns: Sequence[Column], asked: Sequence[list[Any]]) -> dict[str, Any]:
    """The filter of some keys."""
    if len(columns) == 1:
        values = asked[0]
        if columns[0].name == ID:
            values = [*values, *(made for value in values if (made := object_id(value)) is not value)]
        return {columns[0].name: {"$in": values}}
    names = [column.name for column in columns]
    return {"$or": [dict(zip(names, row, strict=True)) for row in zip(*asked, strict=True)]}
