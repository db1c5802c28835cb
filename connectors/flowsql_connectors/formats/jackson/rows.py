"""Rows of a JSON document as Flink's json format reads them: field by field, without a tree of the document.

Of fields given twice the last one counts, but reading stops once as many fields were met as are wanted. A value that is
none of its type is NULL where errors are ignored, and reading goes on where the parser is then, which may be inside
of that value.

Source: Flink 2.3's ``JsonParserToRowDataConverters``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flowsql_connectors.formats.jackson.tokens import JsonTokens, Token
from flowsql_connectors.formats.json_values import JsonConverter, json_text
from flowsql_core.types.logical import (
    INT,
    STRING,
    ArrayType,
    BooleanType,
    CharacterType,
    Column,
    Field,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    Schema,
)

_CONTAINERS = (Token.OBJECT, Token.ARRAY)


class FieldValueError(ValueError):
    """A field has no value of its type; ``field`` is its name."""

    def __init__(self, field: str, reason: object) -> None:
        super().__init__(f"Fail to deserialize at field: {field}. {reason}")
        self.field = field


class StreamedRows:
    """Reads the rows of single documents.

    Args:
        wanted: the fields to read.
        converter: converts values that are no containers, and counts what became NULL.
        ignore: NULL for values that are none of their type.
        fail_on_missing: whether an object must hold every field.
    """

    def __init__(self, wanted: Schema, converter: JsonConverter, ignore: bool, fail_on_missing: bool) -> None:
        self._wanted = wanted
        self._converter = converter
        self._ignore = ignore
        self._fail_on_missing = fail_on_missing
        self._tokens = JsonTokens(b"")

    def rows(self, document: bytes) -> Iterator[list[Any]]:
        """Read the rows of a document: one, or those of an array.

        Raises:
            ValueError: the document, or what follows the rows so far, cannot be read.
            FieldValueError: a value is none of its type.
        """
        tokens = self._tokens = JsonTokens(document)
        match tokens.advance():
            case Token.OBJECT:
                yield self._fields(self._wanted)
            case Token.ARRAY:
                while tokens.advance() is not Token.END_ARRAY:
                    yield self._fields(self._wanted)
            case _:
                raise ValueError("No content to map due to end-of-input")

    def _fields(self, fields: Sequence[Column | Field]) -> list[Any]:
        tokens = self._tokens
        first = tokens.token
        if first is not Token.OBJECT:
            raise ValueError("Illegal JSON object data")
        places = {field.name: place for place, field in enumerate(fields)}
        row: list[Any] = [None] * len(fields)
        met = 0
        tokens.advance()
        while tokens.token is not Token.END_OBJECT:
            if met >= len(places):
                tokens.skip()
                continue
            name = tokens.text()
            tokens.advance()
            place = None if name is None else places.get(name)
            if place is None:
                tokens.skip()
                continue
            try:
                row[place] = self._value(fields[place].type)
            except ValueError as error:
                raise FieldValueError(fields[place].name, error) from error
            tokens.advance()
            met += 1
        if met < len(places) and self._fail_on_missing:
            missing = next((field.name for field, value in zip(fields, row, strict=True) if value is None), "")
            raise ValueError(f"Some field is missing in the JSON data: '{missing}'.")
        return row

    def _value(self, type_: LogicalType) -> Any:
        if self._tokens.token is None or self._tokens.token is Token.NULL:
            return None
        try:
            return self._not_null(type_)
        except ValueError:
            if not self._ignore:
                raise
            self._converter.nulled += 1
            return None

    def _not_null(self, type_: LogicalType) -> Any:
        tokens = self._tokens
        match type_:
            case CharacterType():
                return json_text(tokens.tree()) if tokens.token in _CONTAINERS else tokens.text()
            case BooleanType() if tokens.token in _CONTAINERS and not self._converter.strict:
                return False
            case ArrayType(element=element):
                return list(self._items(element))
            case MapType(value=value):
                return self._entries(value)
            case MultisetType():
                return self._entries(INT)
            case RowType(fields=fields):
                names = [field.name for field in fields]
                return dict(zip(names, self._fields(fields), strict=True))
        return self._converter.scalar(tokens.scalar(), type_)

    def _items(self, element: LogicalType) -> Iterator[Any]:
        if self._tokens.token is not Token.ARRAY:
            raise ValueError("Illegal JSON array data")
        while (token := self._tokens.advance()) is not Token.END_ARRAY:
            if token is None:
                raise ValueError("Unexpected end-of-input")
            yield self._value(element)

    def _entries(self, type_: LogicalType) -> list[tuple[Any, Any]]:
        if self._tokens.token is not Token.OBJECT:
            raise ValueError("Illegal JSON map data")
        found: dict[Any, Any] = {}
        while (token := self._tokens.advance()) is not Token.END_OBJECT:
            if token is None:
                raise ValueError("Unexpected end-of-input")
            name = self._value(STRING)
            self._tokens.advance()
            found[name] = self._value(type_)
        # Loaded by formats that have maps alone.
        from flowsql_compute.eval.nested.map_order import text_order

        return [(name, found[name]) for name in text_order(tuple(found))]
