"""Records to rows: keys and values are decoded apart, many records at once, and meet by the records they come from."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import Columns, DecodeContext, MessageDecoder, Messages
from flowsql_connectors.kafka.native import EPOCHS, HEADERS, KEYS, TIMESTAMPS, Records
from flowsql_connectors.kafka.record_format import RecordFormat
from flowsql_connectors.spi.source import ReaderContext
from flowsql_core.arrow import compute as pc
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import DELETE, UPDATE_AFTER
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BIGINT, BYTES, INT, STRING, LogicalType, MapType, TimestampLtzType

Int64s = npt.NDArray[np.int64]

METADATA: Final[dict[str, LogicalType]] = {
    "topic": STRING.as_nullable(False),
    "partition": INT.as_nullable(False),
    "headers": MapType(key=STRING, value=BYTES, nullable=False),
    "leader-epoch": INT,
    "offset": BIGINT.as_nullable(False),
    "timestamp": TimestampLtzType(precision=3, nullable=False),
    "timestamp-type": STRING.as_nullable(False),
}
#: Before the metadata keys of the value's format.
OF_VALUE: Final = "value."
#: What is asked of records for a column of metadata.
_ASKED: Final = {
    "timestamp": TIMESTAMPS,
    "timestamp-type": TIMESTAMPS,
    "leader-epoch": EPOCHS,
    "headers": HEADERS,
}
#: By the client library's number.
_TIMESTAMP_TYPES: Final = ("NoTimestampType", "CreateTime", "LogAppendTime")


class RecordRows:
    """Decodes records of one scan; one per reader.

    Args:
        records: formats and columns of keys and values.
        upserts: values are the newest rows of their keys; a record without one deletes its key.
    """

    def __init__(self, records: RecordFormat, scan: ScanSpec, upserts: bool, context: ReaderContext) -> None:
        self._scan = scan
        self._upserts = upserts
        self._types = [to_arrow(column.type) for column in scan.output]
        of_value = {place: index for index, place in enumerate(records.value)}
        of_key = {place: index for index, place in enumerate(records.key)}
        #: Of each column that is read: its place among what is decoded of values, and of keys.
        self._in_value: list[int | None] = []
        self._in_key: list[int | None] = []
        value_read: list[int] = []
        key_read: list[int] = []
        for place in scan.projection:
            value, key = of_value.get(place), of_key.get(place)
            self._in_value.append(None if value is None else len(value_read))
            if value is not None:
                value_read.append(value)
            if key is not None and (value is None or upserts):
                self._in_key.append(len(key_read))
                key_read.append(key)
            else:
                self._in_key.append(None)
        told = tuple(key.removeprefix(OF_VALUE) for key in scan.metadata if key not in METADATA)
        self._value_read = len(value_read)

        def context_of(columns: Any, projection: list[int], metadata: tuple[str, ...]) -> DecodeContext:
            return DecodeContext(
                columns,
                tuple(projection),
                context.batch_rows,
                context.configuration,
                metadata=metadata,
                lose=context.lose,
            )

        self._values = records.value_format.message_decoder(context_of(records.value_columns, value_read, told))
        self._keys: MessageDecoder | None = None
        if records.key_format is not None:
            self._keys = records.key_format.message_decoder(context_of(records.key_columns, key_read, ()))

    @property
    def wanted(self) -> Set[str]:
        """What is asked of records besides values and offsets."""
        keys = {KEYS} if self._keys is not None else set()
        return {_ASKED[key] for key in self._scan.metadata if key in _ASKED} | keys

    def decode(self, records: Records) -> Columns:
        """The rows of records of one partition; ``lines`` are indexes of records."""

        def place(index: int) -> str:
            return f"topic '{records.topic}', partition {records.partition}, offset {records.offsets[index]}"

        values = records.values
        found = self._values.decode(Messages(values, place))
        of_rows = _lines(found)
        kinds = found.kinds
        if self._keys is None:
            arrays = [self._column(found, at, self._types[i]) for i, at in enumerate(self._in_value)]
            arrays += self._metadata(records, of_rows, found, None)
            return Columns(tuple(arrays), found.num_rows, kinds, of_rows)
        keys = self._keys.decode(Messages(records.keys, place))
        value_rows, key_rows, of_rows = _met(of_rows, _lines(keys), len(values))
        deleted = None
        if self._upserts:
            if values.null_count:
                empty = np.asarray(values.is_null())
                # A format may have a row for a record without a value (raw: NULL); here the record deletes.
                kept = ~empty[of_rows]
                value_rows, key_rows, of_rows = _with_tombstones(
                    value_rows[kept], key_rows[kept], of_rows[kept], _lines(keys), empty
                )
                deleted = value_rows < 0
            kinds = np.full(len(of_rows), UPDATE_AFTER, np.uint8)
            if deleted is not None:
                kinds[deleted] = DELETE
        elif kinds is not None:
            kinds = kinds[value_rows]
        arrays = [self._joined(i, found, keys, value_rows, key_rows, deleted) for i in range(len(self._in_value))]
        arrays += self._metadata(records, of_rows, found, value_rows)
        return Columns(tuple(arrays), len(of_rows), kinds, of_rows)

    def close(self) -> None:
        """Nothing is open."""

    def _joined(
        self,
        index: int,
        values: Columns,
        keys: Columns,
        value_rows: Int64s,
        key_rows: Int64s,
        deleted: npt.NDArray[np.bool_] | None,
    ) -> Any:
        type_ = self._types[index]
        in_value, in_key = self._in_value[index], self._in_key[index]
        if in_value is None:
            return _taken(self._column(keys, in_key, type_), key_rows)
        from_value = _taken(self._column(values, in_value, type_), value_rows)
        if deleted is None or in_key is None:
            return from_value
        return pc.if_else(pa.array(deleted), _taken(self._column(keys, in_key, type_), key_rows), from_value)

    def _column(self, columns: Columns, at: int | None, type_: Any) -> Any:
        """An array of what was decoded; of no rows there is none."""
        return columns.arrays[at] if at is not None and columns.arrays else pa.nulls(columns.num_rows, type_)

    def _metadata(
        self,
        records: Records,
        of_rows: Int64s,
        values: Columns,
        value_rows: Int64s | None,
    ) -> list[Any]:
        made: list[Any] = []
        told = self._value_read
        for key, type_ in zip(self._scan.metadata, self._types[len(self._scan.projection) :], strict=True):
            if key not in METADATA:
                array = self._column(values, told, type_)
                made.append(array if value_rows is None else _taken(array, value_rows))
                told += 1
            elif key == "topic":
                made.append(pa.repeat(pa.scalar(records.topic, type_), len(of_rows)))
            elif key == "partition":
                made.append(pa.repeat(pa.scalar(records.partition, type_), len(of_rows)))
            elif key == "offset":
                made.append(pa.array(records.offsets[of_rows], type_))
            else:
                made.append(_taken(_told(key, records, type_), of_rows))
        return made


def _told(key: str, records: Records, type_: Any) -> Any:
    """Metadata that the client library tells of each record."""
    match key:
        case "timestamp":
            return pa.array(records.timestamps, pa.int64()).cast(type_)
        case "timestamp-type":
            return pa.array(_TIMESTAMP_TYPES, type_).take(pa.array(records.timestamp_types))
        case "leader-epoch":
            assert records.epochs is not None
            return pa.array(records.epochs, type_, mask=records.epochs < 0)
    # Of headers with the same name the last one counts.
    return pa.array([list(dict(headers).items()) for headers in records.headers or ()], type_)


def _lines(columns: Columns) -> Int64s:
    assert columns.lines is not None
    return columns.lines


def _met(of_values: Int64s, of_keys: Int64s, messages: int) -> tuple[Int64s, Int64s, Int64s]:
    """Each row of a value with each row of its record's key: rows of values, rows of keys, records."""
    if len(of_keys) == messages and np.array_equal(of_keys, np.arange(messages)):
        return np.arange(len(of_values)), of_values, of_values
    counts = np.bincount(of_keys, minlength=messages)
    starts = np.cumsum(counts) - counts
    times = counts[of_values]
    value_rows = np.repeat(np.arange(len(of_values)), times)
    within = np.arange(len(value_rows)) - np.repeat(np.cumsum(times) - times, times)
    of_rows = of_values[value_rows]
    return value_rows, starts[of_rows] + within, of_rows


def _with_tombstones(
    value_rows: Int64s, key_rows: Int64s, of_rows: Int64s, of_keys: Int64s, empty: npt.NDArray[np.bool_]
) -> tuple[Int64s, Int64s, Int64s]:
    """Also the rows of keys whose records have no value, at their places; their rows of values are -1."""
    deleting = np.flatnonzero(empty[of_keys])
    of_all = np.concatenate([of_rows, of_keys[deleting]])
    order = np.argsort(of_all, kind="stable")
    values = np.concatenate([value_rows, np.full(len(deleting), -1)])[order]
    return values, np.concatenate([key_rows, deleting])[order], of_all[order]


def _taken(array: Any, rows: Int64s) -> Any:
    """The array at some rows, NULL for -1."""
    if len(rows) == len(array) and np.array_equal(rows, np.arange(len(rows))):
        return array
    missing = rows < 0
    return array.take(pa.array(rows, mask=missing) if missing.any() else pa.array(rows))
