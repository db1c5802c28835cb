"""What FlowSQL runs around Spark: parts of a plan without state, and how a part is cut so that Spark gets the rest.

A part over tables alone runs before Spark; one over an answer of Spark runs between two of its queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from flowsql_connectors import registry
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.expr import (
    AggregateCall,
    Call,
    Expr,
    InputRef,
    children,
    conjunction,
    conjuncts,
    input_refs,
    remap_inputs,
    transform,
    walk,
    with_children,
)
from flowsql_core.graph.spark import ROWS_RESOURCE
from flowsql_core.graph.specs import JoinKind, WindowKind
from flowsql_core.types import logical as t
from flowsql_planner.logical.internal_calls import OUTER, QUERY_CALLS, is_internal, query_calls
from flowsql_planner.logical.nodes import (
    Correlate,
    Filter,
    Join,
    Project,
    Rel,
    Scan,
    Sort,
    Union,
    Values,
    WindowTableFunction,
    expressions,
    inputs,
)
from flowsql_planner.logical.rewrite import make_join, refs, with_inputs
from flowsql_planner.logical.rewrite import walk as walk_plan
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.spark.own_reading import is_in_spark

#: Whether Spark has an exact form of an expression.
HasForm = Callable[[Expr], bool]

#: Aggregates whose answer does not depend on the order of the rows: they may run over an answer of Spark.
_UNORDERED: Final = frozenset(
    {
        "COUNT", "SUM", "AVG", "MIN", "MAX", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "COLLECT",
        "PERCENTILE", "BITMAP_BUILD_AGG", "BITMAP_AND_AGG", "BITMAP_OR_AGG", "BITMAP_XOR_AGG",
    }
)  # fmt: skip


def is_local(rel: Rel) -> bool:
    """Whether a whole relation needs no state and nothing of a query around it: FlowSQL answers it without Spark."""
    return all(
        is_local_node(node) and not isinstance(node, Join) and not (isinstance(node, Scan) and is_in_spark(node))
        for node in walk_plan(rel)
    )


def is_local_node(rel: Rel) -> bool:
    """Whether FlowSQL can run one node over any input."""
    match rel:
        case Scan() | Values() | Union() | Project() | Filter() | Correlate():
            return all(map(is_local_expr, expressions(rel)))
        case WindowTableFunction(kind=kind):
            return kind is not WindowKind.SESSION
    return False


def is_local_expr(expr: Expr) -> bool:
    """Whether an expression speaks of nothing but the row."""
    return not any(isinstance(node, Call) and is_internal(node.function) for node in walk(expr))


def has_no_table(rel: Rel) -> bool:
    """Whether all rows stand in the query: Spark need not count them."""
    return not any(isinstance(node, Scan) for node in walk_plan(rel))


def stands_in_order(rel: Rel) -> bool:
    """Whether FlowSQL makes the rows of a relation in the order in which Flink does: of one table alone."""
    return is_local(rel) and not any(isinstance(node, Union) for node in walk_plan(rel))


def reads_outer(rel: Rel) -> bool:
    """Whether a relation reads the row around the query that it stands in."""
    return any(
        isinstance(node, Call) and node.function == OUTER
        for part in walk_plan(rel)
        for expr in expressions(part)
        for node in walk(expr)
    )


def are_unordered(calls: Sequence[AggregateCall]) -> bool:
    """Whether the answers of aggregates are the same for rows in any order."""
    return all(call.function in _UNORDERED and not call.order_by for call in calls)


def top_sort(rel: Rel) -> Sort | None:
    """The sort whose order an answer has, if it takes all rows: what LIMIT cuts off stands in one task anyway."""
    while isinstance(rel, Project | Filter):
        rel = rel.input
    return rel if isinstance(rel, Sort) and rel.keys and rel.fetch is None and not rel.offset else None


def with_moments(rel: Rel) -> Rel:
    """Rows without a moment fall into no window: in batch mode Flink drops them before the window function."""
    children = tuple(with_moments(child) for child in inputs(rel))
    match rel:
        case WindowTableFunction(time_index=index) if rel.input.schema[index].type.nullable:
            (source,) = children
            there = Call("IS NOT NULL", (refs(source.schema)[index],), t.BOOLEAN.as_nullable(False))
            return replace(rel, input=Filter(source, there, rel.span))

    return with_inputs(rel, children)


def answer_scan(schema: t.Schema) -> Scan:
    """A relation that reads an answer of Spark. Columns of answers may have equal names: here they are numbered."""
    columns = tuple(t.Column(f"c{index}", t.without_attribute(column.type)) for index, column in enumerate(schema))
    table = registry.handed_table((ANONYMOUS, ANONYMOUS, "of the answer of Spark"), columns, ROWS_RESOURCE)
    return Scan(table, tuple(range(len(columns))), columns)


def apart_from_queries(rel: Project | Filter) -> Project | Filter | None:
    """The node over a projection that asks its queries, so that FlowSQL can run it; None when it asks none.

    A filter passes the added columns on: whoever asks for it drops them.
    """
    asked: list[Expr] = []
    width = len(rel.input.schema)
    for expr in expressions(rel):
        asked += [call for call in query_calls(expr) if call not in asked]
    if not asked:
        return None

    def change(node: Expr) -> Expr:
        if isinstance(node, Call) and node.function in QUERY_CALLS:
            return InputRef(width + asked.index(node), node.type, node.span)
        return node

    names = (*(column.name for column in rel.input.schema), *(f"$q{index}" for index in range(len(asked))))
    below = Project(rel.input, (*refs(rel.input.schema), *asked), names, rel.span)
    if isinstance(rel, Project):
        return replace(rel, input=below, exprs=tuple(transform(expr, change) for expr in rel.exprs))
    return replace(rel, input=below, condition=transform(rel.condition, change))


def split_condition(condition: Expr | None, has_form: HasForm) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The conjuncts that Spark answers, and those that it does not."""
    parts = conjuncts(condition)
    strange = tuple(part for part in parts if is_local_expr(part) and not has_form(part))
    return tuple(part for part in parts if part not in strange), strange


class _Columns:
    """Expressions over one side of a join that become columns of that side."""

    def __init__(self, start: int, width: int) -> None:
        self.start = start
        self.width = width
        self.exprs: list[Expr] = []

    def holds(self, expr: Expr) -> bool:
        used = input_refs(expr)
        return bool(used) and all(self.start <= index < self.start + self.width for index in used)

    def below(self, rel: Rel) -> Rel:
        """The side with the columns added."""
        if not self.exprs:
            return rel
        added = [remap_inputs(expr, lambda index: index - self.start) for expr in self.exprs]
        names = [column.name for column in rel.schema] + [f"$f{self.width + i}" for i in range(len(added))]
        return Project(rel, (*refs(rel.schema), *added), tuple(names), getattr(rel, "span", None))


def lift_join_expressions(rel: Join, has_form: HasForm) -> Project | None:
    """Join(a, b, ON f(a) < b.y)  =>  Project(Join(Project(a, *, f), b, ON a.f < b.y)), where Spark has no f.

    None when nothing can be lifted. What reads both sides stays.
    """
    width = len(rel.left.schema)
    sides = (_Columns(0, width), _Columns(width, len(rel.right.schema)))
    _, strange = split_condition(rel.condition, has_form)
    marks: dict[Expr, InputRef] = {}

    def lift(expr: Expr) -> None:
        for side in sides:
            if side.holds(expr) and is_deterministic(expr):
                if not has_form(expr) and expr not in marks:
                    marks[expr] = InputRef(-1, expr.type, expr.span)
                    side.exprs.append(expr)
                return
        for child in children(expr):
            lift(child)

    for part in strange:
        lift(part)
    if not marks:
        return None
    left, right = (side.below(child) for side, child in zip(sides, (rel.left, rel.right), strict=True))
    moved = len(left.schema)
    for start, side in zip((width, moved + sides[1].width), sides, strict=True):
        for place, expr in enumerate(side.exprs):
            marks[expr] = InputRef(start + place, expr.type, expr.span)

    def placed(expr: Expr) -> Expr:
        found = marks.get(expr)
        if found is not None:
            return found
        if isinstance(expr, InputRef):
            return expr if expr.index < width else replace(expr, index=expr.index - width + moved)
        return with_children(expr, tuple(placed(child) for child in children(expr)))

    condition = conjunction(tuple(placed(part) for part in conjuncts(rel.condition)))
    join = make_join(rel, left, right, condition)
    kept = list(range(width))
    if rel.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        kept += [moved + index for index in range(sides[1].width)]
    exprs = tuple(InputRef(index, join.schema[index].type) for index in kept)
    return Project(join, exprs, tuple(column.name for column in rel.schema), rel.span)
