"""Optimized logical plan -> :class:`SparkJob`: local jobs that read, one Spark query an answer, local jobs that write.

Every relation is a SELECT whose columns are called c0, c1, ...; names of the query come back with the answer. A part of
the plan that needs no state and holds something without a Spark form is run by FlowSQL: before Spark sees the rows,
between two of its queries, or, at the very top of the plan, behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, assert_never

from flowsql_core.errors import InternalError, NotSupportedYetError
from flowsql_core.expr import Expr, conjunction
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import SparkQuery, StagedInput
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import (
    Aggregate,
    Apply,
    ChangelogFunction,
    Correlate,
    Expand,
    Filter,
    Join,
    Match,
    MultiJoin,
    Over,
    ProcessTableFunction,
    Project,
    Rank,
    Rel,
    Scan,
    SetOperation,
    SetOperator,
    Sink,
    Sort,
    TableAggregate,
    TemporalJoin,
    Union,
    Values,
    WatermarkAssigner,
    WindowTableFunction,
    expressions,
)
from flowsql_planner.physical.order import refuse_without_order
from flowsql_planner.physical.refusals import process_in_batch, refuse_python_in_batch
from flowsql_planner.spark import sql
from flowsql_planner.spark.aggregate import (
    check_windows,
    group_call,
    group_keys,
    over_call,
    wants_places,
)
from flowsql_planner.spark.around_spark import (
    answer_scan,
    apart_from_queries,
    are_unordered,
    has_no_table,
    is_local,
    is_local_node,
    reads_outer,
    split_condition,
    stands_in_order,
    top_sort,
    with_moments,
)
from flowsql_planner.spark.expression import SparkExpressions
from flowsql_planner.spark.flat import flat
from flowsql_planner.spark.joins import join_query
from flowsql_planner.spark.kernels import Kernels, has_kernel
from flowsql_planner.spark.lookups import lookup_as_join
from flowsql_planner.spark.own_reading import is_in_spark, own_reading, own_view
from flowsql_planner.spark.row import Row
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import ddl, is_opaque, spark_type

#: Plans a relation as a job that hands its rows on, and whether one of its nodes waits for all of its rows.
StagePlanner = Callable[[Rel, bool], JobGraph]
#: Plans what comes behind an answer: the sink over a relation that reads it.
TailPlanner = Callable[[Sink], JobGraph]
#: The rules for a plan inside of an expression.
Optimize = Callable[[Rel], Rel]

#: Of rows that Spark has.
_NO_JOB: Final = JobGraph("spark-input", (), ())


@dataclass(slots=True)
class SparkCompiler:
    """Compiles the answers of one statement; parts that several answers read are handed over once."""

    stage: StagePlanner
    tail: TailPlanner
    optimize: Optimize
    #: Scans that several answers read: Spark keeps their rows.
    shared: frozenset[Scan] = frozenset()
    staged: dict[Rel, StagedInput] = field(default_factory=dict)
    subqueries: list[Span] = field(default_factory=list)
    kernels: Kernels = field(default_factory=Kernels)
    _aliases: int = 0
    #: The sort that makes the order of a written answer: one task writes it, in order.
    _in_one: Sort | None = None

    def compile(self, root: Sink) -> SparkQuery:
        """The query of one answer, and what comes behind it.

        Raises:
            NotSupportedYetError: something that neither Spark nor FlowSQL around it answers exactly.
        """
        body, behind = self._apart(root.input)
        if root.table is not None:
            self._in_one = top_sort(body)
        text = sql.text_of(flat(self.relation(body, ())))
        if root.table is None and not behind:
            return SparkQuery(text, body.schema)
        rel: Rel = answer_scan(body.schema)
        for node in reversed(behind):
            rel = replace(node, input=rel)
        then = self.tail(replace(root, input=rel))
        return SparkQuery(text, body.schema, then, is_written=root.table is not None and not behind)

    def compile_frame(self, root: Sink) -> SparkQuery:
        """The query of an answer that stays in Spark: nothing comes behind it."""
        return SparkQuery(sql.text_of(flat(self.relation(root.input, ()))), root.input.schema)

    def _apart(self, top: Rel) -> tuple[Rel, list[Project | Filter]]:
        """The plan below the lowest of the nodes on top that Spark has no form for; these, from the top."""
        if is_local(top):
            return top, []
        chain: list[Project | Filter] = []
        node = top
        while isinstance(node, Project | Filter) and is_local_node(node):
            chain.append(node)
            node = node.input
        strange = [place for place, part in enumerate(chain) if not all(map(self._runs, expressions(part)))]
        if not strange:
            return top, []
        return chain[strange[-1]].input, chain[: strange[-1] + 1]

    def has_form(self, expr: Expr) -> bool:
        """Whether Spark answers an expression over any row exactly."""
        try:
            spark_type(expr.type, expr.span)
            SparkExpressions(lambda index: sql.column("t", f"c{index}"), (), _no_query).make(expr)
        except NotSupportedYetError:
            return False
        return True

    def _runs(self, expr: Expr) -> bool:
        """Whether an expression can stand in Spark's plan: in its own form, or as a kernel of FlowSQL."""
        return self.has_form(expr) or has_kernel(expr)

    # Relations

    def relation(self, rel: Rel, outer: tuple[SqlNode, ...]) -> SqlNode:
        """A query whose columns are those of the relation, called c0, c1, ..."""
        match rel:
            case Scan() if is_in_spark(rel):
                return self._view(rel, lambda: (rel, None))
            case Scan() | Values() | WatermarkAssigner() | Expand():
                return self._staged(rel)
            case Apply():
                raise InternalError("a query that was not decorrelated")
            case WindowTableFunction() | Correlate():
                return self._staged(rel) if is_local(rel) else self._hosted(rel, _over_this_input(rel))
            case Filter() if is_local(rel) and not self._reads_files(rel):
                return self._staged(rel)
            case Project() | Union() if is_local(rel) and has_no_table(rel):
                return self._staged(rel)
            case Project():
                return self._project(rel, outer)
            case Filter():
                return self._filter(rel, outer)
            case Aggregate():
                if refuse_python_in_batch(rel.calls):
                    return self._in_pandas(rel, rel.grouping)
                return self._aggregate(rel, outer) if rel.window is None else self._group_window(rel)
            case TableAggregate():
                refuse_python_in_batch((rel.call,))
                raise InternalError("a table aggregate without Python")
            case Join():
                return join_query(self, rel, outer)
            case TemporalJoin():
                return join_query(self, lookup_as_join(rel, self.stage), outer)
            case Union(inputs=parts):
                return self._union([self._branch(part, place, outer) for place, part in enumerate(parts)])
            case SetOperation():
                return self._set_operation(rel, outer)
            case Over():
                check_windows(rel.calls)
                if refuse_python_in_batch(rel.calls):
                    return self._in_pandas(rel, _exact_keys(rel))
                return self._over(rel, outer)
            case Sort():
                return self._sort(rel, outer)
            case ChangelogFunction(function=function):
                raise NotSupportedYetError(f"{function} on Spark", rel.span)
            case ProcessTableFunction(call=call):
                raise process_in_batch(call, rel.span)
            case Match():
                return self._by_key(rel, rel.partition)
            case MultiJoin():
                raise InternalError("a multi-way join of streaming plans in a plan for Spark")
            case Rank():
                raise InternalError("a ranking of streaming plans in a plan for Spark")
            case Sink():
                raise NotSupportedYetError("a sink inside of a query", rel.span)
            case _:
                assert_never(rel)

    def _staged(self, rel: Rel) -> SqlNode:
        """Rows that FlowSQL makes of tables: a view of what it hands over."""
        if not is_local(rel):
            raise _over_this_input(rel)
        return self._view(rel, lambda: (rel, None))

    def _reads_files(self, rel: Rel) -> bool:
        """Whether a relation is nothing but rows that Spark reads or keeps, and expressions that it has."""
        match rel:
            case Scan():
                return rel in self.shared or own_reading(rel) is not None
            case Project() | Filter():
                return self._reads_files(rel.input) and all(map(self._runs, expressions(rel)))
        return False

    def _hosted(self, rel: Rel, refusal: NotSupportedYetError) -> SqlNode:
        """Rows that FlowSQL makes of an answer of Spark.

        Raises:
            NotSupportedYetError: ``refusal``, where the rows hang on a row around them, or the node has state.
        """
        chain: list[Any] = [rel]
        if not is_local_node(rel):
            raise refusal
        body: Rel = chain[-1].input
        while (
            isinstance(body, Project | Filter) and is_local_node(body) and not all(map(self._runs, expressions(body)))
        ):
            chain.append(body)
            body = body.input
        if reads_outer(body):
            raise refusal
        if isinstance(chain[-1], Filter):
            # What Spark answers itself stands in front: functions see the rows that are left.
            plain, strange = map(conjunction, split_condition(chain[-1].condition, self.has_form))
            if plain is not None and strange is not None:
                body = Filter(body, plain, chain[-1].span)
                chain[-1] = replace(chain[-1], condition=strange)

        def made() -> tuple[Rel, SparkQuery]:
            source = self._between(body)
            node: Rel = answer_scan(body.schema)
            for part in reversed(chain):
                node = replace(part, input=node)
            return node, source

        return self._view(rel, made)

    def _between(self, body: Rel) -> SparkQuery:
        """A query whose answer FlowSQL takes further."""
        return SparkQuery(sql.text_of(flat(self.relation(body, ()))), body.schema)

    def _view(
        self,
        rel: Rel,
        make: Callable[[], tuple[Rel, SparkQuery | None]],
        keys: tuple[int, ...] | None = None,
        placed: bool = False,
    ) -> SqlNode:
        """The view of what FlowSQL hands over for a relation, made once: the plan of the job, and what it reads."""
        if rel not in self.staged:
            span = getattr(rel, "span", None)
            columns = ddl(rel.schema, span)
            plan, source = make()
            own = own_reading(rel) if isinstance(rel, Scan) else None
            in_spark = isinstance(rel, Scan) and is_in_spark(rel)
            job = _NO_JOB if in_spark else self.stage(with_moments(plan), keys is not None)
            self.staged[rel] = StagedInput(
                f"flowsql_input_{len(self.staged)}" if own is None else own_view(own, columns),
                rel.schema,
                columns,
                job,
                source=source,
                keys=keys,
                placed=placed,
                own=own,
                shared=isinstance(rel, Scan) and rel in self.shared,
            )
        alias = self._alias()
        row = Row(rel.schema, alias, (), self.subquery)
        return sql.select(row.all(), sql.table(self.staged[rel].view, alias))

    def source(self, rel: Rel, outer: tuple[SqlNode, ...]) -> tuple[SqlNode, Row]:
        """A relation as an item of FROM, and its columns."""
        alias = self._alias()
        return sql.derived(self.relation(rel, outer), alias), Row(rel.schema, alias, outer, self.subquery)

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def _project(self, rel: Project, outer: tuple[SqlNode, ...]) -> SqlNode:
        plain = all(map(self.has_form, rel.exprs))
        if is_local(rel) and not plain and not self._reads_files(rel):
            return self._staged(rel)
        alias = self._alias()
        row = Row(rel.input.schema, alias, outer, self.subquery)
        if not plain and not outer and all(map(self._runs, rel.exprs)):
            items = [self._item(expr, row) for expr in rel.exprs]
            return sql.select(items, sql.derived(self.relation(rel.input, outer), alias))
        known, places = dict(self.staged), list(self.subqueries)
        try:
            items = [row.expressions.make(expr) for expr in rel.exprs]
            for expr in rel.exprs:
                spark_type(expr.type, expr.span)
        except NotSupportedYetError as refusal:
            self.staged, self.subqueries = known, places
            return self._elsewhere(rel, outer, refusal)
        return sql.select(items, sql.derived(self.relation(rel.input, outer), alias))

    def _item(self, expr: Expr, row: Row) -> SqlNode:
        """An expression of which :meth:`_runs` is true."""
        return row.expressions.make(expr) if self.has_form(expr) else self.kernels.call(expr, row.column, row.schema)

    def _elsewhere(self, rel: Project | Filter, outer: tuple[SqlNode, ...], refusal: NotSupportedYetError) -> SqlNode:
        """A node that Spark has no form for, by FlowSQL; the queries in it are asked below."""
        apart = apart_from_queries(rel)
        if apart is None:
            return self._hosted(rel, refusal)
        if not is_local_node(apart) or all(map(self.has_form, expressions(apart))):
            raise refusal
        kernels = not outer and all(map(self._runs, expressions(apart)))
        made = self.relation(apart, outer) if kernels else self._hosted(apart, refusal)
        if isinstance(rel, Project):
            return made
        alias = self._alias()
        row = Row(rel.schema, alias, outer, self.subquery)
        return sql.select(row.all(), sql.derived(made, alias))

    def _filter(self, rel: Filter, outer: tuple[SqlNode, ...]) -> SqlNode:
        plain, strange = split_condition(rel.condition, self.has_form)
        if strange and not outer and all(map(has_kernel, strange)):
            return self._filter_by_kernels(rel, conjunction(plain), strange)
        if strange:
            below, on = conjunction(plain), conjunction(strange)
            assert on is not None
            body = rel.input if below is None else Filter(rel.input, below, rel.span)
            return self._hosted(Filter(body, on, rel.span), _refusal_of(strange))
        alias = self._alias()
        row = Row(rel.input.schema, alias, outer, self.subquery)
        known, places = dict(self.staged), list(self.subqueries)
        try:
            condition = row.expressions.condition(rel.condition)
        except NotSupportedYetError as refusal:
            self.staged, self.subqueries = known, places
            return self._elsewhere(rel, outer, refusal)
        source = sql.derived(self.relation(rel.input, outer), alias)
        return sql.select(row.all(), source).where(condition, copy=False)

    def _filter_by_kernels(self, rel: Filter, plain: Expr | None, strange: Sequence[Expr]) -> SqlNode:
        """What Spark answers itself stands in front: kernels see the rows that are left."""
        body = rel.input if plain is None else Filter(rel.input, plain, rel.span)
        source, row = self.source(body, ())
        made = sql.select(row.all(), source)
        for part in strange:
            made = made.where(self.kernels.call(part, row.column, row.schema), copy=False)
        return made

    def _aggregate(self, rel: Aggregate, outer: tuple[SqlNode, ...]) -> SqlNode:
        for index in rel.grouping:
            type_ = rel.input.schema[index].type
            if isinstance(type_, t.MapType) or is_opaque(type_):
                raise NotSupportedYetError(f"GROUP BY {type_.as_nullable()} on Spark", rel.span)
        alias = self._alias()
        row = Row(rel.input.schema, alias, outer, self.subquery)
        placed = stands_in_order(rel.input) and wants_places(rel.calls)
        place = sql.column(alias, f"c{len(rel.input.schema)}") if placed else None
        try:
            calls = [group_call(call, row.column, place) for call in rel.calls]
        except NotSupportedYetError as refusal:
            return self._hosted_aggregate(rel, refusal)
        body = self._with_places(rel.input) if placed else self.relation(rel.input, outer)
        source = sql.derived(body, alias)
        keys = group_keys(rel.grouping, rel.input.schema, row.column)
        made = sql.select([*(keys[index][1].copy() for index in rel.grouping), *calls], source)
        e = sql.exp()
        if rel.grouping_sets is not None:
            sets = [
                e.Tuple(expressions=[node.copy() for index in one for node in keys[index][0]])
                for one in rel.grouping_sets
            ]
            made.set("group", e.Group(grouping_sets=[e.GroupingSets(expressions=sets)]))
        elif rel.grouping:
            made.set("group", e.Group(expressions=[node for nodes, _ in keys.values() for node in nodes]))
        sql.mark_aggregate(made)
        return made

    def _over(self, rel: Over, outer: tuple[SqlNode, ...]) -> SqlNode:
        schema = rel.input.schema
        try:
            for call in rel.calls:
                over_call(call, lambda index: sql.column("t", f"c{index}"), schema)
        except NotSupportedYetError:
            # Rows that sort alike stand in no order behind Spark: only a table has one that is known.
            if outer or not (stands_in_order(rel.input) or all(call.order for call in rel.calls)):
                raise
            return self._by_key(rel, _exact_keys(rel), placed=stands_in_order(rel.input))
        source, row = self.source(rel.input, outer)
        return sql.select([*row.all(), *(over_call(call, row.column, schema) for call in rel.calls)], source)

    def _with_places(self, rel: Rel) -> SqlNode:
        """Rows that FlowSQL makes, and behind them numbers that grow in their order."""
        made = self._staged(rel)
        # Spark cuts and orders files in its own way.
        self.staged[rel] = replace(self.staged[rel], own=None)
        number = sql.function("MONOTONICALLY_INCREASING_ID")
        return made.select(sql.exp().alias_(number, f"c{len(rel.schema)}", copy=False), copy=False)

    def _hosted_aggregate(self, rel: Aggregate, refusal: NotSupportedYetError) -> SqlNode:
        """An aggregate that Spark has not, by FlowSQL.

        Raises:
            NotSupportedYetError: ``refusal``, where the answer hangs on the order of the rows (Flink sorts them by the
                groups, and rows of one group then stand in no order that can be told), or on a row around them.
        """
        placed = not are_unordered(rel.calls)
        if (placed and not stands_in_order(rel.input)) or rel.grouping_sets is not None:
            raise refusal
        if any(call.function.endswith("_SAMP") and not call.args[0].type.nullable for call in rel.calls):
            # Of one row it is a NULL that may not be one: -1 in Flink.
            raise refusal
        found = self._by_key(rel, rel.grouping, placed=placed)
        if rel.grouping:
            return found
        # Of no rows there is one answer: nothing was counted.
        e = sql.exp()
        one, alias = self._alias(), self._alias()
        row = Row(rel.schema, alias, (), self.subquery)
        zero = sql.cast(sql.number(0), "BIGINT")
        items = [
            sql.function("COALESCE", row.column(index), zero.copy()) if call.function == "COUNT" else row.column(index)
            for index, call in enumerate(rel.calls)
        ]
        single = sql.derived(sql.select([sql.number(1)], None), one)
        join = e.Join(this=sql.derived(found, alias), side="LEFT", on=sql.boolean(True))
        answer = sql.select(items, single)
        answer.append("joins", join)
        return answer

    def _group_window(self, rel: Aggregate) -> SqlNode:
        """GROUP BY of a legacy group window, by FlowSQL."""
        placed = not are_unordered(rel.calls)
        if placed and not stands_in_order(rel.input):
            raise NotSupportedYetError("aggregates that hang on the order of the rows of a window, on Spark", rel.span)
        return self._by_key(rel, rel.grouping, placed=placed)

    def _in_pandas(self, rel: Aggregate | Over, keys: tuple[int, ...]) -> SqlNode:
        """Functions of pandas over groups or windows, by FlowSQL. Flink, too, sorts rows of a group by nothing else."""
        if isinstance(rel, Aggregate) and rel.grouping_sets is not None:
            raise NotSupportedYetError("functions of pandas with GROUPING SETS on Spark", rel.span)
        return self._by_key(rel, keys, placed=stands_in_order(rel.input))

    def _by_key(self, rel: Aggregate | Match | Over, keys: tuple[int, ...], placed: bool = False) -> SqlNode:
        """A node with state, by FlowSQL in tasks that get all rows of a key; without keys there is one task.

        Args:
            placed: the rows of a task come in the order in which FlowSQL made them.

        Raises:
            NotSupportedYetError: the rows hang on a row around them.
        """
        types = [rel.input.schema[index].type for index in keys]
        if any(t.is_nested(type_) or is_opaque(type_) for type_ in types) or reads_outer(rel):
            raise _over_this_input(rel)

        def made() -> tuple[Rel, SparkQuery]:
            node = self._with_places(rel.input) if placed else self.relation(rel.input, ())
            source = SparkQuery(sql.text_of(flat(node)), rel.input.schema)
            return replace(rel, input=answer_scan(rel.input.schema)), source

        return self._view(rel, made, keys, placed)

    def _branch(self, part: Rel, place: int, outer: tuple[SqlNode, ...]) -> SqlNode:
        """One input of a union, which has the names of the first.

        Of two sorted ones with columns of one table and the same names Spark makes a plan that it then refuses.
        """
        if not place or not isinstance(part, Sort):
            return self.relation(part, outer)
        source, row = self.source(part, outer)
        items = [sql.exp().alias_(column, f"u{place}_{index}", copy=False) for index, column in enumerate(row.all())]
        return sql.exp().select(*items, copy=False).from_(source, copy=False)

    @staticmethod
    def _union(parts: list[SqlNode]) -> SqlNode:
        made = parts[0]
        for part in parts[1:]:
            made = sql.exp().Union(this=made, expression=part, distinct=False)
        return made

    def _set_operation(self, rel: SetOperation, outer: tuple[SqlNode, ...]) -> SqlNode:
        e = sql.exp()
        if any(isinstance(column.type, t.ApproximateType) for column in rel.schema):
            # NaN is in no set for Flink, and in one for Spark; zeros differ, too.
            raise NotSupportedYetError(f"{rel.construct} of FLOAT or DOUBLE on Spark", rel.span)
        for column in rel.schema:
            if is_opaque(column.type):
                raise NotSupportedYetError(f"{rel.construct} of {column.type.as_nullable()} on Spark", rel.span)
        kind = e.Intersect if rel.operator is SetOperator.INTERSECT else e.Except
        left, left_row = self.source(rel.left, outer)
        right, right_row = self.source(rel.right, outer)
        return kind(
            this=sql.select(left_row.all(), left), expression=sql.select(right_row.all(), right), distinct=not rel.all
        )

    def _sort(self, rel: Sort, outer: tuple[SqlNode, ...]) -> SqlNode:
        source, row = self.source(rel.input, outer)
        made = sql.select(row.all(), source)
        if rel is self._in_one:
            made = sql.in_one_task(made)
        if rel.keys:
            refuse_without_order(rel.keys, rel.schema, rel.span)
            keys = []
            for key in rel.keys:
                if is_opaque(rel.schema[key.index].type):
                    type_ = rel.schema[key.index].type.as_nullable()
                    raise NotSupportedYetError(f"ORDER BY {type_} on Spark", rel.span)
                keys.append(sql.ordered(row.column(key.index), key.descending, key.nulls_first))
                if isinstance(rel.schema[key.index].type, t.ApproximateType):
                    # For Spark both zeros are equal; in Flink -0.0 is less.
                    zero = sql.is_negative_zero(row.column(key.index))
                    keys.append(sql.ordered(zero, not key.descending, key.nulls_first))
            made = made.sort_by(*keys, copy=False) if rel is self._in_one else made.order_by(*keys, copy=False)
        if rel.fetch is not None:
            made = made.limit(rel.fetch, copy=False)
        return made.offset(rel.offset, copy=False) if rel.offset else made

    def subquery(self, plan: Any, captured: Sequence[SqlNode]) -> SqlNode:
        """A query inside of an expression, over columns of the row around it."""
        span = getattr(plan, "span", None)
        if span is not None:
            self.subqueries.append(span)
        return self.relation(self.optimize(plan), tuple(captured))


def _exact_keys(rel: Over) -> tuple[int, ...]:
    """The columns that all windows are partitioned by; by hash -0.0 and NaN may go another way than the operator has
    them."""
    keys = frozenset.intersection(*(frozenset(call.partition) for call in rel.calls))
    return tuple(key for key in sorted(keys) if not isinstance(rel.input.schema[key].type, t.ApproximateType))


def _no_query(plan: Any, captured: Sequence[SqlNode]) -> SqlNode:
    raise NotSupportedYetError("a query inside of an expression on Spark", getattr(plan, "span", None))


def _over_this_input(rel: Rel) -> NotSupportedYetError:
    shown = rel.kind.value if isinstance(rel, WindowTableFunction) else type(rel).__name__
    return NotSupportedYetError(f"{shown} over this input on Spark", getattr(rel, "span", None))


def _refusal_of(exprs: Sequence[Expr]) -> NotSupportedYetError:
    """Why Spark has no form for the first of some expressions."""
    try:
        SparkExpressions(lambda index: sql.column("t", f"c{index}"), (), _no_query).make(exprs[0])
    except NotSupportedYetError as refusal:
        return refusal
    return NotSupportedYetError("this expression on Spark", exprs[0].span)
