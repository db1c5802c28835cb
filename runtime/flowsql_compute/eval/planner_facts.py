"""What Flink's planner knows of an expression without evaluating it."""

from __future__ import annotations

from flowsql_core.expr import Call, Expr, Literal

_SAME = {"=": True, "<=": True, ">=": True, "<>": False, "<": False, ">": False}


def decided(node: Expr) -> Literal | None:
    """TRUE or FALSE where the form of a comparison, an AND or an OR says so; None where values have to.

    A comparison of an operand that is never NULL with itself does not ask what it is (``UUID() = UUID()``); one operand
    may decide an AND or OR, whatever stands beside it, even what would fail.
    """
    match node:
        case Call(function=function, args=(one, other)) if function in _SAME and one == other and not one.type.nullable:
            return Literal(_SAME[function], node.type.as_nullable(False), node.span)
        case Call(function="OR" | "AND" as function, args=operands):
            answer = function == "OR"
            if any(isinstance(operand, Literal) and operand.value is answer for operand in operands):
                return Literal(answer, node.type.as_nullable(False), node.span)
    return None
