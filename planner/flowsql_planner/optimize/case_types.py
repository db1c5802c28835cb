"""Whether a CASE can be NULL, by what its conditions alone say.

Flink simplifies a CASE before it asks for the types of what stands around: branches that are never taken do not count.
Conditions are decided by constants and by what is never NULL; functions are not evaluated for it. Source: Calcite's
``RexSimplify``, asked through TYPEOF.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.planner_facts import decided
from flowsql_core.expr import Call, Case, Expr, Literal, walk

_LOGIC = frozenset({"=", "<>", "<", "<=", ">", ">=", "AND", "OR", "NOT", "IS NULL", "IS NOT NULL"})


def as_chosen(expr: Expr, context: EvalContext) -> Expr:
    """A CASE (as which NULLIF is bound, too) typed by the branches that may be taken; another expression as it is."""
    match expr:
        case Case(conditions=conditions, results=results, is_if=False):
            taken: list[Expr] = []
            for condition, result in zip(conditions, results, strict=True):
                answer = _answer(condition, context)
                if answer is not False:
                    taken.append(result)
                if answer:
                    break
            else:
                taken.append(expr.otherwise)
            nullable = any(as_chosen(result, context).type.nullable for result in taken)
            return replace(expr, type=expr.type.as_nullable(nullable))
        case _:
            return expr


def _answer(condition: Expr, context: EvalContext) -> bool | None:
    """What a condition always is (never taken: False), or None."""
    known = decided(condition)
    if known is not None:
        return bool(known.value)
    match condition:
        case Literal(value=value):
            return bool(value)
        case Call(function="IS NULL" | "IS NOT NULL" as function, args=(operand,)) if not operand.type.nullable:
            return function == "IS NOT NULL"
        case Call() if all(
            isinstance(node, Literal) or (isinstance(node, Call) and node.function in _LOGIC)
            for node in walk(condition)
        ):
            # Imported on use: a plan without constant expressions does not load the kernels.
            from flowsql_compute.eval.compile import fold

            folded = fold(condition, context)
            return bool(folded.value) if isinstance(folded, Literal) else None
        case _:
            return None
