"""Data types as text."""

from __future__ import annotations

from typing import assert_never

from flowsql_grammar import ast
from flowsql_grammar.printing.names import name, path, string


class TypePrinter:
    """Types and interval qualifiers."""

    def type(self, node: ast.TypeSpec) -> str:
        """A type with its nullability."""
        suffix = {None: "", True: " NULL", False: " NOT NULL"}[node.nullable]
        return self._bare_type(node) + suffix

    def _bare_type(self, node: ast.TypeSpec) -> str:
        match node:
            case ast.BasicType(text, parameters):
                return text + (f"({', '.join(map(str, parameters))})" if parameters else "")
            case ast.IntervalType(qualifier):
                return "INTERVAL " + self.qualifier(qualifier)
            case ast.ArrayType(element):
                return f"ARRAY<{self.type(element)}>"
            case ast.MultisetType(element):
                return f"MULTISET<{self.type(element)}>"
            case ast.MapType(key, value):
                return f"MAP<{self.type(key)}, {self.type(value)}>"
            case ast.RowType(fields):
                return f"ROW<{self._fields(fields)}>"
            case ast.StructuredType(class_name, fields):
                return f"STRUCTURED<{', '.join(filter(None, (string(class_name), self._fields(fields))))}>"
            case ast.RawType(class_name, serializer):
                return f"RAW({string(class_name)}, {string(serializer)})"
            case ast.UserType(identifier):
                return path(identifier)
            case _:
                assert_never(node)

    def _fields(self, fields: tuple[ast.RowField, ...]) -> str:
        return ", ".join(
            f"{name(field.name)} {self.type(field.type)}" + (f" {string(field.comment)}" if field.comment else "")
            for field in fields
        )

    def qualifier(self, node: ast.IntervalQualifier) -> str:
        """``DAY(2) TO SECOND(3)``."""
        text: str = node.start.value
        if node.end is None and node.fraction is not None:
            return f"{text}({node.precision}, {node.fraction})"
        if node.precision is not None:
            text += f"({node.precision})"
        if node.end is not None:
            text += f" TO {node.end.value}"
            if node.fraction is not None:
                text += f"({node.fraction})"
        return text
