"""Reading a stream: its entries one behind another, from the position that a checkpoint keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_from_bytes

import numpy as np
import orjson
import pyarrow as pa

from flowsql_connectors.formats.format import Columns
from flowsql_connectors.messages.feed import Arrived, MessageFeed
from flowsql_connectors.messages.rows import Int64s, MessageRows, of_messages
from flowsql_connectors.options import OptionValues
from flowsql_connectors.redis.client import connect, told
from flowsql_connectors.redis.options import BOUNDED, STARTUP, STARTUP_ID
from flowsql_connectors.redis.texts import values_of
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import STRING, LogicalType, TimestampLtzType

#: Entries of one answer.
_ENTRIES: Final = 5_000
_FIRST: Final = "0-0"

METADATA: Final[dict[str, LogicalType]] = {"id": STRING, "timestamp": TimestampLtzType(precision=3)}


class StreamFeed(MessageFeed):
    """Entries behind an id. A position is the id of an entry.

    Args:
        key: of the stream. ``fields``: those that are wanted.
    """

    replays = True

    def __init__(self, key: bytes, fields: list[str], values: OptionValues) -> None:
        self._key = key
        self._fields = [(field, field.encode()) for field in fields]
        self._values = values
        self._client: Any = None
        #: Behind which entry to begin where there is no position; resolved once.
        self._start: str | None = None
        #: The last entry that is wanted; None: there is no end.
        self._end: tuple[int, int] | None = None
        self._behind = _FIRST
        self._ids: list[str] = []

    def open(self, position: Any) -> None:
        """Begin behind a position, or where the options say."""
        self._client = connect(self._values)
        with told(self._values):
            if self._values.get(BOUNDED) == "latest" and self._end is None:
                self._end = _number(self._last())
            if position is None and self._start is None:
                match self._values.get(STARTUP):
                    case "latest":
                        self._start = self._last()
                    case "specific-id":
                        self._start = self._values.get(STARTUP_ID)
                    case _:
                        self._start = _FIRST
        self._behind = position or self._start or _FIRST

    def _last(self) -> str:
        newest = self._client.xrevrange(self._key, count=1)
        return newest[0][0].decode() if newest else _FIRST

    def receive(self, wait_s: float) -> Arrived | None:
        """The next entries."""
        if self._end is not None and _number(self._behind) >= self._end:
            return Arrived((), positions=(), ends=True)
        with told(self._values):
            # Without an end of its own, 0 would wait for ever.
            milliseconds = max(1, int(wait_s * 1000)) if wait_s else None
            answer = self._client.xread({self._key: self._behind}, count=_ENTRIES, block=milliseconds)
        if not answer:
            return None
        parts = answer.values() if isinstance(answer, dict) else [entries for _, entries in answer]
        entries = [entry for part in parts for entry in _flat(part)]
        # An entry that was deleted while it was read has no fields.
        entries = [(name, fields) for name, fields in entries if fields]
        if self._end is not None:
            entries = [entry for entry in entries if _number(entry[0].decode()) <= self._end] or []
            if not entries:
                return Arrived((), positions=(), ends=True)
        if not entries:
            return None
        self._ids = [name.decode() for name, _ in entries]
        self._behind = self._ids[-1]
        metadata: dict[str, list[Any]] = {
            _field(name): [fields.get(key) for _, fields in entries] for name, key in self._fields
        }
        metadata["id"] = self._ids
        metadata["timestamp"] = [_number(name)[0] for name in self._ids]
        return Arrived([b"".join(fields.values()) for _, fields in entries], metadata, self._ids)

    def place(self, number: int) -> str:
        """The stream, and the entries of the last answer."""
        within = f", entries {self._ids[0]} to {self._ids[-1]}" if self._ids else ""
        return f"stream '{self._key.decode(errors='replace')}'{within}"

    def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


class StreamRows(MessageRows):
    """Entries to rows: a field a column."""

    def __init__(self, scan: ScanSpec) -> None:
        self._scan = scan
        self._wanted = tuple(scan.table.columns[at] for at in scan.projection)

    def raw(self, arrived: Arrived, index: int) -> bytes | None:
        """The fields that are read, as a JSON object; bytes that are no UTF-8 as in a URL."""
        fields = {column.name: arrived.metadata[_field(column.name)][index] for column in self._wanted}
        texts = {name: _shown(value) for name, value in fields.items() if value is not None}
        return orjson.dumps(texts)

    def decode(self, arrived: Arrived, place: Callable[[int], str]) -> tuple[Columns, Int64s]:
        """A row an entry.

        Raises:
            ExecutionError: a field has no value of its column's type; it names the stream and the entries.
        """
        count = len(arrived.values)
        lines = np.arange(count)
        arrays = []
        for column in self._wanted:
            texts = pa.array(arrived.metadata.get(_field(column.name), [None] * count), pa.binary())
            arrays.append(values_of(texts, column, f"A value of {place(0)}"))
        for key, column in zip(self._scan.metadata, self._scan.output[len(arrays) :], strict=True):
            arrays.append(of_messages(arrived.metadata.get(key), to_arrow(column.type), lines))
        return Columns(tuple(arrays), count), lines


def _shown(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(value)


def _field(name: str) -> str:
    return f"field {name}"


def _flat(part: Any) -> Any:
    """Entries, which RESP3 puts into one more list."""
    return part[0] if part and isinstance(part[0], list) else part


def _number(name: str | None) -> tuple[int, int]:
    """An id, to be compared."""
    moment, _, number = (name or _FIRST).partition("-")
    return int(moment), int(number or 0)
