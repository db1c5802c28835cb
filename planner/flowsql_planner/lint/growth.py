"""Which tables get ever more rows, and of what expressions their columns are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from flowsql_core.expr import Case, Cast, Expr, InputRef, Literal, input_refs
from flowsql_core.types.logical import BooleanType
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import (
    Calc,
    ExpandNode,
    GroupAggregate,
    Limit,
    Physical,
    RankNode,
    SortLimit,
    TableSourceScan,
    UnionNode,
    ValuesNode,
    WindowAggregate,
)
from flowsql_planner.physical.nodes.joins.pairs import PairsOfRows

#: Values of a CASE over literals: more of them are no longer few.
_FEW = 16


def grows(node: Physical, context: PlanContext, below: Callable[[Physical], bool]) -> bool:
    """Whether the table that the node's changes describe gets ever more rows; ``below`` says so of an input."""
    match node:
        case ValuesNode():
            return False
        case TableSourceScan(table=table, span=span):
            return not context.table_source(table, span).bounded
        case Limit(fetch=fetch) | SortLimit(fetch=fetch) if fetch is not None:
            return False
        case RankNode(partition=(), last=last) if last is not None:
            return False
        case GroupAggregate() if is_narrow(node.inputs[0], node.grouping):
            return False
    return any(map(below, node.inputs))


def is_narrow(node: Physical, columns: Sequence[int]) -> bool:
    """Whether there are but a few combinations of values in some columns, however many rows there are."""
    return all(_has_few_values(node, column) for column in columns)


def _has_few_values(node: Physical, column: int) -> bool:
    if isinstance(node.schema[column].type, BooleanType):
        return True
    made = next(made_of(node, column), None)
    match made:
        case Literal():
            return True
        case Case(results=results, otherwise=otherwise) if len(results) < _FEW:
            return all(isinstance(_uncast(result), Literal) for result in (*results, otherwise))
    return False


def _uncast(expr: Expr) -> Expr:
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr


def made_of(node: Physical, column: int) -> Iterator[Expr]:
    """The expressions that a column of a node's output is computed by, from the outermost down to the tables."""
    match node:
        case Calc(projections=projections):
            expr = projections[column]
            if not isinstance(expr, InputRef):
                yield expr
            for index in sorted(input_refs(expr)):
                yield from made_of(node.inputs[0], index)
        case ExpandNode(projections=projections):
            for projection in projections:
                for index in sorted(input_refs(projection[column])):
                    yield from made_of(node.inputs[0], index)
        case UnionNode(inputs=inputs):
            for each in inputs:
                yield from made_of(each, column)
        case GroupAggregate(grouping=grouping) | WindowAggregate(grouping=grouping):
            if column < len(grouping):
                yield from made_of(node.inputs[0], grouping[column])
        case PairsOfRows(inputs=(left, right)):
            width = len(left.schema)
            if column < width:
                yield from made_of(left, column)
            else:
                yield from made_of(right, column - width)
        case Physical(inputs=(source,)) if column < len(source.schema) and _is_passed_on(node, source, column):
            yield from made_of(source, column)


def _is_passed_on(node: Physical, source: Physical, column: int) -> bool:
    """Whether a column stands where it stood: nodes that add columns do so behind those of their input."""
    return node.schema[column].name == source.schema[column].name
