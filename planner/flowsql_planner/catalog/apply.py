"""Carries out statements that change the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from flowsql_core.catalog import CatalogTable, CatalogView
from flowsql_core.errors import BindError
from flowsql_planner.bind import operations as op
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.catalog.store import CatalogDescriptor


def apply_ddl(operation: op.DdlOperation, catalogs: CatalogManager) -> bool:
    """Change the catalog as the statement says. False when an IF [NOT] EXISTS of CREATE let it pass unchanged."""
    match operation:
        case op.CreateTable():
            return catalogs.create(
                operation.path,
                operation.table,
                temporary=operation.temporary,
                if_not_exists=operation.if_not_exists,
                replace=operation.replace,
                at=operation.span,
            )
        case op.CreateView():
            return catalogs.create(
                operation.path,
                operation.view,
                temporary=operation.temporary,
                if_not_exists=operation.if_not_exists,
                at=operation.span,
            )
        case op.AlterObject():
            catalogs.alter(operation.path, operation.value, operation.new_name, operation.temporary, operation.span)
        case op.DropTable() | op.DropView():
            kind = CatalogTable if isinstance(operation, op.DropTable) else CatalogView
            catalogs.drop(
                operation.path,
                kind,
                temporary=operation.temporary,
                if_exists=operation.if_exists,
                at=operation.span,
            )
        case op.CreateDatabase(catalog, name, database, if_not_exists, span):
            catalogs.create_database(catalog, name, database, if_not_exists, span)
        case op.AlterDatabase(catalog, name, database, span):
            catalogs.alter_database(catalog, name, database, span)
        case op.DropDatabase(catalog, name, if_exists, cascade, span):
            catalogs.drop_database(catalog, name, if_exists, cascade, span)
        case op.CreateCatalog() | op.AlterCatalog():
            _define_catalog(operation, catalogs)
        case op.DropCatalog(name, if_exists, span):
            catalogs.unregister_catalog(name, if_exists, span)
        case op.UseCatalog(name, span):
            catalogs.use_catalog(name, span)
        case op.UseDatabase(catalog, name, span):
            catalogs.use_database(catalog, name, span)
        case op.AddPartitions() | op.DropPartitions():
            _change_partitions(operation, catalogs)
        case op.CreateFunction() | op.AlterFunction() | op.DropFunction():
            _change_function(operation, catalogs)
        case op.LoadModule(name, options, span):
            catalogs.modules.load(name, options, span)
        case op.UnloadModule(name, span):
            catalogs.modules.unload(name, span)
        case op.UseModules(names, span):
            catalogs.modules.use(names, span)
        case _:
            assert_never(operation)
    return True


def _define_catalog(operation: op.CreateCatalog | op.AlterCatalog, catalogs: CatalogManager) -> None:
    descriptor = CatalogDescriptor(operation.options, operation.comment)
    if isinstance(operation, op.AlterCatalog):
        catalogs.alter_catalog(operation.name, descriptor, operation.span)
    elif not (operation.if_not_exists and operation.name in catalogs.catalog_names()):
        catalogs.create_catalog(operation.name, descriptor, operation.span)


def _change_function(
    operation: op.CreateFunction | op.AlterFunction | op.DropFunction, catalogs: CatalogManager
) -> None:
    functions = catalogs.functions
    match operation:
        case op.CreateFunction(path, function, temporary, system, if_not_exists, span):
            if system:
                functions.create_system(path.name, function, if_not_exists, span)
            else:
                functions.create(path, function, temporary, if_not_exists, span)
        case op.AlterFunction(path, function, if_exists, span):
            functions.alter(path, function, if_exists, span)
        case op.DropFunction(path, temporary, system, if_exists, span):
            if system:
                functions.drop_system(path.name, if_exists, span)
            else:
                functions.drop(path, temporary, if_exists, span)
        case _:
            assert_never(operation)


def _change_partitions(operation: op.AddPartitions | op.DropPartitions, catalogs: CatalogManager) -> None:
    path = operation.path
    store = catalogs.catalog(path.catalog, operation.span)
    details = store.details(path.database, path.name)
    known = {frozenset(partition.values): partition for partition in details.partitions}
    adds = isinstance(operation, op.AddPartitions)
    tolerant = operation.if_not_exists if isinstance(operation, op.AddPartitions) else operation.if_exists
    for partition in operation.partitions:
        if (frozenset(partition.values) in known) is adds:
            if tolerant:
                continue
            shown = "{" + ", ".join(f"{key}={value}" for key, value in partition.values) + "}"
            state = "already exists" if adds else "does not exist"
            raise BindError(
                "partition-exists" if adds else "partition-not-found",
                f"Partition CatalogPartitionSpec{{{shown}}} of table {path.database}.{path.name} in catalog "
                f"{path.catalog} {state}.",
                operation.span,
            )
        if adds:
            known[frozenset(partition.values)] = partition
        else:
            del known[frozenset(partition.values)]
    store.put_details(path.database, path.name, replace(details, partitions=tuple(known.values())))
