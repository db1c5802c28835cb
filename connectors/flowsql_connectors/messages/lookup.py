"""Lookups of messages: the other side is asked by key and answers with messages, which are decoded together."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.bad_row_options import ON_ERROR
from flowsql_connectors.formats.format import DecodeContext, FileFormat, Messages
from flowsql_connectors.lookup.options import PARTIAL_CACHE_OPTIONS, cache_of
from flowsql_connectors.messages.rows import Int64s
from flowsql_connectors.messages.source import MessageSource, MessageSourceFactory
from flowsql_connectors.options import ConnectorOption, OptionValues, parse_natural
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, LookupTableSource, PartialCache, TableLookup
from flowsql_connectors.spi.source import TableSource
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.arrow import to_arrow

LOOKUP_RETRIES = ConnectorOption(
    "lookup.max-retries", parse_natural, 3, "How often a lookup that failed is tried again."
)
LOOKUP_OPTIONS: Final = (*PARTIAL_CACHE_OPTIONS, LOOKUP_RETRIES)


class MessageLookup(TableLookup):
    """Asks for the messages of each key. A connector writes :meth:`fetch` and :meth:`place`."""

    def __init__(self, format_: FileFormat, scan: ScanSpec, context: LookupContext) -> None:
        self.scan = scan
        #: Columns of the scan's output that are asked by, and their names.
        self.key_names = tuple(scan.output[key].name for key in context.keys)
        self.key_places = context.keys
        self._types = [to_arrow(column.type) for column in scan.output]
        self._decoding = threading.Lock()
        self._decoder = format_.message_decoder(
            DecodeContext(scan.table.columns, scan.projection, 65_536, context.configuration)
        )

    def decode(self, messages: Any, place: Callable[[int], str]) -> tuple[list[Any], Int64s]:
        """Columns of the rows of messages, a binary array, and of each row the index of its message. Any thread."""
        with self._decoding:
            found = self._decoder.decode(Messages(messages, place))
        assert found.lines is not None
        return list(found.arrays) or [pa.nulls(found.num_rows, type_) for type_ in self._types], found.lines

    @abstractmethod
    def fetch(self, keys: Sequence[Any]) -> Sequence[Sequence[bytes | None]]:
        """The messages of each key, none where there is no row.

        Args:
            keys: an Arrow array a key column, of distinct keys without NULL.

        Raises:
            ConnectorError: the other side cannot be asked.
        """

    @abstractmethod
    def place(self, keys: Sequence[Any], number: int) -> str:
        """Where the messages of a key come from, in words."""

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """The rows of each key; the columns of the keys are what was asked for."""
        fetched = self.fetch(keys)
        counts = [len(messages) for messages in fetched]
        of_messages = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        values = pa.array([message for messages in fetched for message in messages], pa.binary())
        columns, lines = self.decode(values, lambda index: self.place(keys, int(of_messages[index])))
        positions = of_messages[lines]
        for place, key in zip(self.key_places, keys, strict=True):
            columns[place] = key.take(pa.array(positions)).cast(self._types[place])
        return FoundRows(positions, columns)


class LookupMessageFactory(MessageSourceFactory):
    """A factory of tables that can also be looked up; ``LOOKUP_OPTIONS`` are among its ``own_options``."""

    @abstractmethod
    def lookup(self, source: LookupMessageSource, values: OptionValues, context: LookupContext) -> MessageLookup:
        """A lookup of one subtask; its ``find`` may be called from several threads if :meth:`concurrent` says so."""

    def concurrent(self, values: OptionValues) -> bool:
        """Whether lookups may be asked side by side."""
        return False

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan or lookup."""
        values = self.options(scan.table).check(scan.table)
        self.check(scan.table, values, scan)
        return LookupMessageSource(self, scan, values, configuration)


class LookupMessageSource(MessageSource, LookupTableSource):
    """A table of messages that can be looked up."""

    factory: LookupMessageFactory

    @property
    def concurrent(self) -> bool:
        """What the connector says."""
        return self.factory.concurrent(self.values)

    def partial_cache(self) -> PartialCache | None:
        """``lookup.cache`` = PARTIAL."""
        cache = cache_of(self.values)
        return cache if isinstance(cache, PartialCache) else None

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """A lookup of one subtask.

        Raises:
            BindError: rows of changes cannot be looked up; nor is metadata told of what is looked up; nor are answers
                left out.
        """
        if self.values.get(ON_ERROR) != "fail":
            raise BindError(
                "bad-row-options",
                f"'{ON_ERROR.key}' of table '{self.scan.table.name}' is of scans: a lookup whose answer cannot be read "
                "ends the job.",
                hint=f"leave '{ON_ERROR.key}' out, or OPTIONS('{ON_ERROR.key}' = '...') in the queries that scan it",
            )
        if not self.format.changelog_mode.insert_only:
            raise BindError("unfit-format", f"Format '{self.format.identifier}' is of changes: it cannot be looked up.")
        if self.scan.metadata:
            raise BindError(
                "no-such-metadata",
                f"Metadata column '{self.scan.metadata[0]}' of table '{self.scan.table.name}' is not there in lookups.",
            )
        return self.factory.lookup(self, self.values, context)


def retryable_pause_s(error: ConnectorError, attempt: int, retries: int) -> float | None:
    """Seconds to wait before a lookup is tried again; None: it is given up. ``attempt`` counts from 0."""
    return float(attempt + 1) if error.retryable and attempt < retries else None
