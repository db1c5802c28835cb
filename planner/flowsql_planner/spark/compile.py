"""Optimized logical plan -> :class:`SparkJob`: local jobs that read, one Spark query an answer, local jobs that write.

Every relation is a SELECT whose columns are called c0, c1, ...; names of the query come back with the answer. A part of
the plan that needs no state and holds something without a Spark form is run by FlowSQL before Spark sees the rows; what
stands at the very top of the plan, behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, assert_never

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Call, Expr, walk
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import SparkQuery, StagedInput
from flowsql_core.graph.specs import JoinKind, TableSpec, WindowKind
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.logical.bounded import Over, SetOperation, SetOperator, is_internal, query_calls
from flowsql_planner.logical.nodes import (
    Aggregate,
    Correlate,
    Expand,
    Filter,
    Join,
    Project,
    Rel,
    Scan,
    Sink,
    Sort,
    Union,
    Values,
    WatermarkAssigner,
    WindowTableFunction,
    inputs,
)
from flowsql_planner.logical.rewrite import refs, with_inputs
from flowsql_planner.logical.rewrite import walk as walk_plan
from flowsql_planner.spark import sql
from flowsql_planner.spark.aggregate import group_call, over_call
from flowsql_planner.spark.expression import SparkExpressions
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import ddl, spark_type

_JOINS: Final = {
    JoinKind.INNER: ("", "INNER"),
    JoinKind.LEFT: ("LEFT", ""),
    JoinKind.RIGHT: ("RIGHT", ""),
    JoinKind.FULL: ("FULL", ""),
    JoinKind.SEMI: ("LEFT", "SEMI"),
    JoinKind.ANTI: ("LEFT", "ANTI"),
}

#: Plans a relation as a local job that hands its rows on.
StagePlanner = Callable[[Rel], JobGraph]
#: Plans what comes behind an answer: the sink over a relation that reads it, and whether the answer has an order.
TailPlanner = Callable[[Sink, bool], JobGraph]
#: The rules for a plan inside of an expression.
Optimize = Callable[[Rel], Rel]


@dataclass(slots=True)
class SparkCompiler:
    """Compiles the answers of one statement; parts that several answers read are handed over once."""

    stage: StagePlanner
    tail: TailPlanner
    optimize: Optimize
    folder: str
    staged: dict[Rel, StagedInput] = field(default_factory=dict)
    subqueries: list[Span] = field(default_factory=list)
    _aliases: int = 0

    def compile(self, root: Sink, number: int) -> SparkQuery:
        """The query of one answer, and what comes behind it.

        Raises:
            NotSupportedYetError: something that neither Spark nor FlowSQL around it answers exactly.
        """
        behind: list[Project | Filter] = []
        body = root.input
        refusal: NotSupportedYetError | None = None
        while True:
            known, places = dict(self.staged), list(self.subqueries)
            try:
                text = sql.text_of(self._relation(body, ()))
                break
            except NotSupportedYetError as error:
                refusal = refusal or error
                self.staged, self.subqueries = known, places
                if not isinstance(body, Project | Filter) or not all(map(_is_local_expr, _expressions(body))):
                    raise refusal from None
                behind.append(body)
                body = body.input
        if root.table is None and not behind:
            return SparkQuery(text, body.schema)
        file = f"{self.folder}/answer{number}.parquet"
        ordered = any(isinstance(node, Sort) for node in walk_plan(body))
        rel: Rel = _answer_scan(file, body.schema)
        for node in reversed(behind):
            rel = replace(node, input=rel)
        return SparkQuery(text, body.schema, file, self.tail(replace(root, input=rel), ordered))

    # Relations

    def _relation(self, rel: Rel, outer: tuple[SqlNode, ...]) -> SqlNode:
        """A query whose columns are those of the relation, called c0, c1, ..."""
        match rel:
            case Scan() | Values() | WindowTableFunction() | Correlate() | WatermarkAssigner() | Expand():
                return self._staged(rel)
            case Filter() if is_local(rel):
                return self._staged(rel)
            case Project() | Union() if is_local(rel) and _has_no_table(rel):
                return self._staged(rel)
            case Project():
                try:
                    return self._project(rel, outer)
                except NotSupportedYetError:
                    if not is_local(rel):
                        raise
                    return self._staged(rel)
            case Filter():
                source, row = self._source(rel.input, outer)
                made = sql.select(row.all(), source)
                return made.where(row.expressions.condition(rel.condition), copy=False)
            case Aggregate():
                return self._aggregate(rel, outer)
            case Join():
                return self._join(rel, outer)
            case Union(inputs=parts):
                return self._union([self._relation(part, outer) for part in parts])
            case SetOperation():
                return self._set_operation(rel, outer)
            case Over():
                source, row = self._source(rel.input, outer)
                return sql.select(
                    [*row.all(), *(over_call(call, row.column, rel.input.schema) for call in rel.calls)], source
                )
            case Sort():
                return self._sort(rel, outer)
            case Sink():
                raise NotSupportedYetError("a sink inside of a query", rel.span)
            case _:
                assert_never(rel)

    def _staged(self, rel: Rel) -> SqlNode:
        """Rows that FlowSQL makes: a view of what it hands over."""
        if not is_local(rel):
            shown = rel.kind.value if isinstance(rel, WindowTableFunction) else type(rel).__name__
            raise NotSupportedYetError(f"{shown} over this input on Spark", getattr(rel, "span", None))
        if rel not in self.staged:
            span = getattr(rel, "span", None)
            columns = ddl(rel.schema, span)
            view = f"flowsql_input_{len(self.staged)}"
            self.staged[rel] = StagedInput(view, rel.schema, columns, self.stage(_with_moments(rel)))
        alias = self._alias()
        view_row = _Row(self, rel, alias, ())
        return sql.select(view_row.all(), sql.table(self.staged[rel].view, alias))

    def _source(self, rel: Rel, outer: tuple[SqlNode, ...]) -> tuple[SqlNode, _Row]:
        """A relation as an item of FROM, and its columns."""
        alias = self._alias()
        return sql.derived(self._relation(rel, outer), alias), _Row(self, rel, alias, outer)

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def _project(self, rel: Project, outer: tuple[SqlNode, ...]) -> SqlNode:
        alias = self._alias()
        row = _Row(self, rel.input, alias, outer)
        items = [row.expressions.make(expr) for expr in rel.exprs]
        for expr in rel.exprs:
            spark_type(expr.type, expr.span)
        return sql.select(items, sql.derived(self._relation(rel.input, outer), alias))

    def _aggregate(self, rel: Aggregate, outer: tuple[SqlNode, ...]) -> SqlNode:
        source, row = self._source(rel.input, outer)
        for index in rel.grouping:
            if isinstance(rel.input.schema[index].type, t.MapType | t.MultisetType):
                raise NotSupportedYetError("GROUP BY a map on Spark", rel.span)
        calls = [group_call(call, row.column) for call in rel.calls]
        made = sql.select([*(row.column(index) for index in rel.grouping), *calls], source)
        e = sql.exp()
        if rel.grouping_sets is not None:
            sets = [e.Tuple(expressions=[row.column(index) for index in one]) for one in rel.grouping_sets]
            made.set("group", e.Group(grouping_sets=[e.GroupingSets(expressions=sets)]))
        elif rel.grouping:
            made.set("group", e.Group(expressions=[row.column(index) for index in rel.grouping]))
        return made

    def _join(self, rel: Join, outer: tuple[SqlNode, ...]) -> SqlNode:
        left, left_row = self._source(rel.left, outer)
        right, right_row = self._source(rel.right, outer)
        width = len(rel.left.schema)

        def column(index: int) -> SqlNode:
            return left_row.column(index) if index < width else right_row.column(index - width)

        row = SparkExpressions(column, outer, self._subquery)
        items = left_row.all()
        if rel.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            items += right_row.all()
        side, kind = _JOINS[rel.kind]
        condition = sql.boolean(True) if rel.condition is None else row.make(rel.condition)
        if rel.condition is None and rel.kind is JoinKind.INNER:
            kind = "CROSS"
        join = sql.exp().Join(this=right, side=side or None, kind=kind or None)
        if kind != "CROSS":
            join.set("on", condition)
        made = sql.select(items, left)
        made.append("joins", join)
        return made

    @staticmethod
    def _union(parts: list[SqlNode]) -> SqlNode:
        made = parts[0]
        for part in parts[1:]:
            made = sql.exp().Union(this=made, expression=part, distinct=False)
        return made

    def _set_operation(self, rel: SetOperation, outer: tuple[SqlNode, ...]) -> SqlNode:
        e = sql.exp()
        kind = e.Intersect if rel.operator is SetOperator.INTERSECT else e.Except
        left, left_row = self._source(rel.left, outer)
        right, right_row = self._source(rel.right, outer)
        return kind(
            this=sql.select(left_row.all(), left), expression=sql.select(right_row.all(), right), distinct=not rel.all
        )

    def _sort(self, rel: Sort, outer: tuple[SqlNode, ...]) -> SqlNode:
        source, row = self._source(rel.input, outer)
        made = sql.select(row.all(), source)
        if rel.keys:
            keys = [sql.ordered(row.column(key.index), key.descending, key.nulls_first) for key in rel.keys]
            made = made.order_by(*keys, copy=False)
        if rel.fetch is not None:
            made = made.limit(rel.fetch, copy=False)
        return made.offset(rel.offset, copy=False) if rel.offset else made

    def _subquery(self, plan: Any, captured: Sequence[SqlNode]) -> SqlNode:
        span = getattr(plan, "span", None)
        if span is not None:
            self.subqueries.append(span)
        return self._relation(self.optimize(plan), tuple(captured))


class _Row:
    """The columns of an item of FROM."""

    def __init__(self, compiler: SparkCompiler, rel: Rel, alias: str, outer: tuple[SqlNode, ...]) -> None:
        self._alias = alias
        self._width = len(rel.schema)
        self.expressions = SparkExpressions(self.column, outer, compiler._subquery)

    def column(self, index: int) -> SqlNode:
        """One column."""
        return sql.column(self._alias, f"c{index}")

    def all(self) -> list[SqlNode]:
        """All columns in order."""
        return [self.column(index) for index in range(self._width)]


# What FlowSQL runs itself


def is_local(rel: Rel) -> bool:
    """Whether a whole relation needs no state and nothing of a query around it: FlowSQL answers it by itself."""
    return all(_is_local_node(node) for node in walk_plan(rel))


def _has_no_table(rel: Rel) -> bool:
    """Whether all rows stand in the query: Spark need not count them."""
    return not any(isinstance(node, Scan) for node in walk_plan(rel))


def _is_local_node(rel: Rel) -> bool:
    match rel:
        case Scan() | Values() | Union() | Project() | Filter() | Correlate():
            return all(map(_is_local_expr, _expressions(rel)))
        case WindowTableFunction(kind=kind):
            return kind is not WindowKind.SESSION
    return False


def _is_local_expr(expr: Expr) -> bool:
    return not any(isinstance(node, Call) and is_internal(node.function) for node in walk(expr))


def _expressions(rel: Rel) -> Iterator[Expr]:
    match rel:
        case Project(exprs=exprs):
            yield from exprs
        case Filter(condition=condition):
            yield condition
        case Correlate(collection=collection):
            yield collection


def _with_moments(rel: Rel) -> Rel:
    """Rows without a moment fall into no window: in batch mode Flink drops them before the window function."""
    children = tuple(_with_moments(child) for child in inputs(rel))
    match rel:
        case WindowTableFunction(time_index=index) if rel.input.schema[index].type.nullable:
            (source,) = children
            there = Call("IS NOT NULL", (refs(source.schema)[index],), t.BOOLEAN.as_nullable(False))
            return replace(rel, input=Filter(source, there, rel.span))

    return with_inputs(rel, children)


def _answer_scan(file: str, schema: t.Schema) -> Scan:
    """A relation that reads an answer of Spark. Columns are found by name: they are called as the file calls them."""
    columns = tuple(t.Column(f"c{index}", t.without_attribute(column.type)) for index, column in enumerate(schema))
    options = (
        ("connector", "filesystem"),
        ("path", file),
        ("format", "parquet"),
        ("parquet.utc-timezone", "true"),
    )
    table = TableSpec(("default_catalog", "default_database", "spark answer"), columns, options)
    return Scan(table, tuple(range(len(columns))), columns)


def unsupported_queries(rel: Rel) -> Iterator[Call]:
    """Queries inside of the expressions of a plan."""
    for node in walk_plan(rel):
        for expr in _expressions(node):
            yield from query_calls(expr)
        if isinstance(node, Join) and node.condition is not None:
            yield from query_calls(node.condition)
