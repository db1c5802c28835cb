"""Nodes that only the Table API makes: names that carry what a text cannot, resolved before or while a query is bound.

They are names among other names to everyone who prints, walks or binds a tree.
"""

from __future__ import annotations

from flowsql_grammar import ast
from flowsql_grammar.ast.node import detail


class InlineFunction(ast.Name):
    """The name of a function that stands in an expression as an object: each environment that meets it registers it
    under this name, as a temporary system function."""

    function: object = detail(default=None, kw_only=True)


class WindowProperty(ast.Name):
    """``start``, ``end``, ``rowtime`` or ``proctime`` behind the name of a window: ``col("w").start``."""


class FieldPlace(ast.Name):
    """The field of a ROW at a place from 0: ``col("r").get(0)``."""

    place: int = detail(default=0, kw_only=True)


class TableQuery(ast.Query):
    """The query of a table that stands in an expression, and the environment that it is of."""

    environment: object = detail(default=None, kw_only=True)


class Aliased(ast.SelectItem):
    """An expression with several names: the columns of a table function."""

    further: tuple[ast.Name, ...] = ()
