"""Data types."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast

_SYNONYMS = {
    "INTEGER": "INT",
    "DOUBLE PRECISION": "DOUBLE",
    "CHARACTER": "CHAR",
    "CHAR VARYING": "VARCHAR",
    "CHARACTER VARYING": "VARCHAR",
    "BINARY VARYING": "VARBINARY",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}


class TypeBuilder:
    """Methods of the rules of types."""

    def nullable_type(self, span: Span, inner: ast.TypeSpec, nullable: bool | None) -> ast.TypeSpec:
        """A type with NULL or NOT NULL."""
        return inner if nullable is None else replace(inner, nullable=nullable, span=span)

    def array_type(self, span: Span, element: ast.TypeSpec) -> ast.ArrayType:
        """``ARRAY<t>``."""
        return ast.ArrayType(element, span=span)

    def multiset_type(self, span: Span, element: ast.TypeSpec) -> ast.MultisetType:
        """``MULTISET<t>``."""
        return ast.MultisetType(element, span=span)

    def array_suffix(self, span: Span, element: ast.TypeSpec) -> ast.ArrayType:
        """``t ARRAY``, whose elements are NOT NULL."""
        return ast.ArrayType(_required(element), span=span)

    def multiset_suffix(self, span: Span, element: ast.TypeSpec) -> ast.MultisetType:
        """``t MULTISET``, whose elements are NOT NULL."""
        return ast.MultisetType(_required(element), span=span)

    def plain_type(self, span: Span, words: str) -> ast.BasicType:
        """A type without parameters."""
        return ast.BasicType(_SYNONYMS.get(words, words), span=span)

    def sized_type(self, span: Span, words: str, parameters: tuple[int, ...] | None) -> ast.BasicType:
        """A type with a length or precision; only decimals have two."""
        name = _SYNONYMS.get(words, words)
        if parameters is not None and len(parameters) > 1 and name != "DECIMAL":
            raise ParseError("syntax", f"SQL parse failed. Type {name} has one length or precision, not two.", span)
        return ast.BasicType(name, parameters or (), span=span)

    def time_type(self, span: Span, parameters: tuple[int, ...] | None) -> ast.BasicType:
        """``TIME(p)``."""
        return self.sized_type(span, "TIME", parameters)

    def timestamp_type(self, span: Span, parameters: tuple[int, ...] | None) -> ast.BasicType:
        """``TIMESTAMP(p)``."""
        return self.sized_type(span, "TIMESTAMP", parameters)

    def timestamp_ltz_type(self, span: Span, parameters: tuple[int, ...] | None) -> ast.BasicType:
        """``TIMESTAMP(p) WITH LOCAL TIME ZONE``."""
        return self.sized_type(span, "TIMESTAMP_LTZ", parameters)

    def interval_type(self, span: Span, qualifier: ast.IntervalQualifier) -> ast.IntervalType:
        """``INTERVAL DAY TO SECOND``."""
        return ast.IntervalType(qualifier, span=span)

    def map_type(self, span: Span, key: ast.TypeSpec, value: ast.TypeSpec) -> ast.MapType:
        """``MAP<k, v>``."""
        return ast.MapType(key, value, span=span)

    def row_type(self, span: Span, fields: tuple[ast.RowField, ...]) -> ast.RowType:
        """``ROW<...>`` or ``ROW(...)``."""
        return ast.RowType(fields, span=span)

    def empty_row_type(self, span: Span) -> ast.RowType:
        """``ROW<>``."""
        return ast.RowType((), span=span)

    def structured_type(
        self, span: Span, class_name: str, fields: tuple[ast.RowField, ...] | None
    ) -> ast.StructuredType:
        """``STRUCTURED<'c', ...>``."""
        return ast.StructuredType(class_name, fields or (), span=span)

    def raw_type(self, span: Span, class_name: str, serializer: str) -> ast.RawType:
        """``RAW('c', 's')``."""
        return ast.RawType(class_name, serializer, span=span)

    def user_type(self, span: Span, name: ast.Identifier) -> ast.UserType:
        """A path."""
        return ast.UserType(name, span=span)

    def field(self, span: Span, name: ast.Name, type_: ast.TypeSpec, comment: str | None) -> ast.RowField:
        """A field of a row."""
        return ast.RowField(name, type_, comment, span=span)


def _required(element: ast.TypeSpec) -> ast.TypeSpec:
    return replace(element, nullable=False) if element.nullable is None else element
