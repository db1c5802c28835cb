"""Texts of values, as the log has them, to the declared types of columns: the same values as in snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.text.spellings import from_hex
from flowsql_connectors.formats.text_values import TextDialect, parse_texts
from flowsql_connectors.jdbc.arrays import arrived
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

#: Arrays whose elements stand between commas as they are: none of these has quotes, or is an array itself.
_PLAIN_ARRAY: Final = r'^\{[^{}"\\]*\}$'
_NULL: Final = "NULL"


def values_of(texts: Any, native: NativeColumn, column: t.Column) -> Any:
    """The values of a column.

    Args:
        texts: string array, NULL for NULL.
        native: the column in the database, whose type fits.

    Raises:
        ExecutionError: a value is none of the declared type, e.g. ``infinity`` as a TIMESTAMP.
    """
    try:
        return arrived([_in_own_type(texts, native.type, column.type)], (column,), whole_seconds=False)[0]
    except (pa.ArrowException, ValueError) as error:
        raise ExecutionError(
            "bad-database-value",
            f"A value of column '{column.name}' of the database is no {column.type.as_nullable()}: "
            f"{str(error).splitlines()[0]}.",
        ) from error


def _in_own_type(texts: Any, own: t.LogicalType | None, declared: t.LogicalType) -> Any:
    """Values in the type that the column has in the database; decimals in the declared one."""
    match own:
        case None | t.CharacterType():
            return texts
        case t.BooleanType():
            return pc.equal(texts, "t")
        case t.BinaryStringType():
            return from_hex(pc.utf8_slice_codeunits(texts, 2))
        case t.DecimalType():
            return _decimals(texts, declared)
        case t.ArrayType(element=element):
            of_declared = declared.element if isinstance(declared, t.ArrayType) else element
            return _arrays(texts, lambda items: _in_own_type(items, element, of_declared))
        case t.TimestampType() | t.TimestampLtzType() | t.TimeType():
            # Cast where fractions of seconds are cut as well.
            return texts
    return pc.cast(texts, to_arrow(own))


def _decimals(texts: Any, declared: t.LogicalType) -> Any:
    """Numbers of digits, rounded, NULL where there are too many before the point; as texts where texts are declared."""
    if not isinstance(declared, t.DecimalType):
        return texts
    # As in snapshots, what is no number has no digits before the point.
    strange = pc.is_in(texts, pa.array(["NaN", "Infinity", "-Infinity"]))
    values, bad, reason = parse_texts(pc.if_else(strange, None, texts), declared, TextDialect.CSV)
    if bad is not None:
        raise ValueError(reason)
    return values


def _arrays(texts: Any, of_items: Callable[[Any], Any]) -> Any:
    """``{1,2,NULL}`` as lists."""
    if pc.all(pc.match_substring_regex(texts, _PLAIN_ARRAY)).as_py() is False:
        return _quoted_arrays(texts, of_items)
    inner = pc.utf8_slice_codeunits(texts, 1, -1)
    lists = pc.split_pattern(inner, ",")
    empty = np.asarray(pc.fill_null(pc.equal(inner, ""), True))
    lengths = np.where(empty, 0, np.asarray(pc.fill_null(pc.list_value_length(lists), 0)))
    items = lists.filter(pa.array(~empty)).flatten()
    items = pc.if_else(pc.equal(items, _NULL), None, items)
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = texts.is_null() if texts.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), of_items(items), mask=mask)


def _quoted_arrays(texts: Any, of_items: Callable[[Any], Any]) -> Any:
    """Lists of texts with quotes among them, each distinct text once."""
    encoded = pc.dictionary_encode(texts)
    rows = [_items(text) for text in encoded.dictionary.to_pylist()]
    items = pa.array([item for row in rows for item in row], pa.string())
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), of_items(items)).take(encoded.indices)


def _items(text: str) -> list[str | None]:
    """The elements of an array with quotes. Several dimensions have no SQL type, as in snapshots.

    Source: PostgreSQL documentation, "Array Input and Output Syntax".
    """
    body = text.partition("=")[2] if text.startswith("[") else text
    items: list[str | None] = []
    at = 1
    while at < len(body) - 1:
        if body[at] == "{":
            raise ValueError(f"'{text}' has several dimensions")
        if body[at] != '"':
            end = body.find(",", at)
            end = len(body) - 1 if end < 0 else end
            item = body[at:end]
            items.append(None if item == _NULL else item)
            at = end + 1
            continue
        made = []
        at += 1
        while body[at] != '"':
            at += body[at] == "\\"
            made.append(body[at])
            at += 1
        items.append("".join(made))
        at += 2
    return items
