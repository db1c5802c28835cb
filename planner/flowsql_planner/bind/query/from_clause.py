"""FROM: tables, common tables, views, derived tables, window functions and joins, each with the scope it opens."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, assert_never

from flowsql_compute.functions.registry import resolve_call
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.expr import Call, Expr, InputRef, Literal, conjunction, input_refs, remap_inputs, transform
from flowsql_core.graph.specs import JoinKind
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import BooleanType, Column, Schema
from flowsql_grammar import ast
from flowsql_planner.bind.environment import Environment, OuterRow
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Merged, Namespace, Scope
from flowsql_planner.bind.named_table import alias_of, everywhere, file_table
from flowsql_planner.bind.query.changelog_function import as_changelog_call, bind_changelog
from flowsql_planner.bind.query.multi_join_hints import MULTI_JOIN
from flowsql_planner.bind.query.period import bind_period, time_travel
from flowsql_planner.bind.query.source_function import bind_source_function
from flowsql_planner.bind.query.table import bind_resolved, find_table, hinted_options
from flowsql_planner.bind.query.unnest import Unnested, bind_table_call, bind_unnest
from flowsql_planner.bind.query.window_function import as_window_call, bind_window
from flowsql_planner.bind.sql_text.expand_names import path_of
from flowsql_planner.catalog.schema import Options
from flowsql_planner.logical.nodes import Apply, Filter, Join, Project, Rel, TemporalJoin
from flowsql_planner.logical.rewrite import refs, unique_names

if TYPE_CHECKING:
    from flowsql_planner.bind.expression.user_calls import ProcessCallee

Hints = tuple[tuple[str, str], ...]

_KINDS = {
    ast.JoinKind.INNER: JoinKind.INNER,
    ast.JoinKind.CROSS: JoinKind.INNER,
    ast.JoinKind.COMMA: JoinKind.INNER,
    ast.JoinKind.LEFT: JoinKind.LEFT,
    ast.JoinKind.RIGHT: JoinKind.RIGHT,
    ast.JoinKind.FULL: JoinKind.FULL,
}


@record
class Bound:
    """A relation with its scope."""

    rel: Rel
    scope: Scope


def bind_relation(env: Environment, node: ast.Relation) -> Bound:
    """One item of FROM."""
    match node:
        case ast.TableRef():
            return _bind_table_ref(env, node)
        case ast.DerivedTable(query, lateral, alias):
            del lateral  # Without an item in front there is nothing to be lateral to.
            return _derived(env.bind_query(env, query), query, alias)
        case ast.TableFunction(call, lateral, alias):
            rows = _table_rows(env, node, Scope())
            if rows is not None:
                return _bind_unnest(rows)
            source = None if lateral else bind_source_function(env.context, call)
            if source is not None:
                return _aliased(source, alias)
            return _aliased(_bind_table_function(env, call, lateral), alias)
        case ast.Join():
            return _bind_join(env, node)
        case ast.Unnest():
            return _bind_unnest(bind_unnest(env.context, node, Scope()))
        case ast.MatchRecognize():
            # Loaded by the queries that have it only.
            from flowsql_planner.bind.query.match_recognize import bind_match

            matched = bind_relation(env, node.input)
            return _aliased(bind_match(env.context, node, matched.rel, matched.scope), node.alias)
        case ast.Pivot():
            raise NotSupportedYetError("PIVOT", node.span)
        case ast.Unpivot():
            raise NotSupportedYetError("UNPIVOT", node.span)
        case ast.Sample():
            return _bind_sample(env, node)
        case _:
            assert_never(node)


def _bind_sample(env: Environment, node: ast.Sample) -> Bound:
    """All rows or none: Flink has no plan for a part of them."""
    if node.method is ast.SampleMethod.SUBSTITUTE:
        raise NotSupportedYetError("TABLESAMPLE SUBSTITUTE", node.span)
    percent = Decimal(node.amount)
    if not 0 <= percent <= 100:
        raise BindError("bad-sample", "TABLESAMPLE percentage must be between 0 and 100, inclusive", node.span)
    source = bind_relation(env, node.input)
    if percent == 100:
        return source
    if percent:
        raise NotSupportedYetError("TABLESAMPLE of a part of the rows", node.span, "WHERE RAND() < 0.1 takes a tenth")
    return Bound(Filter(source.rel, Literal(False, BooleanType(nullable=False)), node.span), source.scope)


def _derived(rel: Rel, query: ast.Query, alias: ast.TableAlias | None) -> Bound:
    """A query in FROM, under its alias."""
    if alias is not None and len(rel.schema) == 1 and not alias.columns and _is_values(query):
        # Flink: the alias of VALUES names its only column too.
        alias = replace(alias, columns=(alias.name,))
    return _aliased(rel, alias)


def bind_named(
    env: Environment, name: ast.Identifier, hints: tuple[ast.Hint, ...], span: Span, moment: Options = ()
) -> Rel:
    """A common table, or a table or view of the catalogs.

    ``moment``: options of FOR SYSTEM_TIME AS OF.
    """
    common = _common_table(env, name)
    if common is not None:
        return common
    if isinstance(name, ast.FileName):
        found = file_table(env.context, name, hinted_options(env.context, hints))
        if env.context.asked is not None:
            env.context.asked.is_volatile = True
    else:
        found = find_table(env.context, name)
    if env.context.expansions is not None:
        whole = everywhere(name) if isinstance(name, ast.FileName) else path_of(found.path.parts, name)
        env.context.expansions[id(name)] = (whole,)
    return bind_resolved(env.context, found, hints, span, env.bind_view, moment)


def _common_table(env: Environment, name: ast.Identifier) -> Rel | None:
    if len(name.parts) > 1 or isinstance(name, ast.FileName):
        return None
    return env.common_tables.get(name.last.text)


def _bind_table_ref(env: Environment, node: ast.TableRef, *, joined: bool = False) -> Bound:
    """``joined``: it is the right side of a join, where the time of FOR SYSTEM_TIME AS OF may be that of a left row."""
    if node.extended:
        raise NotSupportedYetError("EXTEND", node.span)
    moment: Options = ()
    if node.period is not None and not joined:
        if not isinstance(node.name, ast.FileName) and _common_table(env, node.name) is not None:
            raise time_travel(node)
        # Loaded by the queries that have it only.
        from flowsql_planner.bind.query.moment import bind_moment

        moment = bind_moment(env.context, node)
    rel = bind_named(env, node.name, node.hints, node.name.span, moment)
    if node.alias is not None:
        return _aliased(rel, node.alias)
    called = alias_of(node.name) if isinstance(node.name, ast.FileName) else node.name.last.text
    if called is None:
        return _aliased(rel, None)
    if env.context.expansions is not None:
        # An unqualified name goes on to be what columns are qualified with.
        whole = env.context.expansions.get(id(node.name), (node.name,))[0]
        alias = ast.TableAlias(ast.Name(called, span=node.span), span=node.span)
        assert isinstance(whole, ast.Identifier)
        env.context.expansions[id(node)] = (ast.TableRef(whole, node.hints, node.period, alias, span=node.span),)
    unnamed = isinstance(node.name, ast.FileName) or _common_table(env, node.name) is not None
    path = () if unnamed else env.context.qualify(node.name).parts
    return Bound(rel, Scope((Namespace(called, rel.schema, 0, path),)))


def _is_values(query: ast.Query) -> bool:
    return isinstance(query.body, ast.Values) and not query.ctes and not query.order_by and query.limit is None


def _aliased(rel: Rel, alias: ast.TableAlias | None) -> Bound:
    """A relation under another name, its columns renamed where the alias lists names."""
    if alias is None:
        return Bound(rel, Scope((Namespace(None, rel.schema),)))
    schema = rel.schema
    if alias.columns:
        if len(alias.columns) != len(schema):
            raise BindError(
                "alias-columns",
                "List of column aliases must have same degree as table; table has "
                f"{len(schema)} columns ({', '.join(repr(c.name) for c in schema)}), whereas alias list has "
                f"{len(alias.columns)} columns",
                alias.span,
            )
        names = tuple(name.text for name in alias.columns)
        repeated = next((name for i, name in enumerate(alias.columns) if name.text in names[:i]), None)
        if repeated is not None:
            raise BindError("duplicate-alias", f"Duplicate name '{repeated}' in column alias list", repeated.span)
        if names != tuple(column.name for column in schema):
            rel = Project(rel, refs(rel.schema), names, alias.span)
            schema = rel.schema
    return Bound(rel, Scope((Namespace(alias.name.text, schema),)))


def _no_table_function(call: ast.FunctionCall) -> BindError | NotSupportedYetError:
    # Loaded after a mistake only.
    from flowsql_compute.functions.flink_names import FLINK_FUNCTIONS

    if call.name.last.text.upper() in FLINK_FUNCTIONS:
        return NotSupportedYetError(f"the table function {call.name}", call.span)
    return BindError("function-not-found", f"No match found for function signature {call.name.last.text}", call.span)


def _bind_table_function(env: Environment, call: ast.FunctionCall, lateral: bool) -> Rel:
    changelog = as_changelog_call(call)
    if changelog is not None:
        return bind_changelog(env.context, changelog, _table_argument(env, changelog.data))
    window = as_window_call(call)
    if window is None:
        callee = _process_callee(env, call)
        if callee is None:
            raise _no_table_function(call)
        if lateral:
            raise BindError(
                "function-kind",
                f"{call.name.last.text} is a process table function: it reads tables, not the row in front of it.",
                call.span,
                "FROM f(input => TABLE t), without LATERAL",
            )
        # Loaded by the queries that have it only.
        from flowsql_planner.bind.query.process_function import bind_process

        return bind_process(env.context, callee, call, lambda table: _table_argument(env, table))
    return bind_window(env.context, window, _table_argument(env, window.data))


def _process_callee(env: Environment, call: ast.FunctionCall) -> ProcessCallee | None:
    user = ExpressionBinder(env.context, Scope(), "FROM").user_function(call)
    if user is None:
        return None
    # Loaded by the queries that call functions of users only.
    from flowsql_planner.bind.expression.user_calls import process_callee, refuse_clauses

    found = process_callee(env.context.catalogs.functions, user, call)
    if found is not None:
        refuse_clauses(call)
    return found


def _table_argument(env: Environment, data: ast.TableArgument) -> Rel:
    if isinstance(data.table, ast.Query):
        return env.bind_query(env, data.table)
    return bind_named(env, data.table, (), data.table.span)


def _table_rows(env: Environment, node: ast.TableFunction, scope: Scope) -> Unnested | None:
    """The rows of a user's table function; None for the functions of windows and for those that nobody made."""
    if not node.lateral and (as_window_call(node.call) is not None or as_changelog_call(node.call) is not None):
        return None
    if _process_callee(env, node.call) is not None:
        return None
    return bind_table_call(env.context, node, scope)


def _bind_unnest(unnested: Unnested) -> Bound:
    """UNNEST of a constant."""
    return Bound(unnested.alone(), Scope((unnested.namespace(),)))


def _bind_correlate(env: Environment, node: ast.Join, left: Bound, unnested: Unnested) -> Bound:
    """Rows beside the elements of a collection in them."""
    kind = _KINDS[node.kind]
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        raise NotSupportedYetError(f"{'NATURAL ' * node.natural}{node.kind.value} JOIN UNNEST", node.span)
    width = left.scope.width
    outer = kind is JoinKind.LEFT
    right = Scope((unnested.namespace(),))
    _refuse_equal_aliases(left.scope, right, unnested.node.span)
    condition, pairs = _condition(env, node, left.scope, right, _beside(left.scope, right, width), width)
    if isinstance(condition, Literal) and condition.value is True:
        condition = None
    inside = None
    if outer and condition is not None:
        if any(index < width for index in input_refs(condition)):
            raise NotSupportedYetError("LEFT JOIN UNNEST with a condition on columns of the left side", node.span)
        inside, condition = remap_inputs(condition, lambda index: index - width), None
    rel: Rel = unnested.beside(left.rel, outer, inside)
    if condition is not None:
        rel = Filter(rel, condition, node.span)
    added = unnested.namespace(width)
    namespaces = (*left.scope.namespaces, added.as_nullable() if outer else added)
    return Bound(rel, Scope(namespaces, _merged(node, pairs, kind, rel.schema, left.scope.merged)))


def _bind_join(env: Environment, node: ast.Join) -> Bound:
    if (
        node.kind is ast.JoinKind.COMMA
        and isinstance(node.right, ast.Join)
        and isinstance(node.right.right, ast.Unnest)
    ):
        # In a, b CROSS JOIN UNNEST(a.x) the collection may be of either.
        chain = node.right
        return _bind_join(env, replace(chain, left=replace(node, right=chain.left)))
    left = bind_relation(env, node.left)
    if isinstance(node.right, ast.Unnest):
        unnested = bind_unnest(env.context, node.right, left.scope)
        if not unnested.is_constant or node.kind is ast.JoinKind.LEFT:
            return _bind_correlate(env, node, left, unnested)
        right = _bind_unnest(unnested)
    elif isinstance(node.right, ast.TableFunction) and (rows := _table_rows(env, node.right, left.scope)) is not None:
        return _bind_correlate(env, node, left, rows)
    elif isinstance(node.right, ast.DerivedTable) and node.right.lateral:
        return _bind_lateral(env, node, node.right, left)
    elif isinstance(node.right, ast.TableRef):
        right = _bind_table_ref(env, node.right, joined=True)
    else:
        right = bind_relation(env, node.right)
    _refuse_equal_aliases(left.scope, right.scope, node.right.span)
    kind = _KINDS[node.kind]
    width = left.scope.width
    left_nullable = kind in (JoinKind.RIGHT, JoinKind.FULL)
    right_nullable = kind in (JoinKind.LEFT, JoinKind.FULL)
    inner = _beside(left.scope, right.scope, width)
    condition, pairs = _condition(env, node, left.scope, right.scope, inner, width)
    outer = Scope(
        (
            *(n.as_nullable() if left_nullable else n for n in left.scope.namespaces),
            *((n.as_nullable() if right_nullable else n).shifted(width) for n in right.scope.namespaces),
        ),
    )
    schema = _join_schema(left.rel.schema, right.rel.schema, left_nullable, right_nullable)
    merged = _merged(node, pairs, kind, schema, inner.merged)
    ttl = _state_ttl(env, node)
    hints = (*_join_hint(env, node), *ttl, *_multi_join(env, node))
    joined: Rel = Join(left.rel, right.rel, kind, condition, schema, hints, node.span)
    if isinstance(node.right, ast.TableRef) and node.right.period is not None:
        time = bind_period(env.context, node.right.period, left.scope, node.right, kind)
        version_time = time.version_time(right.rel)
        named = (env.lookups[name] for name in relation_names(node.right) if name in env.lookups)
        hints = (*ttl, *next(named, ()))
        joined = TemporalJoin(left.rel, right.rel, kind, condition, time.period, version_time, schema, hints, node.span)
    return Bound(joined, Scope(outer.namespaces, merged))


def _bind_lateral(env: Environment, node: ast.Join, item: ast.DerivedTable, left: Bound) -> Bound:
    """Rows beside the rows of a query that may read them. The condition is asked inside of the query, as in Flink."""
    kind = _KINDS[node.kind]
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        raise BindError(
            "lateral-join",
            f"{node.kind.value} JOIN LATERAL is not possible: a query that reads the left row has none without it",
            item.span,
            "CROSS JOIN LATERAL or LEFT JOIN LATERAL",
        )
    row = OuterRow(ExpressionBinder(env.context, left.scope, "LATERAL", nested=env))
    right = _derived(env.bind_query(env.around(row), item.query), item.query, item.alias)
    _refuse_equal_aliases(left.scope, right.scope, item.span)
    width = left.scope.width
    condition, pairs = _condition(env, node, left.scope, right.scope, _beside(left.scope, right.scope, width), width)
    rel = right.rel
    if condition is not None and not (isinstance(condition, Literal) and condition.value is True):

        def moved(expr: Expr) -> Expr:
            if not isinstance(expr, InputRef):
                return expr
            return row.capture(expr) if expr.index < width else replace(expr, index=expr.index - width)

        rel = Filter(rel, transform(condition, moved), node.span)
    outer = kind is JoinKind.LEFT
    schema = _join_schema(left.rel.schema, rel.schema, False, outer)
    namespaces = ((n.as_nullable() if outer else n).shifted(width) for n in right.scope.namespaces)
    made = Apply(left.rel, rel, kind, tuple(row.captured), None, schema, item.span)
    merged = _merged(node, pairs, kind, schema, left.scope.merged)
    return Bound(made, Scope((*left.scope.namespaces, *namespaces), merged))


def _beside(left: Scope, right: Scope, width: int) -> Scope:
    moved = tuple(
        Merged(m.name, remap_inputs(m.expr, lambda i: i + width), frozenset(i + width for i in m.covers))
        for m in right.merged
    )
    return Scope((*left.namespaces, *(n.shifted(width) for n in right.namespaces)), (*left.merged, *moved))


def _condition(
    env: Environment, node: ast.Join, left: Scope, right: Scope, both: Scope, width: int
) -> tuple[Expr | None, list[tuple[str, Expr, Expr]]]:
    """The join condition, and for USING and NATURAL the pairs of columns that become one."""
    if node.on is not None:
        plain = Scope(both.namespaces, both.merged)
        return ExpressionBinder(env.context, plain, "ON", nested=env).condition(node.on), []
    if node.natural:
        names = [(name, node.span) for name in dict.fromkeys(left.column_names()) if name in right.column_names()]
    else:
        names = [(name.text, name.span) for name in node.using]
    pairs, equalities = [], []
    for name, span in names:
        a = left.resolve_column(name, span)
        b = remap_inputs(right.resolve_column(name, span), lambda i: i + width)
        pairs.append((name, a, b))
        equalities.append(resolve_call("=", (a, b), (), span))
    if not names and node.kind not in (ast.JoinKind.CROSS, ast.JoinKind.COMMA) and not node.natural:
        raise BindError(
            "join-without-condition",
            "INNER, LEFT, RIGHT or FULL join requires a condition (NATURAL keyword or ON or USING clause)",
            node.span,
        )
    return conjunction(tuple(equalities)), pairs


def _merged(
    node: ast.Join, pairs: list[tuple[str, Expr, Expr]], kind: JoinKind, schema: Schema, below: tuple[Merged, ...]
) -> tuple[Merged, ...]:
    """The columns that USING and NATURAL make one, and those of joins below with other names."""
    paired = {name for name, _, _ in pairs}
    kept = tuple(item for item in below if item.name not in paired)
    made = (_merge(name, a, b, kind, schema, below, node.span) for name, a, b in pairs)
    return (*made, *_with_types(kept, schema))


def _merge(
    name: str, left: Expr, right: Expr, kind: JoinKind, schema: Schema, below: tuple[Merged, ...], span: Span
) -> Merged:
    """The one column of a USING pair: of the side that is always there, or COALESCE of both."""
    a, b = _typed(left, schema), _typed(right, schema)
    covers = frozenset(node.index for node in (a, b) if isinstance(node, InputRef))
    covers = covers.union(*(item.covers for item in below if item.name == name))
    if kind is JoinKind.RIGHT and a.type.same(b.type):
        return Merged(name, b, covers)
    if kind is not JoinKind.FULL and a.type == b.type:
        return Merged(name, a, covers)
    return Merged(name, resolve_call("COALESCE", (a, b), (), span), covers)


def _typed(expr: Expr, schema: Schema) -> Expr:
    """An expression over the join's row with the nullability that the join gives its columns."""
    if isinstance(expr, InputRef):
        return InputRef(expr.index, schema[expr.index].type, expr.span)
    if isinstance(expr, Call) and expr.function == "COALESCE":
        return resolve_call("COALESCE", tuple(_typed(arg, schema) for arg in expr.args), (), expr.span)
    return expr


def _with_types(merged: tuple[Merged, ...], schema: Schema) -> tuple[Merged, ...]:
    return tuple(Merged(item.name, _typed(item.expr, schema), item.covers) for item in merged)


def _join_schema(left: Schema, right: Schema, left_nullable: bool, right_nullable: bool) -> Schema:
    columns = [
        *(Column(c.name, c.type.as_nullable() if left_nullable else c.type) for c in left),
        *(Column(c.name, c.type.as_nullable() if right_nullable else c.type) for c in right),
    ]
    names = unique_names(column.name for column in columns)
    return tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True))


def _refuse_equal_aliases(left: Scope, right: Scope, span: Span) -> None:
    known = {namespace.alias for namespace in left.namespaces if namespace.alias is not None}
    for namespace in right.namespaces:
        if namespace.alias in known:
            raise BindError(
                "duplicate-relation",
                f"Duplicate relation name '{namespace.alias}' in FROM clause",
                span,
                "give one of them an alias",
            )


def _state_ttl(env: Environment, node: ast.Join) -> Hints:
    """``STATE_TTL.LEFT`` / ``STATE_TTL.RIGHT`` of this join: the hint names a table or alias right below it."""
    sides = (("STATE_TTL.LEFT", node.left), ("STATE_TTL.RIGHT", node.right))
    found = {
        side: env.state_ttl[name]
        for side, relation in sides
        for name in relation_names(relation)
        if name in env.state_ttl
    }
    return tuple(found.items())


def _multi_join(env: Environment, node: ast.Join) -> Hints:
    """``MULTI_JOIN`` of this join: the hint names an item of FROM right below it."""
    named = any(name in env.multi_join for side in (node.left, node.right) for name in relation_names(side))
    return ((MULTI_JOIN, ""),) if named else ()


def _join_hint(env: Environment, node: ast.Join) -> Hints:
    """``BROADCAST.LEFT`` and the like: the hint names a table or alias right below the join, the left one first."""
    for side, relation in (("LEFT", node.left), ("RIGHT", node.right)):
        for name in relation_names(relation):
            if name in env.join_hints:
                return ((f"{env.join_hints[name]}.{side}", ""),)
    return ()


def relation_names(node: ast.Relation) -> tuple[str, ...]:
    """Names that a hint may call an item of FROM by: its alias, else its table."""
    if isinstance(node, ast.Join | ast.MatchRecognize):
        return ()
    if isinstance(node, ast.Sample):
        return relation_names(node.input)
    if node.alias is not None:
        return (node.alias.name.text,)
    if not isinstance(node, ast.TableRef):
        return ()
    if isinstance(node.name, ast.FileName):
        called = alias_of(node.name)
        return () if called is None else (called,)
    return (node.name.last.text, str(node.name))
