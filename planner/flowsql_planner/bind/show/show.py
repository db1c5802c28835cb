"""SHOW and DESCRIBE: answers from the catalogs, in Flink's columns and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from flowsql_compute.functions.registry import definitions, is_aggregate
from flowsql_core.catalog import Catalog, CatalogObject, CatalogTable, CatalogView, ColumnKind, TableColumn
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_core.secrets.shown import shown_value
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl.partition_clause import not_partitioned, partition_values
from flowsql_planner.bind.named_table import look_up
from flowsql_planner.bind.operations import Rows
from flowsql_planner.bind.show.show_create import metadata_text
from flowsql_planner.catalog.core_module import CORE_FUNCTIONS
from flowsql_planner.catalog.manager import Resolved
from flowsql_planner.catalog.memory import missing_object
from flowsql_planner.catalog.modules import CORE
from flowsql_planner.catalog.schema import resolved_type

_DESCRIBE = (
    t.Column("name", t.STRING),
    t.Column("type", t.STRING),
    t.Column("null", t.BOOLEAN),
    t.Column("key", t.STRING),
    t.Column("extras", t.STRING),
    t.Column("watermark", t.STRING),
)
_COMMENT = t.Column("comment", t.STRING)


def bind_show(context: BindContext, node: ast.Show) -> Rows:
    """SHOW of anything that a catalog or a session lists."""
    catalogs = context.catalogs
    match node.kind:
        case ast.ShowKind.CATALOGS:
            return _names("catalog name", catalogs.catalog_names(), node.like)
        case ast.ShowKind.DATABASES:
            catalog = catalogs.current_catalog if node.place is None else _catalog_name(node.place)
            return _names("database name", _catalog(context, catalog, node.place).databases(), node.like)
        case ast.ShowKind.TABLES | ast.ShowKind.VIEWS:
            catalog, database = _database(context, node.place)
            only = CatalogView if node.kind is ast.ShowKind.VIEWS else None
            title = "view name" if only is not None else "table name"
            return _names(title, catalogs.object_names(catalog, database, only), node.like)
        case ast.ShowKind.COLUMNS:
            assert node.place is not None
            return _describe_rows(_existing(context, node.place).value, node.like)
        case ast.ShowKind.PARTITIONS:
            return _partitions(context, node)
        case ast.ShowKind.FUNCTIONS | ast.ShowKind.USER_FUNCTIONS:
            return _functions(context, node)
        case ast.ShowKind.MODULES:
            return _texts("module name", catalogs.modules.used)
        case ast.ShowKind.FULL_MODULES:
            schema = (t.Column("module name", t.STRING), t.Column("used", t.BOOLEAN))
            return Rows(schema, tuple(catalogs.modules.full()))
        case (
            ast.ShowKind.MATERIALIZED_TABLES | ast.ShowKind.MODELS | ast.ShowKind.PROCEDURES | ast.ShowKind.CONNECTIONS
        ):
            # None can be created, so there are none.
            _database(context, node.place)
            return _texts(_EMPTY_TITLES[node.kind], ())
        case ast.ShowKind.JARS:
            return _texts("jars", ())
    raise NotSupportedYetError(f"SHOW {node.kind.value}", node.span)


_EMPTY_TITLES = {
    ast.ShowKind.MATERIALIZED_TABLES: "materialized table",
    ast.ShowKind.MODELS: "model name",
    ast.ShowKind.PROCEDURES: "procedure name",
    ast.ShowKind.CONNECTIONS: "connection name",
}


def _catalog_name(place: ast.Identifier) -> str:
    if len(place.parts) > 1:
        raise BindError(
            "bad-identifier",
            f"Show databases from/in identifier [ {place} ] format error, catalog must be a single part identifier.",
            place.span,
        )
    return place.last.text


def _catalog(context: BindContext, name: str, place: ast.Identifier | None) -> Catalog:
    found = context.catalogs.find_catalog(name)
    if found is None:
        hint = did_you_mean(name, context.catalogs.catalog_names())
        raise BindError("catalog-not-found", f"Catalog {name} does not exist", _at(place), hint)
    return found


def _database(context: BindContext, place: ast.Identifier | None) -> tuple[str, str]:
    """The database that FROM or IN names (else the current one), which must exist."""
    catalog, database = _place(context, place)
    store = _catalog(context, catalog, place)
    if store.database(database) is None:
        hint = did_you_mean(database, store.databases())
        raise BindError("database-not-found", f"Database '{catalog}'.'{database}' doesn't exist.", _at(place), hint)
    return catalog, database


def _partitions(context: BindContext, node: ast.Show) -> Rows:
    assert node.place is not None
    path = context.qualify(node.place)
    found = context.catalogs.lookup(path)
    if found is None:
        hint = did_you_mean(path.name, context.catalogs.object_names(path.catalog, path.database))
        error = missing_object(f"{path.database}.{path.name}", path.catalog)
        raise BindError(error.code, error.message, node.place.span, hint)
    if not isinstance(found.value, CatalogTable) or not found.value.partition_keys:
        raise not_partitioned(path, node.place.span)
    wanted = set(() if node.partition is None else partition_values(node.partition))
    known = context.catalogs.catalog(path.catalog).details(path.database, path.name).partitions
    return _texts("partition name", [p.name for p in known if wanted <= set(p.values)])


def _functions(context: BindContext, node: ast.Show) -> Rows:
    catalogs = context.catalogs
    # As in Flink, a catalog that is not there has the system functions too.
    catalog, database = _place(context, node.place)
    names = set(catalogs.functions.names(catalog, database))
    if node.kind is ast.ShowKind.FUNCTIONS and CORE in catalogs.modules.used:
        names.update(CORE_FUNCTIONS)
    return _names("function name", sorted(names), node.like)


def bind_show_current(context: BindContext, node: ast.ShowCurrent) -> Rows:
    """SHOW CURRENT CATALOG or DATABASE."""
    match node.kind:
        case ast.ShowCurrentKind.CATALOG:
            return _texts("current catalog name", [context.catalogs.current_catalog])
        case ast.ShowCurrentKind.DATABASE:
            return _texts("current database name", [context.catalogs.current_database])
        case _:
            assert_never(node.kind)


def bind_describe(context: BindContext, node: ast.Describe) -> Rows:
    """DESCRIBE of a table or view: a row a column; of a catalog, database or function: a row a property."""
    match node.kind:
        case ast.DescribeKind.TABLE:
            return _describe_rows(_existing(context, node.name).value, None)
        case ast.DescribeKind.CATALOG:
            return _describe_catalog(context, node)
        case ast.DescribeKind.DATABASE:
            return _describe_database(context, node)
        case ast.DescribeKind.FUNCTION:
            return _describe_function(context, node)
        case ast.DescribeKind.MODEL:
            path = context.qualify(node.name)
            # None can be created, so there is none.
            raise BindError("model-not-found", f"Model with the identifier '{path}' doesn't exist.", node.name.span)
    raise NotSupportedYetError(f"DESCRIBE {node.kind.value}", node.span)


def _infos(rows: Iterable[tuple[str, str | None]]) -> Rows:
    return Rows((t.Column("info name", t.STRING), t.Column("info value", t.STRING)), tuple(rows))


def _describe_catalog(context: BindContext, node: ast.Describe) -> Rows:
    name = node.name.last.text
    descriptor = context.catalogs.descriptor(name, node.name.span)
    options = dict(descriptor.options)
    rows = [("name", name), ("type", options.pop("type", None)), ("comment", descriptor.comment)]
    if node.extended:
        rows += [(f"option:{key}", shown_value(key, value)) for key, value in sorted(options.items())]
    return _infos(rows)


def _describe_database(context: BindContext, node: ast.Describe) -> Rows:
    catalog, name = context.database_path(node.name)
    database = context.catalogs.require_database(catalog, name, node.name.span)
    rows = [("catalog", catalog), ("name", name), ("comment", database.comment)]
    if node.extended:
        rows += [(f"option:{key}", shown_value(key, value)) for key, value in sorted(database.properties.items())]
    return _infos(rows)


def _describe_function(context: BindContext, node: ast.Describe) -> Rows:
    """Kind and signature are told where FlowSQL has the function; Flink's other names are only known."""
    name = node.name.last.text
    functions = context.catalogs.functions
    is_core = len(node.name.parts) == 1 and name.lower() in {known.lower() for known in CORE_FUNCTIONS}
    user = functions.find_system(name) if is_core else functions.find(node.name.texts)
    if user is not None:
        temporary = str(functions.is_temporary(node.name.texts)).lower()
        rows = [("is system function", "false"), ("is temporary", temporary)]
        if node.extended:
            rows += [("kind", "SCALAR"), ("language", user.language), ("class name", user.class_name)]
        return _infos(rows)
    if not is_core:
        quoted_name = ".".join(f"`{part}`" for part in node.name.texts)
        known = [*CORE_FUNCTIONS, *functions.names(*_place(context, None))]
        raise BindError(
            "function-not-found",
            f"Function with the identifier '{quoted_name}' doesn't exist.",
            node.name.span,
            did_you_mean(name, known),
        )
    rows = [("is system function", "true"), ("is temporary", "false")]
    return _infos([*rows, *(_core_function(name) if node.extended else ())])


def _core_function(name: str) -> list[tuple[str, str | None]]:
    upper = name.upper()
    if is_aggregate(upper):
        return [("kind", "AGGREGATE"), ("requirements", "[]"), ("is deterministic", "true")]
    overloads = [definition for definition in definitions() if definition.name == upper]
    if not overloads:
        return []
    deterministic = str(all(definition.deterministic for definition in overloads)).lower()
    signature = "\n".join(dict.fromkeys(definition.signature.form() for definition in overloads))
    return [
        ("kind", "SCALAR"),
        ("requirements", "[]"),
        ("is deterministic", deterministic),
        ("signature", signature),
    ]


def _existing(context: BindContext, name: ast.Identifier) -> Resolved:
    found = look_up(context, name)
    if found is None:
        path = context.qualify(name)
        raise BindError(
            "table-not-found",
            f"Tables or views with the identifier '{path}' doesn't exist.",
            name.span,
            did_you_mean(path.name, context.catalogs.object_names(path.catalog, path.database)),
        )
    return found


def _at(place: ast.Identifier | None) -> Span | None:
    return None if place is None else place.span


def _place(context: BindContext, place: ast.Identifier | None) -> tuple[str, str]:
    current = context.catalogs
    match () if place is None else place.texts:
        case ():
            return current.current_catalog, current.current_database
        case (database,):
            return current.current_catalog, database
        case (catalog, database):
            return catalog, database
    raise BindError("bad-identifier", f"'{place}' is no database", _at(place))


# Names and LIKE


def _texts(title: str, values: Iterable[str]) -> Rows:
    return Rows((t.Column(title, t.STRING),), tuple((value,) for value in values))


def _names(title: str, values: Iterable[str], like: ast.ShowLike | None) -> Rows:
    return _texts(title, [value for value in values if _like(value, like)])


def _like(value: str, like: ast.ShowLike | None) -> bool:
    """SQL LIKE with ``%``, ``_`` and backslash as escape; ILIKE ignores case."""
    if like is None:
        return True
    tokens: list[str | None] = []
    several: list[bool] = []
    characters = iter(like.pattern.lower() if like.ignore_case else like.pattern)
    for character in characters:
        is_several = character == "%"
        if character == "\\":
            token: str | None = next(characters, "\\")
        else:
            token = None if character in "%_" else character
        tokens.append(token)
        several.append(is_several)
    # The places of the pattern that can be reached, character by character: many % take no longer than one.
    reached = _passed({0}, several)
    for character in value.lower() if like.ignore_case else value:
        kept = {place for place in reached if place < len(tokens) and several[place]}
        moved = {
            place + 1
            for place in reached
            if place < len(tokens) and not several[place] and tokens[place] in (None, character)
        }
        reached = _passed(kept | moved, several)
    return (len(tokens) in reached) is not like.negated


def _passed(places: set[int], several: Sequence[bool]) -> set[int]:
    """The places, and those behind a ``%`` at them."""
    made = set(places)
    for place in places:
        while place < len(several) and several[place] and place + 1 not in made:
            place += 1
            made.add(place)
    return made


# DESCRIBE


def _describe_rows(value: CatalogObject, like: ast.ShowLike | None) -> Rows:
    has_comments = any(column.comment is not None for column in value.columns)
    rows = [_describe_row(value, column) for column in value.columns if _like(column.name, like)]
    if not has_comments:
        return Rows(_DESCRIBE, tuple(rows))
    comments = [column.comment for column in value.columns if _like(column.name, like)]
    return Rows((*_DESCRIBE, _COMMENT), tuple((*row, comment) for row, comment in zip(rows, comments, strict=True)))


def _describe_row(value: CatalogObject, column: TableColumn) -> tuple[str | bool | None, ...]:
    type_ = resolved_type(value, column)
    key = watermark = None
    if isinstance(value, CatalogTable):
        if column.name in value.primary_key:
            key = f"PRI({', '.join(value.primary_key)})"
        if value.watermark is not None and value.watermark.rowtime == column.name:
            watermark = value.watermark.expression
    return (column.name, str(type_.as_nullable()), type_.nullable, key, _extras(column), watermark)


def _extras(column: TableColumn) -> str | None:
    match column.kind:
        case ColumnKind.PHYSICAL:
            return None
        case ColumnKind.COMPUTED:
            return f"AS {column.expression}"
        case ColumnKind.METADATA:
            return metadata_text(column)
        case _:
            assert_never(column.kind)
