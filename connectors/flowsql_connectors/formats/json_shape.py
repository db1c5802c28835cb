"""Lines of JSON in the shape of a table's columns: what Arrow's reader takes although it knows no maps.

The kernel keeps only the fields that are wanted and writes each map as an array of entries; that every object has all
its fields is looked at on the way.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.nested.lists import make_map, packed
from flowsql_compute.eval.nested.map_order import as_hashed
from flowsql_compute.kernels.json.bytes import DEEPEST
from flowsql_compute.kernels.json.lines import LEAF, LIST, MAP, NUMBER, ROW, TEXT, shape_lines
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    INT,
    ArrayType,
    CharacterType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    Schema,
)

#: Names of an entry's fields, as the kernel writes them.
ENTRY_KEY: Final = "k"
ENTRY_VALUE: Final = "v"


class JsonShape:
    """The wanted columns as nodes for the kernel; keeps its working memory from call to call.

    ``complete``: objects that lack a field are not plain. ``exact``: numbers are no texts, and texts no numbers.
    """

    def __init__(self, columns: Schema, complete: bool, exact: bool = False) -> None:
        self._complete = complete
        self._exact = exact
        self._kinds = [ROW]
        self._firsts = [0]
        self._counts = [len(columns)]
        self._names = [column.name.encode() for column in columns]
        self._field_nodes = [0] * len(columns)
        self._put_fields(0, [column.type for column in columns])
        self._nodes = [np.array(numbers, np.int64) for numbers in (self._kinds, self._firsts, self._counts)]
        self._offsets = np.cumsum([0, *map(len, self._names)], dtype=np.int32)
        self._text = np.frombuffer(b"".join(self._names) + b"\0", np.uint8)
        self._open = np.zeros(DEEPEST + 1, np.int64)
        self._out = np.empty(0, np.uint8)

    def _put_fields(self, first: int, types: list[LogicalType]) -> None:
        for place, type_ in enumerate(types, first):
            self._field_nodes[place] = self._node(type_)

    def _node(self, type_: LogicalType) -> int:
        node = len(self._kinds)
        self._kinds.append(LEAF)
        self._firsts.append(0)
        self._counts.append(0)
        match type_:
            case ArrayType(element=below):
                self._kinds[node], self._firsts[node] = LIST, self._node(below)
            case MapType(value=below):
                self._kinds[node], self._firsts[node] = MAP, self._node(below)
            case MultisetType():
                self._kinds[node], self._firsts[node] = MAP, self._node(INT)
            case CharacterType() if not self._exact:
                self._kinds[node] = TEXT
            case IntegerType() | FloatType() | DoubleType() | DecimalType() if not self._exact:
                self._kinds[node] = NUMBER
            case RowType(fields=fields):
                first = len(self._names)
                self._names += [field.name.encode() for field in fields]
                self._field_nodes += [0] * len(fields)
                self._kinds[node], self._firsts[node], self._counts[node] = ROW, first, len(fields)
                self._put_fields(first, [field.type for field in fields])
        return node

    def shaped(self, data: bytes) -> memoryview | None:
        """The lines of ``data`` in the wanted shape, valid until the next call; None where one of them is odd."""
        if len(self._out) <= 3 * len(data):
            self._out = np.empty(3 * len(data) + 1, np.uint8)
        serials, found = np.zeros((2, len(self._kinds)), np.int64)
        size = shape_lines(
            np.frombuffer(data, np.uint8),
            len(data),
            *self._nodes,
            np.array(self._field_nodes or [0], np.int64),
            self._offsets,
            self._text,
            self._complete,
            self._open,
            serials,
            found,
            np.zeros(len(self._names) + 1, np.int64),
            self._out,
        )
        return None if size < 0 else self._out.data[:size]


def entries_type(key: Any, value: Any) -> Any:
    """What Arrow reads in place of a map."""
    return pa.list_(pa.struct([pa.field(ENTRY_KEY, key), pa.field(ENTRY_VALUE, value)]))


def keys_and_values(entries: Any) -> tuple[Any, Any]:
    """The parts of all entries of a column of lists of them."""
    _, flat = packed(entries)
    return flat.field(0), flat.field(1)


def maps_of_entries(entries: Any, keys: Any, values: Any, type_: LogicalType) -> Any:
    """Maps of lists of entries whose keys and values were converted; the last of equal keys counts.

    The order of a map's entries is that in which Flink gives them.
    """
    rows, _ = packed(entries)
    return as_hashed(make_map(keys, values, rows, to_arrow(type_)))
