"""Filters of a scan in the words of what holds the rows, as far as it answers them as FlowSQL does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

from flowsql_core.expr import Call, Cast, Expr, InputRef, Literal
from flowsql_core.types import logical as t

T = TypeVar("T")

_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class ConditionMaker(Protocol[T]):
    """Writes conditions over the columns of a table, which are named by their places. None: it cannot."""

    def column(self, index: int) -> T | None:
        """A BOOLEAN column is TRUE."""
        ...

    def is_null(self, index: int) -> T | None:
        """A column has no value."""
        ...

    def is_not_null(self, index: int) -> T | None:
        """A column has a value."""
        ...

    def compared(self, index: int, operator: str, value: Any, type_: t.LogicalType) -> T | None:
        """A column beside a constant that is not NULL, in the form of ``Literal``; LIKE, too."""
        ...

    def every(self, parts: Sequence[T]) -> T | None:
        """All of them."""
        ...

    def some(self, parts: Sequence[T]) -> T | None:
        """One of them at least."""
        ...

    def negated(self, part: T) -> T | None:
        """Not that."""
        ...


def condition(expr: Expr, maker: ConditionMaker[T]) -> T | None:
    """A condition over columns of a table; None where it cannot be taken over."""
    match expr:
        case InputRef(index=index, type=t.BooleanType()):
            return maker.column(index)
        case Call(function="AND" | "OR", args=args):
            known = [part for arg in args if (part := condition(arg, maker)) is not None]
            if len(known) < len(args):
                return None
            return maker.every(known) if expr.function == "AND" else maker.some(known)
        case Call(function="NOT", args=(arg,)):
            inner = condition(arg, maker)
            return None if inner is None else maker.negated(inner)
        case Call(function="IS NULL", args=(InputRef(index=index),)):
            return maker.is_null(index)
        case Call(function="IS NOT NULL", args=(InputRef(index=index),)):
            return maker.is_not_null(index)
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=" | "LIKE", args=(left, Literal() as literal)):
            return _compared(left, expr.function, literal, maker)
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=", args=(Literal() as literal, right)):
            return _compared(right, _TURNED[expr.function], literal, maker)
        case Call(function="IN", args=(left, *literals)):
            each = [
                _compared(left, "=", literal, maker) if isinstance(literal, Literal) else None for literal in literals
            ]
            members = [part for part in each if part is not None]
            return maker.some(members) if len(members) == len(each) else None
    return None


def _compared(operand: Expr, operator: str, literal: Literal, maker: ConditionMaker[T]) -> T | None:
    while isinstance(operand, Cast) and operand.implicit and _is_widening(operand):
        operand = operand.operand
    if not isinstance(operand, InputRef) or literal.value is None:
        return None
    return maker.compared(operand.index, operator, literal.value, literal.type)


def _is_widening(cast: Cast) -> bool:
    """Whether a comparison of the values before the cast gives the same answer."""
    exact = t.IntegerType | t.DecimalType
    from_, to = cast.operand.type, cast.type
    return (isinstance(from_, exact) and isinstance(to, exact)) or (
        isinstance(from_, t.ApproximateType) and isinstance(to, t.DoubleType)
    )
