"""Lineage of expressions, and how influences change on their way up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from flowsql_core.expr import Call, Case, Cast, Expr, InputRef, Literal
from flowsql_core.types.logical import LogicalType, without_attribute
from flowsql_planner.lineage.model import NONE, Flow, How, Influence, Influences
from flowsql_planner.logical.internal_calls import EXISTS, IN_QUERY, OUTER, QUERY_CALLS, SCALAR
from flowsql_planner.logical.nodes import Rel

#: The lineage of a plan inside of an expression, whose parameters come from these influences.
Subplan = Callable[[Rel, Sequence[Influences]], Flow]


def through(how: How, influences: Influences) -> Influences:
    """The influences on what is made of a column in this way.

    Direct ways change what was direct, and an aggregate stays one; indirect ways make everything indirect.
    """
    if how is How.IDENTITY or not influences:
        return influences
    return frozenset(Influence(each.source, _joined(each.how, how)) for each in influences)


def _joined(below: How, above: How) -> How:
    if not above.direct:
        return above
    return above if below is How.IDENTITY or (below.direct and above is How.AGGREGATION) else below


def merged(parts: Iterable[Influences]) -> Influences:
    """All of them."""
    return NONE.union(*parts)


def of_columns(how: How, columns: Sequence[Influences], indexes: Iterable[int]) -> Influences:
    """What some columns pass on in one way."""
    return through(how, merged(columns[index] for index in indexes))


class Expressions:
    """Lineage of expressions over columns. ``outer``: of the row around the query; ``subplan``: of queries inside."""

    def __init__(self, outer: Sequence[Influences], subplan: Subplan) -> None:
        self._outer = outer
        self._subplan = subplan

    def of(self, expr: Expr, columns: Sequence[Influences]) -> Influences:
        """The influences on an expression's value; its depth costs no stack."""
        found: set[Influence] = set()
        open_: list[tuple[Expr, How]] = [(expr, How.IDENTITY)]
        while open_:
            node, how = open_.pop()
            changed = How.TRANSFORMATION if how.direct else how
            match node:
                case InputRef(index=index):
                    found |= through(how, columns[index])
                case Literal():
                    pass
                case Cast(operand=operand):
                    open_.append((operand, how if _same(operand.type, node.type) else changed))
                case Case(conditions=conditions, results=results, otherwise=otherwise):
                    decides = How.CONDITIONAL if how.direct else how
                    open_ += [(condition, decides) for condition in conditions]
                    open_ += [(result, changed) for result in (*results, otherwise)]
                case Call(function=function) if function == OUTER:
                    found |= through(how, self._outer[int(node.option("slot"))])
                case Call(function=function) if function in QUERY_CALLS:
                    found |= through(changed, self._of_query(node, columns))
                case Call(args=args):
                    open_ += [(arg, changed) for arg in args]
                case _:
                    assert_never(node)
        return frozenset(found)

    def _of_query(self, call: Call, columns: Sequence[Influences]) -> Influences:
        """A query inside of an expression: what it answers counts as a part of the value, but EXISTS only has rows."""
        plan = call.option("plan")
        operands = 0 if call.function in (EXISTS, SCALAR) else len(plan.schema) if call.function == IN_QUERY else 1
        values = [self.of(arg, columns) for arg in call.args]
        flow = self._subplan(plan, values[operands:])
        answered = () if call.function == EXISTS else flow.columns
        return merged((*values[:operands], *answered, flow.rows))


def _same(one: LogicalType, other: LogicalType) -> bool:
    """Whether a cast leaves values as they are."""
    return without_attribute(one).as_nullable() == without_attribute(other).as_nullable()
