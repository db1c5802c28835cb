"""Named tables and views in FROM: scans with their computed columns and watermarks; views expanded.

The plan of a table is Flink's: Scan (physical and metadata columns), Project (computed columns, the DDL's order),
WatermarkAssigner.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from flowsql_connectors import registry
from flowsql_core.catalog import CatalogTable, CatalogView, ColumnKind, ObjectPath
from flowsql_core.config import option, parse_bool
from flowsql_core.errors import BindError, InternalError, did_you_mean
from flowsql_core.expr import Expr, InputRef
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, Schema
from flowsql_grammar import ast
from flowsql_grammar.ast.node import NOWHERE
from flowsql_grammar.script import parse_expression, parse_statement
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import scope_of
from flowsql_planner.bind.query.known_views import known_view, remember_view
from flowsql_planner.bind.query.metadata import cast_metadata, told_columns
from flowsql_planner.bind.query.table_reference import with_referenced_table
from flowsql_planner.bind.sql_text.respan import respan
from flowsql_planner.catalog.schema import (
    Options,
    as_rowtime,
    metadata_columns,
    physical_columns,
    table_spec,
)
from flowsql_planner.logical.nodes import Project, Rel, Scan, WatermarkAssigner

if TYPE_CHECKING:
    from flowsql_planner.catalog.manager import Resolved

DYNAMIC_OPTIONS = option(
    "table.dynamic-table-options.enabled", parse_bool, True, "Whether OPTIONS hints may change a table's options."
)


#: Catalog, database, table.
_MOST_PARTS = 3

_ALIGNMENT: Final = "scan.watermark.alignment."

#: Flink's hints, wherever they may stand.
_HINTS = frozenset(
    {"OPTIONS", "STATE_TTL", "LOOKUP", "BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "MULTI_JOIN"}
)


class ViewBinder(Protocol):
    """Binds the query of a view (``bind/query.py``; passed in because queries bind tables)."""

    def __call__(self, context: BindContext, query: ast.Query) -> Rel:
        """The view's plan."""
        ...


def find_table(context: BindContext, name: ast.Identifier) -> Resolved:
    """The table or view that a name in a query stands for.

    Raises:
        BindError: ``Object 't' not found``.
    """
    if len(name.parts) > _MOST_PARTS:
        raise _no_object(name.texts[0], None, name, ())
    path = context.qualify(name)
    found = context.lookup(path)
    if found is not None:
        return found
    # As in Flink, the first part that is not there is the one that is missed.
    catalog = context.catalogs.find_catalog(path.catalog)
    if catalog is None:
        raise _no_object(path.catalog, None, name, context.catalogs.catalog_names())
    if catalog.database(path.database) is None:
        within = path.catalog if len(name.parts) == _MOST_PARTS else None
        raise _no_object(path.database, within, name, catalog.databases())
    within = None if len(name.parts) == 1 else f"{path.catalog}.{path.database}"
    raise _no_object(path.name, within, name, context.catalogs.object_names(path.catalog, path.database))


def _no_object(missing: str, within: str | None, name: ast.Identifier, known: Iterable[str]) -> BindError:
    where = "" if within is None else f" within '{within}'"
    hint = did_you_mean(missing, known)
    if os.path.isfile(str(name)):
        hint = f"a file stands in quotes: '{name}'"
    return BindError("table-not-found", f"Object '{missing}' not found{where}", name.span, hint)


def bind_resolved(
    context: BindContext,
    found: Resolved,
    hints: Sequence[ast.Hint],
    span: Span,
    bind_view: ViewBinder,
    moment: Options = (),
) -> Rel:
    """The plan that reads a table or view; ``moment``: options of FOR SYSTEM_TIME AS OF."""
    options = (*hinted_options(context, hints), *moment)
    if isinstance(found.value, CatalogTable):
        return bind_table(context, found.path, found.value, options, span)
    if options:
        raise BindError(
            "hint-on-view",
            f"View '{found.path}' cannot be enriched with new options. Hints can only be applied to tables.",
            span,
        )
    return _bind_view(context, found.path, found.value, span, bind_view)


def bind_table(
    context: BindContext, path: ObjectPath, table: CatalogTable, options: Options = (), span: Span | None = None
) -> Rel:
    """Scan, computed columns, watermark of a catalog table."""
    physical = physical_columns(table)
    metadata = metadata_columns(table)
    schema = (*physical, *(Column(column.name, column.type) for column in metadata))
    spec = table_spec(path, table, options)
    reference = registry.table_reference(spec)
    if reference is not None:
        spec = with_referenced_table(context, spec, *reference, span)
    rel: Rel = Scan(
        spec,
        tuple(range(len(physical))),
        (*physical, *told_columns(context, path, spec, metadata, span)),
        tuple(column.metadata_key or column.name for column in metadata),
        span=span,
    )
    rel = cast_metadata(rel, schema, span)
    names = tuple(column.name for column in table.columns)
    if names != tuple(column.name for column in schema):
        rel = Project(rel, _column_exprs(context, table, schema, span), names, span)
    # Batch mode has no watermarks and no time attributes.
    if table.watermark is None or not context.streaming:
        return rel
    index = names.index(table.watermark.rowtime)
    expression = bind_stored(context, table.watermark.expression, rel.schema, span)
    marked = tuple(
        Column(column.name, as_rowtime(column.type)) if i == index else column for i, column in enumerate(rel.schema)
    )
    watermark_options = tuple(item for item in rel_options(rel) if item[0].startswith("scan.watermark."))
    _check_alignment(table, dict(watermark_options), span)
    return WatermarkAssigner(rel, index, expression, marked, watermark_options, span)


def _check_alignment(table: CatalogTable, options: Mapping[str, str], span: Span | None) -> None:
    written = [key for key in options if key.startswith(_ALIGNMENT)]
    missing = [key for key in (f"{_ALIGNMENT}group", f"{_ALIGNMENT}max-drift") if key not in options]
    if written and missing:
        raise BindError(
            "watermark-alignment",
            f"Error configuring watermark for '{dict(table.options).get('connector', '')}', '{_ALIGNMENT}group' and "
            f"'{_ALIGNMENT}max-drift' must be set when configuring watermark alignment",
            span,
            f"add '{missing[0]}' to the WITH clause",
        )


def rel_options(rel: Rel) -> Options:
    """Options of the table below a (projected) scan."""
    while not isinstance(rel, Scan):
        assert isinstance(rel, Project)
        rel = rel.input
    return rel.table.options


def bind_stored(context: BindContext, text: str, schema: Schema, span: Span | None) -> Expr:
    """An expression that the catalog keeps as text, over the columns of its table; ``span``: the table's name."""
    tree = respan(parse_stored_expression(text), span or NOWHERE)
    return ExpressionBinder(context, scope_of(schema)).bind(tree)


def is_source_watermark(expression: ast.Expression) -> bool:
    """Whether a WATERMARK clause only marks that the source itself tells the watermarks."""
    return (
        isinstance(expression, ast.FunctionCall)
        and [name.upper() for name in expression.name.texts] == ["SOURCE_WATERMARK"]
        and not expression.args
    )


@lru_cache(maxsize=1024)
def parse_stored_expression(text: str) -> ast.Expression:
    """The tree of an expression that the catalog keeps as text."""
    return parse_expression(text)


@lru_cache(maxsize=256)
def parse_stored_query(text: str) -> ast.Query:
    """The tree of a view's query that the catalog keeps as text."""
    statement = parse_statement(text)
    if not isinstance(statement, ast.QueryStatement):
        raise InternalError(f"the text of a view is no query: {text}")
    return statement.query


def check_hint_names(hints: Sequence[ast.Hint]) -> None:
    """Refuse a hint that nobody knows, behind a table or behind SELECT.

    Raises:
        BindError: at the hint.
    """
    for hint in hints:
        if hint.name.text.upper() not in _HINTS:
            raise BindError(
                "unknown-hint",
                f"Hint: {hint.name.text.upper()} should be registered in the HintStrategyTable",
                hint.span,
                did_you_mean(hint.name.text.upper(), _HINTS),
            )


def hinted_options(context: BindContext, hints: Sequence[ast.Hint]) -> Options:
    """Options of ``/*+ OPTIONS('k' = 'v') */`` behind a table."""
    check_hint_names(hints)
    found: Options = ()
    for hint in hints:
        if hint.name.text.upper() != "OPTIONS":
            continue
        if not context.config.get(DYNAMIC_OPTIONS):
            raise BindError(
                "dynamic-options-disabled",
                "The 'OPTIONS' hint is allowed only when the config option 'table.dynamic-table-options.enabled' is "
                "set to true.",
                hint.span,
            )
        for argument in hint.arguments:
            if argument.key is None:
                raise BindError("bad-hint", "Hint [OPTIONS] only support non empty key value options", argument.span)
            found += ((argument.key, argument.value),)
    return found


def _column_exprs(context: BindContext, table: CatalogTable, schema: Schema, span: Span | None) -> tuple[Expr, ...]:
    index = {column.name: i for i, column in enumerate(schema)}
    exprs: list[Expr] = []
    for column in table.columns:
        if column.kind is ColumnKind.COMPUTED:
            assert column.expression is not None
            exprs.append(bind_stored(context, column.expression, schema, span))
        else:
            exprs.append(InputRef(index[column.name], column.type, span))
    return tuple(exprs)


def _bind_view(context: BindContext, path: ObjectPath, view: CatalogView, span: Span, bind_view: ViewBinder) -> Rel:
    if path in context.expanding:
        raise BindError("recursive-view", f"View '{path}' refers to itself", span)
    known = None if context.asked is None else known_view(context.catalogs, context.config, path, view)
    if known is None:
        inside = context.inside(path)
        rel = _view_query(inside, path, view, span, bind_view)
        if inside.asked is not None:
            known = remember_view(context.catalogs, context.config, path, view, inside.asked, rel)
    else:
        rel = known.rel
    if context.asked is not None and known is not None:
        context.asked.views.append(known)
        context.asked.is_volatile |= known.asked.is_volatile
    return rel


def _view_query(context: BindContext, path: ObjectPath, view: CatalogView, span: Span, bind_view: ViewBinder) -> Rel:
    """The plan of a view's query, with the view's names of its columns."""
    rel = bind_view(context, respan(parse_stored_query(view.expanded_query), span))
    names = tuple(column.name for column in view.columns)
    if len(names) != len(rel.schema):
        raise BindError(
            "stale-view", f"The query of view '{path}' gives {len(rel.schema)} columns, the view has {len(names)}", span
        )
    if names == tuple(column.name for column in rel.schema):
        return rel
    refs = tuple(InputRef(i, column.type, span) for i, column in enumerate(rel.schema))
    return Project(rel, refs, names, span)
