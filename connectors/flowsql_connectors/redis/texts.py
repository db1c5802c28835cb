"""Columns as the texts that keys, fields and strings hold, and back: a batch at once.

Scalars are what CSV files hold: ``1.5``, ``true``, ``2026-01-31 12:00:00.250``; bytes are themselves. Arrays, maps and
rows are JSON. NULL has no text.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.text.render import float_texts
from flowsql_connectors.formats.format import DecodeContext, Messages
from flowsql_connectors.formats.json import JsonFormatFactory
from flowsql_connectors.formats.text_output import decimal_texts, time_texts, timestamp_texts
from flowsql_connectors.formats.text_values import TextDialect, parse_texts
from flowsql_connectors.options import OptionValues
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

_NESTED: Final = (t.ArrayType, t.MapType, t.MultisetType, t.RowType)
_NAME: Final = "v"
_HEAD: Final = b'{"v":'


def is_nested(type_: t.LogicalType) -> bool:
    """Whether values are made of others."""
    return isinstance(type_, _NESTED)


def texts_of(array: Any, type_: t.LogicalType) -> Any:
    """A binary array, as long as the column, NULL where it is."""
    match type_:
        case t.BinaryStringType():
            return array.cast(pa.binary())
        case t.FloatType() | t.DoubleType():
            texts = float_texts(array)
        case t.DecimalType():
            texts = decimal_texts(array, plain=True)
        case t.TimeType():
            texts = time_texts(array)
        case t.TimestampType() | t.TimestampLtzType():
            texts = timestamp_texts(array, " ")
        case _ if is_nested(type_):
            encoder = _json(type_).message_encoder((t.Column(_NAME, type_),))
            made = pc.binary_slice(encoder.encode((array,), len(array)), len(_HEAD), -1)
            return pc.if_else(array.is_valid(), made, pa.scalar(None, pa.binary()))
        case _:
            texts = pc.cast(array, pa.string())
    return texts.cast(pa.binary())


def values_of(texts: Any, column: t.Column, place: str) -> Any:
    """The values of a binary array in the column's type.

    Args:
        place: where the texts stand, for messages.

    Raises:
        ExecutionError: a text has no value of the type.
    """
    type_ = column.type
    if isinstance(type_, t.BinaryStringType):
        return texts.cast(to_arrow(type_))
    if is_nested(type_):
        return _nested(texts, column, place)
    try:
        strings = texts.cast(pa.string())
    except pa.ArrowInvalid:
        raise ExecutionError(
            "bad-redis-value", f"{place}, column '{column.name}', is no UTF-8 text.", hint="declare it as BYTES"
        ) from None
    values, _, reason = parse_texts(strings, type_, TextDialect.CSV)
    if reason is not None:
        raise ExecutionError(
            "bad-redis-value", f"{place}, column '{column.name}', is no {type_.as_nullable()}: {reason}."
        )
    return values.cast(to_arrow(type_))


def _nested(texts: Any, column: t.Column, place: str) -> Any:
    documents = pc.binary_join_element_wise(_HEAD, pc.fill_null(texts, b"null"), b"}", b"")
    wanted = (t.Column(_NAME, column.type),)
    decoder = _json(column.type).message_decoder(DecodeContext(wanted, (0,), max(1, len(texts)), {}))
    found = decoder.decode(Messages(documents, lambda index: f"{place}, column '{column.name}'"))
    return found.arrays[0] if found.num_rows else pa.nulls(0, to_arrow(column.type))


def _json(type_: t.LogicalType) -> Any:
    table = TableSpec(("", "", ""), (t.Column(_NAME, type_),), ())
    return JsonFormatFactory().create(OptionValues({}), table)
