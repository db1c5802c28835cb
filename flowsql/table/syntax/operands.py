"""What may stand in an expression beside plain values: the bases of ``Expression`` and ``Table``.

They stand below both classes, so that literals, the text of methods and ``in_`` can take them apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from flowsql.table.syntax.build import ast, shown
from flowsql_core.errors import BindError


class ExpressionOperand:
    """Holds the tree of an expression."""

    __slots__ = ("_node",)

    def __init__(self, node: ast.Node) -> None:
        self._node = node

    def _value(self) -> ast.Expression:
        """The tree where a value is needed; BindError for what stands in its own place only (``desc``, ``alias``)."""
        node = self._node
        if isinstance(node, ast.OrderItem):
            raise BindError("not-a-value", f"'{shown(node)}' stands in order_by() only.")
        if isinstance(node, ast.SelectItem):
            raise BindError("not-a-value", f"'{shown(node)}' has a name, which only a whole column may have.")
        return node  # type: ignore[return-value]


class QueryOperand(ABC):
    """Holds a query that may stand in an expression: ``x IN (SELECT ...)``."""

    @abstractmethod
    def as_operand(self) -> ast.Query:
        """The query as part of an expression."""
