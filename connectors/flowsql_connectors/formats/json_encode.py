"""Columns to lines of json: one object a row, fields in the order of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from flowsql_compute.eval.text.render import Notation, json_strings, json_texts, regrouped, render_column
from flowsql_connectors.formats.format import MessageEncoder, TextEncoder
from flowsql_connectors.formats.text_output import base64_texts, decimal_texts, time_texts, timestamp_texts
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types.logical import (
    BIGINT,
    ArrayType,
    BinaryStringType,
    BooleanType,
    CharacterType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    Schema,
    TimestampLtzType,
    TimestampType,
    TimeType,
)

if TYPE_CHECKING:
    from flowsql_connectors.formats.json import JsonFormat


class JsonEncoder(TextEncoder):
    """Lines of one table."""

    def __init__(self, format_: JsonFormat, columns: Schema) -> None:
        self._format = format_
        self._columns = columns
        self._separator = "T" if format_.dialect is TextDialect.JSON_ISO else " "

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The lines of a batch."""
        return pc.binary_join_element_wise(self.objects(columns, num_rows), "\n", "")

    def objects(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """An object a row."""
        if not columns:
            return pa.array(["{}"] * num_rows, pa.string())
        return self._object(list(columns), self._columns)

    def _object(self, arrays: list[Any], columns: Schema) -> Any:
        """``{"a":1,"b":"x"}`` a row."""
        if self._format.ignore_nulls:
            parts = [
                pc.fill_null(pc.binary_join_element_wise(f",{_key(c.name)}:", self._value(array, c.type), ""), "")
                for array, c in zip(arrays, columns, strict=True)
            ]
            joined = pc.binary_join_element_wise(*parts, "") if len(parts) > 1 else parts[0]
            return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 1), "}", "")
        pieces: list[Any] = []
        before = "{"
        for array, column in zip(arrays, columns, strict=True):
            before += _key(column.name) + ":"
            # Quotes that all rows have stand in what is between the values: texts are not copied for them.
            text = None if array.null_count else self._text(array, column.type)
            if text is None:
                pieces += [before, pc.fill_null(self._value(array, column.type), "null")]
                before = ","
            else:
                pieces += [before + '"', text]
                before = '",'
        return pc.binary_join_element_wise(*pieces, before.removesuffix(",") + "}", "")

    def _text(self, array: Any, type_: LogicalType) -> Any | None:
        """What stands between quotes, NULL stays NULL; None for types without quotes."""
        match type_:
            case CharacterType():
                return json_texts(array)
            case BinaryStringType():
                return base64_texts(array)
            case DateType():
                return pc.cast(array, pa.string())
            case TimeType():
                return time_texts(array)
            case TimestampType() | TimestampLtzType():
                return timestamp_texts(array, self._separator)
        return None

    def _value(self, array: Any, type_: LogicalType) -> Any:
        """JSON texts; NULL stays NULL."""
        text = self._text(array, type_)
        if text is not None:
            return _in_quotes(text)
        match type_:
            case BooleanType() | IntegerType():
                return pc.cast(array, pa.string())
            case FloatType() | DoubleType():
                texts = render_column(array, type_, Notation.JSON)
                return pc.if_else(pc.is_valid(array), texts, pa.scalar(None, pa.string()))
            case DecimalType():
                return decimal_texts(array, self._format.plain_decimals)
            case ArrayType(element=element):
                inner = pc.fill_null(self._value(array.flatten(), element), "null")
                return pc.binary_join_element_wise("[", pc.binary_join(regrouped(array, inner), ","), "]", "")
            case MapType(value=value):
                return self._map(array, value)
            case MultisetType():
                return self._map(array, BIGINT)
            case RowType(fields=fields):
                children = [pc.struct_field(array, [index]) for index in range(len(fields))]
                texts = self._object(children, tuple(Column(field.name, field.type) for field in fields))
                return pc.if_else(pc.is_valid(array), texts, pa.scalar(None, pa.string()))
        raise NotSupportedYetError(f"writing {type_} to json")

    def _map(self, array: Any, value: LogicalType) -> Any:
        """An object; Arrow's maps have no NULL key, so ``json.map-null-key.*`` never comes into play."""
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["k", "v"])
        lists = pa.ListArray.from_arrays(array.offsets, entries)
        if array.null_count:
            lists = pc.if_else(pc.is_valid(array), lists, pa.scalar(None, lists.type))
        pairs = lists.flatten()
        items = pc.fill_null(self._value(pairs.field(1), value), "null")
        texts = pc.binary_join_element_wise(json_strings(pairs.field(0)), items, ":")
        return pc.binary_join_element_wise("{", pc.binary_join(regrouped(lists, texts), ","), "}", "")


class ObjectMessageEncoder(MessageEncoder):
    """An object a message."""

    def __init__(self, encoder: JsonEncoder) -> None:
        self._encoder = encoder

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """The objects' bytes."""
        return self._encoder.objects(columns, num_rows).cast(pa.binary())


def _key(name: str) -> str:
    return orjson.dumps(name).decode()


def _in_quotes(texts: Any) -> Any:
    return pc.binary_join_element_wise('"', texts, '"', "")
