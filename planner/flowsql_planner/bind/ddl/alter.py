"""ALTER of every kind of object: what is looked up, what may be renamed, and who carries out the rest."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.catalog import CatalogTable, CatalogView, ObjectPath
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl.alter_table import alter_table
from flowsql_planner.bind.ddl.create_view import make_view
from flowsql_planner.bind.ddl.partition_clause import bind_partition
from flowsql_planner.catalog.manager import quoted


def bind_alter(node: ast.Alter, context: BindContext) -> op.Operation:
    """The change that an ALTER asks for; NoOperation for IF EXISTS of what is not there."""
    match node.kind:
        case ast.ObjectKind.TABLE | ast.ObjectKind.VIEW:
            return _alter_object(node, context)
        case ast.ObjectKind.DATABASE if isinstance(node.action, ast.SetOptions):
            catalog, database = context.database_path(node.name)
            old = context.catalogs.catalog(catalog, node.name.span).database(database)
            if old is None:
                hint = did_you_mean(database, context.catalogs.catalog(catalog).databases())
                raise BindError("database-not-found", f"Database {database} not exists", node.name.span, hint)
            properties = {**old.properties, **{option.key: option.value for option in node.action.options}}
            return op.AlterDatabase(catalog, database, replace(old, properties=properties), node.name.span)
        case ast.ObjectKind.CATALOG:
            return _alter_catalog(node, context)
    raise NotSupportedYetError(f"ALTER {node.kind.value}", node.span)


def _alter_catalog(node: ast.Alter, context: BindContext) -> op.AlterCatalog:
    name = node.name.last.text
    old = context.catalogs.store.get(name)
    if old is None:
        hint = did_you_mean(name, context.catalogs.store.names())
        raise BindError(
            "catalog-not-found", f"Catalog {name} does not exist in the catalog store.", node.name.span, hint
        )
    match node.action:
        case ast.SetComment(comment):
            return op.AlterCatalog(name, old.options, comment, node.name.span)
        case ast.SetOptions(options):
            merged = {**dict(old.options), **{option.key: option.value for option in options}}
            return op.AlterCatalog(name, tuple(merged.items()), old.comment, node.name.span)
        case ast.ResetOptions(keys):
            if not keys:
                raise BindError("reset-empty", "ALTER CATALOG RESET does not support empty key", node.span)
            if "type" in keys:
                raise BindError("reset-type", "ALTER CATALOG RESET does not support changing 'type'", node.span)
            kept = tuple(item for item in old.options if item[0] not in keys)
            return op.AlterCatalog(name, kept, old.comment, node.name.span)
    raise NotSupportedYetError(f"ALTER CATALOG ... {type(node.action).__name__}", node.span)


def _alter_object(node: ast.Alter, context: BindContext) -> op.Operation:
    path = context.qualify(node.name)
    found = context.catalogs.lookup(path)
    is_table = node.kind is ast.ObjectKind.TABLE
    word = node.kind.value.capitalize()
    if found is None or found.temporary:
        if node.if_exists:
            return op.NoOperation()
        names = context.catalogs.object_names(path.catalog, path.database)
        raise BindError(
            "table-not-found",
            f"{word} {quoted(path)} doesn't exist or is a temporary {word.lower()}.",
            node.name.span,
            "temporary objects are dropped and created anew" if found else did_you_mean(path.name, names),
        )
    if isinstance(found.value, CatalogTable) is not is_table:
        other = "view" if is_table else "table"
        raise BindError(
            "wrong-kind",
            f"ALTER {node.kind.value} for a {other} is not allowed",
            node.name.span,
            f"ALTER {other.upper()} is for {other}s",
        )
    match node.action, found.value:
        case ast.RenameObject(name), _:
            # As in Flink, an object stays in its database whatever stands before the new name.
            return op.AlterObject(path, None, name.last.text, False, node.name.span)
        case ast.SetQuery(query), CatalogView() as view:
            as_written = ast.CreateView(node.name, query, comment=view.comment, span=node.span)
            return op.AlterObject(path, make_view(context, as_written), None, False, node.name.span)
        case ast.AddPartitions() | ast.DropPartitions(), CatalogTable() as table:
            return _alter_partitions(node, path, table)
        case _, CatalogTable() as table:
            return op.AlterObject(path, alter_table(context, table, node), None, False, node.name.span)
    raise NotSupportedYetError(f"ALTER {node.kind.value} {type(node.action).__name__}", node.span)


def _alter_partitions(node: ast.Alter, path: ObjectPath, table: CatalogTable) -> op.Operation:
    """ADD and DROP PARTITION: checked against the table's keys. Partitions are the folders of the table's files."""
    action = node.action
    assert isinstance(action, ast.AddPartitions | ast.DropPartitions)
    specs = tuple(bind_partition(spec, path, table) for spec in action.partitions)
    if isinstance(action, ast.AddPartitions):
        return op.AddPartitions(path, specs, action.if_not_exists, node.name.span)
    return op.DropPartitions(path, specs, action.if_exists, node.name.span)
