"""Queries: WITH, SELECT, set operations, ORDER BY and LIMIT, to logical plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from flowsql_compute.functions.registry import resolve_cast
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.expr import Expr, InputRef, children, with_children
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.coerce import branch_type, mixes_dates
from flowsql_core.types.logical import ArrayType, Column, LogicalType, NullType, RowType, Schema
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.environment import Environment
from flowsql_planner.bind.expression.aggregate_calls import AggregateCollector
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.over_calls import has_over, lift_over
from flowsql_planner.bind.expression.scope import Namespace, Scope, scope_of
from flowsql_planner.bind.output_names import column_alias, unnamed
from flowsql_planner.bind.query.from_clause import Bound, bind_named, bind_relation, relation_names
from flowsql_planner.bind.query.grouping import Aggregation, Grouping, bind_grouping
from flowsql_planner.bind.query.join_hints import named_joins
from flowsql_planner.bind.query.lookup_hints import lookup_hints
from flowsql_planner.bind.query.multi_join_hints import multi_join_names
from flowsql_planner.bind.query.select_hints import checked_hints, items
from flowsql_planner.bind.query.values import bind_values, one_row
from flowsql_planner.bind.sql_text.expand_names import path_of
from flowsql_planner.logical.nodes import (
    Aggregate,
    Filter,
    Project,
    Rel,
    SetOperation,
    SetOperator,
    Sort,
    SortKey,
    Union,
)
from flowsql_planner.logical.rewrite import refs, unique_names


def bind_query(context: BindContext, query: ast.Query) -> Rel:
    """The logical plan of a query; its schema is the answer's, time attributes marked."""
    return _bind_query(Environment(context, _bind_nested), query)


def _bind_nested(env: Environment, query: ast.Query, is_view: bool = False) -> Rel:
    """A query inside another one: an order without a limit means nothing there, and goes; a view's stays."""
    known = env.context.plan_of(query)
    if known is not None:
        return known
    if not is_view and query.order_by and query.limit is None and query.offset is None:
        query = replace(query, order_by=())
    return _bind_query(env, query)


def _bind_query(env: Environment, query: ast.Query) -> Rel:
    if query.recursive:
        raise NotSupportedYetError("WITH RECURSIVE", query.span)
    env = _with_common_tables(env, query)
    offset, fetch = _row_count(query.offset, "OFFSET"), _row_count(query.limit, "LIMIT")
    if isinstance(query.body, ast.Select):
        return _bind_select(env, query.body, query.order_by, offset or 0, fetch)
    rel = _bind_body(env, query.body)
    if not query.order_by and not offset and fetch is None:
        return rel
    wanted = [_output_expr(env, item, rel.schema) for item in query.order_by]
    return _sorted(rel, wanted, query.order_by, offset or 0, fetch, query.span)


def _with_common_tables(env: Environment, query: ast.Query) -> Environment:
    """WITH: each common table sees those before it."""
    for common in query.ctes:
        rel = env.bind_query(env, common.query)
        repeated = env.context.repeated.get(id(common.query.body))
        if repeated is not None and not common.columns:
            name = next(name for i, name in enumerate(repeated) if name in repeated[:i])
            raise BindError(
                "duplicate-column",
                f"Column has duplicate column name '{name}' and no column list specified",
                common.query.span,
                f"name them: {common.name} (a, b, ...) AS (SELECT ...)",
            )
        if common.columns:
            if len(common.columns) != len(rel.schema):
                raise BindError(
                    "alias-columns",
                    "Number of columns must match number of query columns",
                    common.name.span,
                    f"the query has {len(rel.schema)} columns, the list {len(common.columns)}",
                )
            rel = Project(rel, refs(rel.schema), tuple(name.text for name in common.columns), common.span)
        env = replace(env, common_tables={**env.common_tables, common.name.text: rel})
    return env


def _bind_body(env: Environment, body: ast.QueryBody) -> Rel:
    known = env.context.plan_of(body)
    if known is not None:
        return known
    match body:
        case ast.Select():
            return _bind_select(env, body, (), 0, None)
        case ast.Values():
            return bind_values(env.context, body)
        case ast.ExplicitTable(name):
            return bind_named(env, name, (), body.span)
        case ast.SetOperation():
            return _bind_set_operation(env, body)
        case ast.Query():
            return env.bind_query(env, body)
        case _:
            assert_never(body)


# SELECT


@record
class _Item:
    """One output column: its name, and its expression over the input (with marks for aggregates)."""

    name: str
    expr: Expr
    starred: bool = False


def _named_windows(clause: tuple[ast.NamedWindow, ...]) -> dict[str, ast.WindowSpec]:
    windows: dict[str, ast.WindowSpec] = {}
    for window in clause:
        if window.name.text in windows:
            raise BindError("duplicate-window", "Duplicate window names not allowed", window.name.span)
        windows[window.name.text] = window.spec
    return windows


def _bind_select(
    env: Environment, node: ast.Select, order_by: tuple[ast.OrderItem, ...], offset: int, fetch: int | None
) -> Rel:
    windows = _named_windows(node.windows)
    hints = checked_hints(env.context, node)
    env = replace(
        env,
        state_ttl=_state_ttl_hints(hints),
        lookups=lookup_hints(hints),
        windows=windows,
        multi_join=multi_join_names(hints),
        # In streaming such hints mean nothing.
        join_hints={} if env.context.streaming else named_joins(hints),
    )
    source = _bind_from(env, node)
    if node.where is not None:
        # The one column of JOIN USING is known to the SELECT list alone; WHERE sees both sides, as in Flink.
        both_sides = Scope(source.scope.namespaces)
        condition = ExpressionBinder(env.context, both_sides, "WHERE", nested=env).condition(node.where)
        source = Bound(Filter(source.rel, condition, node.where.span), source.scope)
    collector = AggregateCollector(grouped=_names_groups(node.group_by))
    binder = ExpressionBinder(env.context, source.scope, "SELECT", collector, env, windows=windows)
    try:
        items = _select_items(binder, node.items)
    except BindError:
        _judge_groups(binder, node)
        raise
    having = None
    if node.having is not None:
        having = replace(binder, clause="HAVING").condition(node.having)
    wanted = [_order_expr(binder, item, items) for item in order_by]
    if node.qualify is not None:
        wanted.append(_qualify_condition(binder, node.qualify, items))
    if node.group_by is None and node.having is None and not collector.calls:
        rel, exprs, sort_exprs = source.rel, [item.expr for item in items], wanted
    else:
        rel, exprs, sort_exprs = _aggregate(env, node, source, binder, items, having, wanted)
    rel, lifted = lift_over(rel, [*exprs, *sort_exprs], node.span, narrow=node.qualify is not None)
    exprs, sort_exprs = lifted[: len(exprs)], lifted[len(exprs) :]
    if node.qualify is not None:
        rel = Filter(rel, sort_exprs.pop(), node.qualify.span)
    distinct = node.quantifier is ast.SetQuantifier.DISTINCT
    names = unique_names(item.name for item in items)
    written = _written_names(items)
    if len(set(written)) < len(written):
        env.context.repeated[id(node)] = written
    output = _Output(rel, exprs, names, distinct, node.span, env.context.text_of)
    return _finish(output, order_by, sort_exprs, offset, fetch)


def _qualify_condition(binder: ExpressionBinder, node: ast.Expression, items: Sequence[_Item]) -> Expr:
    """A condition on window functions, which may stand in it or under a name of the SELECT list."""
    outputs = tuple((output.name, output.expr) for output in items)
    condition = replace(binder, clause="QUALIFY", outputs=outputs).condition(node)
    if not has_over(condition):
        shown = binder.context.text_of(node.span) or "..."
        raise BindError(
            "qualify-without-window",
            f"QUALIFY expression '{shown}' must contain a window function",
            node.span,
            "a condition on the rows themselves stands in WHERE",
        )
    return condition


def _judge_groups(binder: ExpressionBinder, node: ast.Select) -> None:
    """As in Flink, a name that GROUP BY or HAVING gets wrong is told before those of the SELECT list."""
    aliases = {column_alias(item) for item in node.items}
    for part in (node.group_by, node.having):
        nodes = [] if part is None else list(part.walk())
        if any(isinstance(inner, ast.Query) for inner in nodes):
            continue
        for inner in nodes:
            if isinstance(inner, ast.ColumnRef) and ".".join(inner.path.texts) not in aliases:
                binder.bind(inner)


def _written_names(items: Sequence[_Item]) -> tuple[str, ...]:
    """Names as queries around this one see them: a star counts its own apart, what is written twice stays so."""
    names: list[str] = []
    for item in items:
        names.append(unique_names([*dict.fromkeys(names), item.name])[-1] if item.starred else item.name)
    return tuple(names)


def _bind_from(env: Environment, node: ast.Select) -> Bound:
    if node.from_ is None:
        return Bound(one_row(node.span), Scope())
    bound = bind_relation(env, node.from_)
    leaves = list(items(node.from_))
    if not env.context.repeated or len(leaves) != len(bound.scope.namespaces):
        return bound
    seen = tuple(_as_written(env, leaf, space) for leaf, space in zip(leaves, bound.scope.namespaces, strict=True))
    return Bound(bound.rel, replace(bound.scope, namespaces=seen))


def _as_written(env: Environment, leaf: ast.Relation, space: Namespace) -> Namespace:
    """A derived table whose query names two columns alike has them both under that name, so that it is ambiguous."""
    if not isinstance(leaf, ast.DerivedTable) or (leaf.alias is not None and leaf.alias.columns):
        return space
    body = leaf.query.body
    while isinstance(body, ast.SetOperation):
        body = body.left
    written = env.context.repeated.get(id(body))
    if written is None:
        return space
    columns = tuple(Column(name, column.type) for name, column in zip(written, space.columns, strict=True))
    return replace(space, columns=columns)


def _select_items(binder: ExpressionBinder, nodes: tuple[ast.SelectItem, ...]) -> list[_Item]:
    items: list[_Item] = []
    for node in nodes:
        if isinstance(node.expression, ast.Star):
            columns = _star(binder, node.expression)
            items.extend(_Item(name, expr, starred=True) for name, expr in columns)
            _note_star(binder, node, columns)
            continue
        name = column_alias(node) or unnamed(len(items))
        bound = binder.bind(node.expression)
        if _is_untyped(bound.type):
            raise BindError("illegal-null", "Illegal use of 'NULL'", node.span, "cast it: CAST(NULL AS INT)")
        items.append(_Item(name, bound))
    return items


def _is_untyped(type_: LogicalType) -> bool:
    """Whether a value is a bare NULL, or a row or list of rows with one."""
    if isinstance(type_, RowType):
        return any(_is_untyped(field.type) for field in type_.fields)
    return isinstance(type_, NullType) or (isinstance(type_, ArrayType) and _is_untyped(type_.element))


def _star(binder: ExpressionBinder, star: ast.Star) -> list[tuple[str, Expr]]:
    """Names and expressions of ``*``, ``t.*``, or ``r.*`` of a column with fields."""
    qualifier = star.qualifier
    if qualifier is None:
        return binder.scope.star(None, star.span)
    is_table = binder.scope.namespace_of(qualifier.texts) is not None
    if not is_table and binder.scope.starts_with_row(qualifier.texts):
        row = binder.bind(ast.ColumnRef(qualifier, span=qualifier.span))
        if isinstance(row.type, RowType):
            return [(field.name, binder.field(row, field.name, star.span)) for field in row.type.fields]
    return binder.scope.star(qualifier.texts, star.span)


def _note_star(binder: ExpressionBinder, node: ast.SelectItem, columns: list[tuple[str, Expr]]) -> None:
    """While a view is created: the columns that a star stands for, if each has a qualified name."""
    if binder.context.expansions is None:
        return
    written: list[ast.Node] = []
    for name, expr in columns:
        namespace = binder.scope.namespace_at(expr.index) if isinstance(expr, InputRef) else None
        if namespace is None:
            return
        names = (name,) if namespace.alias is None else (namespace.alias, name)
        written.append(ast.SelectItem(ast.ColumnRef(path_of(names, node), span=node.span), span=node.span))
    binder.context.expansions[id(node)] = tuple(written)


def _aggregate(
    env: Environment,
    node: ast.Select,
    source: Bound,
    binder: ExpressionBinder,
    items: list[_Item],
    having: Expr | None,
    wanted: list[Expr],
) -> tuple[Rel, list[Expr], list[Expr]]:
    """The aggregation below the SELECT list; select and order expressions come back over its output."""
    grouping = Grouping(())
    if node.group_by is not None:
        in_group_by = replace(binder, aggregates=None, clause="GROUP BY")
        grouping = bind_grouping(node.group_by, in_group_by.bind)
    assert binder.aggregates is not None
    building = Aggregation(source.rel, grouping, binder.aggregates, env.context.text_of)
    exprs = [building.lift(item.expr) for item in items]
    having = None if having is None else building.lift(having)
    sort_exprs = [building.lift(expr) for expr in wanted]
    names: dict[Expr, str] = {}
    for item, expr in zip(items, exprs, strict=True):
        if isinstance(expr, InputRef):
            names.setdefault(expr, item.name)
    rel = building.build(names, _aggregate_ttl(env, node), node.span, env.context.streaming)
    if having is not None:
        rel = Filter(rel, having, node.having.span if node.having is not None else None)
    return rel, exprs, sort_exprs


@record
class _Output:
    """The SELECT list over a relation."""

    rel: Rel
    exprs: list[Expr]
    names: tuple[str, ...]
    distinct: bool
    span: Span
    text_of: Callable[[Span | None], str | None]


def _finish(
    output: _Output, order_by: tuple[ast.OrderItem, ...], sort_exprs: list[Expr], offset: int, fetch: int | None
) -> Rel:
    """Project, DISTINCT, and ORDER BY with columns that only sort (dropped again above)."""
    exprs, names = list(output.exprs), list(output.names)
    place = order_by[0].span.to(order_by[-1].span) if order_by else output.span
    if output.distinct:
        rel = distinct_rows(_project(output.rel, tuple(exprs), unique_names(names), output.span), output.span)
        wanted = [_over_outputs(expr, exprs, output, item) for item, expr in zip(order_by, sort_exprs, strict=True)]
        return _sorted(rel, wanted, order_by, offset, fetch, place)
    visible = len(exprs)
    keys = []
    for item, expr in zip(order_by, sort_exprs, strict=True):
        if expr not in exprs:
            exprs.append(expr)
            names.append(f"EXPR${len(exprs) - 1}")
        keys.append(_sort_key(exprs.index(expr), item))
    rel = _project(output.rel, tuple(exprs), unique_names(names), output.span)
    if keys or offset or fetch is not None:
        rel = Sort(rel, tuple(keys), offset, fetch, place)
    if len(exprs) > visible:
        rel = Project(rel, refs(rel.schema)[:visible], output.names, output.span)
    return rel


def _over_outputs(expr: Expr, outputs: list[Expr], output: _Output, item: ast.OrderItem) -> Expr:
    """What ORDER BY asks of a SELECT DISTINCT, over its columns: there is nothing else to sort by."""
    if expr in outputs:
        return InputRef(outputs.index(expr), expr.type, expr.span)
    if isinstance(expr, InputRef):
        shown = output.text_of(item.expression.span) or "..."
        raise BindError("order-by-distinct", f"Expression '{shown}' is not in the select clause", item.span)
    return with_children(expr, tuple(_over_outputs(child, outputs, output, item) for child in children(expr)))


def _sorted(
    rel: Rel, wanted: list[Expr], order_by: tuple[ast.OrderItem, ...], offset: int, fetch: int | None, span: Span
) -> Rel:
    """A relation sorted by expressions over its columns; those that are none stand beside them meanwhile."""
    exprs: list[Expr] = list(refs(rel.schema))
    visible = len(exprs)
    exprs += [expr for place, expr in enumerate(wanted) if expr not in exprs and expr not in wanted[:place]]
    keys = tuple(_sort_key(exprs.index(expr), item) for item, expr in zip(order_by, wanted, strict=True))
    if not keys and not offset and fetch is None:
        return rel
    names = tuple(column.name for column in rel.schema)
    added = tuple(f"EXPR${place}" for place in range(visible, len(exprs)))
    made: Rel = Sort(_project(rel, tuple(exprs), unique_names((*names, *added)), span), keys, offset, fetch, span)
    return Project(made, refs(made.schema)[:visible], names, span) if added else made


def _project(rel: Rel, exprs: tuple[Expr, ...], names: tuple[str, ...], span: Span) -> Rel:
    """A projection, unless it changes neither columns nor names."""
    schema = rel.schema
    if names == tuple(column.name for column in schema) and exprs == refs(rel.schema):
        return rel
    return Project(rel, exprs, names, span)


def distinct_rows(rel: Rel, span: Span | None) -> Rel:
    """Each row once."""
    return Aggregate(rel, tuple(range(len(rel.schema))), (), rel.schema, span=span)


# ORDER BY, LIMIT


def _order_expr(binder: ExpressionBinder, item: ast.OrderItem, items: list[_Item]) -> Expr:
    """What an ORDER BY item of a SELECT sorts by: an output column by name or position, else an expression."""
    node = item.expression
    if isinstance(node, ast.NumberLiteral) and node.is_integer:
        return items[_ordinal(node, len(items))].expr
    names = [output.name for output in items]
    if isinstance(node, ast.ColumnRef) and len(node.path.parts) == 1 and names.count(node.path.last.text) > 1:
        raise BindError("ambiguous-column", f"Column '{node.path.last.text}' is ambiguous", node.span)
    outputs = tuple((output.name, output.expr) for output in items)
    return replace(binder, clause="ORDER BY", outputs=outputs).bind(node)


def _output_expr(env: Environment, item: ast.OrderItem, schema: Schema) -> Expr:
    """What an ORDER BY item over a set operation or VALUES sorts by, over the columns of the output."""
    node = item.expression
    if isinstance(node, ast.NumberLiteral) and node.is_integer:
        index = _ordinal(node, len(schema))
        return InputRef(index, schema[index].type, node.span)
    return ExpressionBinder(env.context, scope_of(schema), "ORDER BY").bind(node)


def _ordinal(node: ast.NumberLiteral, width: int) -> int:
    position = int(node.text)
    if not 1 <= position <= width:
        raise BindError("ordinal-out-of-range", "Ordinal out of range", node.span, f"there are {width} columns")
    return position - 1


def _sort_key(index: int, item: ast.OrderItem) -> SortKey:
    # NULL sorts lowest unless the query says otherwise.
    nulls_first = not item.descending if item.nulls is None else item.nulls is ast.NullOrder.FIRST
    return SortKey(index, item.descending, nulls_first)


def _row_count(node: ast.NumberLiteral | ast.Parameter | None, clause: str) -> int | None:
    if node is None:
        return None
    if isinstance(node, ast.Parameter):
        raise NotSupportedYetError("a parameter '?'", node.span)
    if not node.is_integer:
        raise BindError("bad-row-count", f"{clause} needs a whole number", node.span)
    return int(node.text)


# Set operations


def _bind_set_operation(env: Environment, node: ast.SetOperation) -> Rel:
    if node.operator is not ast.SetOperator.UNION:
        return _bind_intersect_except(env, node)
    parts = _union_operands(node)
    rels = [_bind_body(env, part) for part in parts]
    names = _same_width(rels, parts, node)
    types = [_union_type(rels, i, node) for i in range(len(names))]
    schema = tuple(Column(name, type_) for name, type_ in zip(names, types, strict=True))
    union = Union(tuple(_cast_to(rel, types, node.span) for rel in rels), schema, node.span)
    return union if node.all else distinct_rows(union, node.span)


def _bind_intersect_except(env: Environment, node: ast.SetOperation) -> Rel:
    """INTERSECT or EXCEPT."""
    rels = [_bind_body(env, node.left), _bind_body(env, node.right)]
    names = _same_width(rels, (node.left, node.right), node)
    types = [_union_type(rels, i, node) for i in range(len(names))]
    schema = tuple(Column(name, type_) for name, type_ in zip(names, types, strict=True))
    left, right = (_cast_to(rel, types, node.span) for rel in rels)
    return SetOperation(left, right, SetOperator[node.operator.name], node.all, schema, node.span)


def _same_width(rels: Sequence[Rel], parts: Sequence[ast.QueryBody], node: ast.SetOperation) -> tuple[str, ...]:
    """The column names of the first query; BindError where another one has more or fewer columns."""
    names = tuple(column.name for column in rels[0].schema)
    for rel, part in zip(rels, parts, strict=True):
        if len(rel.schema) != len(names):
            raise BindError(
                "set-operation-width",
                f"Column count mismatch in {node.operator.value}{' ALL' if node.all else ''}",
                part.span,
                f"the first query has {len(names)} columns, this one {len(rel.schema)}",
            )
    return names


def _union_operands(node: ast.SetOperation) -> list[ast.QueryBody]:
    """Operands of a chain of the same UNION [ALL], left to right."""
    parts: list[ast.QueryBody] = []
    current: ast.QueryBody = node
    while (
        isinstance(current, ast.SetOperation) and current.operator is ast.SetOperator.UNION and current.all == node.all
    ):
        parts.append(current.right)
        current = current.left
    return [current, *reversed(parts)]


def _union_type(rels: list[Rel], index: int, node: ast.SetOperation) -> LogicalType:
    types = [rel.schema[index].type for rel in rels]
    found = branch_type(types, in_order=True)
    if found is None or mixes_dates(types):
        shown = " and ".join(dict.fromkeys(str(type_.as_nullable()) for type_ in types))
        raise BindError(
            "set-operation-types",
            f"Type mismatch in column {index + 1} of {node.operator.value}{' ALL' if node.all else ''}: {shown}",
            node.span,
            "cast one of them",
        )
    return found


def _cast_to(rel: Rel, types: list[LogicalType], span: Span) -> Rel:
    """The relation with its columns in the union's types."""
    exprs: list[Expr] = []
    for ref, type_ in zip(refs(rel.schema), types, strict=True):
        same = ref.type.same(type_)
        exprs.append(ref if same else resolve_cast(ref, type_.as_nullable(ref.type.nullable), False, span))
    if all(isinstance(expr, InputRef) for expr in exprs):
        return rel
    return Project(rel, tuple(exprs), tuple(column.name for column in rel.schema), span)


# Hints


def _state_ttl_hints(hints: tuple[ast.Hint, ...]) -> dict[str, str]:
    """Table or alias -> duration text of STATE_TTL hints."""
    found: dict[str, str] = {}
    for hint in hints:
        if hint.name.text.upper() != "STATE_TTL":
            continue
        for argument in hint.arguments:
            if argument.key is None:
                raise BindError(
                    "bad-hint", "Invalid STATE_TTL hint, only support key-value options", argument.span or hint.span
                )
            try:
                parse_duration_ms(argument.value)
            except ValueError as error:
                message = f"Invalid STATE_TTL hint, '{argument.value}' of '{argument.key}' is no duration"
                raise BindError("bad-hint", message, argument.span or hint.span, str(error)) from None
            found[argument.key] = argument.value
    return found


def _aggregate_ttl(env: Environment, node: ast.Select) -> tuple[tuple[str, str], ...]:
    """``STATE_TTL`` of the aggregation: the hint names the one table of FROM."""
    if node.from_ is None:
        return ()
    return tuple(("STATE_TTL", env.state_ttl[name]) for name in relation_names(node.from_) if name in env.state_ttl)[:1]


def _names_groups(node: ast.GroupBy | None) -> bool:
    """Whether GROUP BY names at least one item: then a group is never empty."""
    if node is None:
        return False
    return any(not (isinstance(element, ast.GroupingSet) and not element.items) for element in node.elements)
