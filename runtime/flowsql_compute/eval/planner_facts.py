"""What Flink's planner knows of an expression without evaluating it."""

from __future__ import annotations

from typing import Final

from flowsql_compute.eval.nested.equality import BY_IDENTITY
from flowsql_core.expr import Call, Case, Expr, InputRef, Literal, children, walk
from flowsql_core.types.logical import ApproximateType, BooleanType, DecimalType, is_nested

_SAME = {"=": True, "<=": True, ">=": True, "<>": False, "<": False, ">": False}


def decided(node: Expr) -> Literal | None:
    """TRUE or FALSE where the form of a comparison, an AND or an OR says so; None where values have to.

    A column NOT NULL, and what is computed of such, is never asked whether it is NULL, even where a DECIMAL that
    overflowed left a NULL. A comparison of
    an operand that is never NULL with itself does not ask what it is (``UUID() = UUID()``); one operand may decide an
    AND or OR, whatever stands beside it, even what would fail.
    """
    match node:
        case Call(function="IS NULL" | "IS NOT NULL" as function, args=(held,)) if _is_never_asked(held):
            return Literal(function == "IS NOT NULL", node.type, node.span)
        case Call(function=function, args=(one, other)) if function in _SAME and one == other and not one.type.nullable:
            return Literal(_SAME[function], node.type.as_nullable(False), node.span)
        case Call(function="OR" | "AND" as function, args=operands):
            answer = function == "OR"
            if any(isinstance(operand, Literal) and operand.value is answer for operand in operands):
                return Literal(answer, node.type.as_nullable(False), node.span)
    return None


#: What a truth value that is never NULL is taken for without asking: itself, or its opposite.
_ITSELF: Final = frozenset({"IS TRUE", "IS NOT FALSE"})
_OPPOSITE: Final = frozenset({"IS FALSE", "IS NOT TRUE"})


#: Operators that are NULL exactly where an operand is, as far as the planner knows.
_STRONG: Final = frozenset({"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "NOT"})
#: Operators whose types the planner believes.
_BELIEVED: Final = frozenset(
    {"+", "-", "*", "=", "<>", "<", "<=", ">", ">=", "NOT", "AND", "OR", "COALESCE", "IS NULL", "IS NOT NULL"}
)


def _is_never_asked(held: Expr) -> bool:
    return not held.type.nullable and all(
        isinstance(node, InputRef | Literal | Case) or (isinstance(node, Call) and node.function in _BELIEVED)
        for node in walk(held)
    )


def simplified(node: Expr) -> Expr | None:
    """Return what the planner makes of a question about NULL to operands that are NOT NULL; None of other nodes."""
    match node:
        case Call(function="COALESCE", args=(first, *_)) if not first.type.nullable and first.type.same(node.type):
            return first
        case Call(function="IS NULL" | "IS NOT NULL" as asked, args=(Call(function=function) as held,)) if (
            function in _STRONG and isinstance(held.type, DecimalType | BooleanType)
        ):
            parts = [_answered(Call(asked, (operand,), node.type, (), node.span)) for operand in held.args]
            return parts[0] if len(parts) == 1 else _joined("OR" if asked == "IS NULL" else "AND", parts, node)
        case Call(function=function, args=(one, other)) if (
            function in _SAME and one == other and isinstance(one.type, ApproximateType | DecimalType)
        ):
            answer = Literal(_SAME[function], node.type.as_nullable(False), node.span)
            test = _answered(Call("IS NOT NULL", (one,), answer.type, (), node.span))
            return Case((test,), (answer,), Literal(None, node.type), node.type, node.span)
        case Call(function=function, args=(held,)) if function in _ITSELF and not held.type.nullable:
            return held
        case Call(function=function, args=(held,)) if function in _OPPOSITE and not held.type.nullable:
            return Call("NOT", (held,), held.type, (), node.span)
        case Call(function="IS DISTINCT FROM" | "IS NOT DISTINCT FROM" as function, args=(one, other)) if not (
            one.type.nullable or other.type.nullable
        ):
            options = BY_IDENTITY if is_nested(one.type) else ()
            return Call("<>" if function == "IS DISTINCT FROM" else "=", node.args, node.type, options, node.span)
    return None


def _answered(node: Call) -> Expr:
    """What is known of a question about NULL to an operand of an operator: there its type is believed."""
    (held,) = node.args
    if not held.type.nullable:
        return Literal(node.function == "IS NOT NULL", node.type, node.span)
    return simplified(node) or node


def _joined(function: str, parts: list[Expr], node: Call) -> Expr:
    """Answers of operands as that of a whole; those that decide nothing are left out."""
    decisive = function == "OR"
    open_ = [part for part in parts if not isinstance(part, Literal)]
    if any(isinstance(part, Literal) and part.value is decisive for part in parts):
        return Literal(decisive, node.type, node.span)
    if len(open_) < 2:
        return open_[0] if open_ else Literal(not decisive, node.type, node.span)
    return Call(function, tuple(open_), node.type, (), node.span)


def is_settled(node: Expr) -> bool:
    """True if an operand is constant: a literal, or a division of literals by zero, which stays as it is written."""
    return isinstance(node, Literal) or divides_by_zero(node)


def divides_by_zero(node: Expr) -> bool:
    """True for a division of one literal by another that is zero."""
    match node:
        case Call(function="/", args=(Literal(), Literal(value=divisor))):
            return divisor is not None and divisor == 0
    return False


def division_to_refuse(expr: Expr) -> Expr | None:
    """Return a division by a constant zero that the planner refuses, whether a row evaluates it or not; None if none.

    It refuses one that is a whole constant by itself. Within a constant (``CAST(1e0 / 0 AS STRING)``) the division is
    evaluated: of DOUBLE to an infinity.
    """
    open_ = [expr]
    while open_:
        node = open_.pop()
        if divides_by_zero(node):
            return node
        if any(not children(leaf) and not isinstance(leaf, Literal) for leaf in walk(node)):
            open_.extend(children(node))
    return None
