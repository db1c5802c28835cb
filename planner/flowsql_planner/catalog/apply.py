"""Carries out statements that change the catalog."""

from __future__ import annotations

from typing import assert_never

from flowsql_core.catalog import CatalogTable, CatalogView
from flowsql_planner.bind import operations as op
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.catalog.memory import GenericInMemoryCatalog


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
                replace=operation.replace,
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
        case op.CreateCatalog():
            _create_catalog(operation, catalogs)
        case op.DropCatalog(name, if_exists, span):
            catalogs.unregister_catalog(name, if_exists, span)
        case op.UseCatalog(name, span):
            catalogs.use_catalog(name, span)
        case op.UseDatabase(catalog, name, span):
            catalogs.use_database(catalog, name, span)
        case _:
            assert_never(operation)
    return True


def _create_catalog(operation: op.CreateCatalog, catalogs: CatalogManager) -> None:
    if operation.if_not_exists and operation.name in catalogs.catalog_names():
        return
    default = dict(operation.options).get("default-database", "default")
    made = GenericInMemoryCatalog(operation.name, default)
    catalogs.register_catalog(operation.name, made, default, operation.options, operation.span)
