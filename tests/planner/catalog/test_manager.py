"""The catalog manager: resolution of names, temporary objects, databases and catalogs, Flink's refusals."""

from __future__ import annotations

import pytest

from flowsql_core.catalog import CatalogDatabase, CatalogTable, CatalogView, ObjectPath, TableColumn
from flowsql_core.errors import BindError
from flowsql_core.types.logical import INT, STRING
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.catalog.memory import GenericInMemoryCatalog

TABLE = CatalogTable((TableColumn("a", INT),))
OTHER = CatalogTable((TableColumn("b", STRING),))
VIEW = CatalogView("SELECT 1", "SELECT 1", (TableColumn("c", INT),))


@pytest.fixture
def manager() -> CatalogManager:
    made = CatalogManager()
    made.create(made.qualify(("t",)), TABLE)
    return made


def test_names_of_one_to_three_parts_are_the_same_table(manager: CatalogManager) -> None:
    paths = {manager.qualify(parts) for parts in (("t",), ("default_database", "t"), DEFAULT)}
    assert paths == {ObjectPath("default_catalog", "default_database", "t")}
    assert manager.lookup(paths.pop()).value is TABLE  # type: ignore[union-attr]


DEFAULT = ("default_catalog", "default_database", "t")


def test_a_temporary_table_shadows_a_permanent_one(manager: CatalogManager) -> None:
    path = manager.qualify(("t",))
    manager.create(path, OTHER, temporary=True)
    found = manager.lookup(path)
    assert found is not None
    assert (found.value, found.temporary) == (OTHER, True)
    with pytest.raises(BindError, match=r"Temporary table with identifier .* exists. Drop it first"):
        manager.drop(path, CatalogTable)
    manager.drop(path, CatalogTable, temporary=True)
    found = manager.lookup(path)
    assert found is not None
    assert (found.value, found.temporary) == (TABLE, False)


def test_create_again(manager: CatalogManager) -> None:
    path = manager.qualify(("t",))
    assert manager.create(path, OTHER, if_not_exists=True) is False
    assert manager.create(path, OTHER, replace=True) is True
    with pytest.raises(
        BindError, match=r"^Table \(or view\) default_database.t already exists in Catalog default_catalog.$"
    ):
        manager.create(path, OTHER)
    manager.create(path, OTHER, temporary=True)
    with pytest.raises(BindError, match=r"^Temporary table '.*' already exists$"):
        manager.create(path, OTHER, temporary=True)


def test_drop_knows_tables_from_views(manager: CatalogManager) -> None:
    view = manager.qualify(("v",))
    manager.create(view, VIEW)
    with pytest.raises(BindError, match=r"Table with identifier 'default_catalog.default_database.v' does not exist."):
        manager.drop(view, CatalogTable)
    manager.drop(view, CatalogView)
    manager.drop(view, CatalogView, if_exists=True)
    assert manager.object_names("default_catalog", "default_database") == ["t"]


def test_alter_renames_and_replaces(manager: CatalogManager) -> None:
    path = manager.qualify(("t",))
    manager.alter(path, OTHER, "t2")
    assert manager.lookup(path) is None
    assert manager.lookup(manager.qualify(("t2",))).value is OTHER  # type: ignore[union-attr]
    manager.create(path, TABLE)
    with pytest.raises(BindError, match=r"already exists"):
        manager.alter(path, None, "t2")


def test_databases(manager: CatalogManager) -> None:
    manager.create_database("default_catalog", "sales", CatalogDatabase("c", {"k": "v"}))
    manager.use_database("default_catalog", "sales")
    manager.create(manager.qualify(("x",)), TABLE)
    with pytest.raises(BindError, match=r"Cannot drop a database which is currently in use."):
        manager.drop_database("default_catalog", "sales")
    manager.use_database("default_catalog", "default_database")
    with pytest.raises(BindError, match=r"^Database sales in catalog default_catalog is not empty.$"):
        manager.drop_database("default_catalog", "sales")
    manager.drop_database("default_catalog", "sales", cascade=True)
    with pytest.raises(BindError, match=r"^Database sales does not exist in Catalog default_catalog.$"):
        manager.drop_database("default_catalog", "sales")
    with pytest.raises(
        BindError, match=r"^A database with name \[sales\] does not exist in the catalog: \[default_catalog\].$"
    ):
        manager.use_database("default_catalog", "sales")


def test_catalogs(manager: CatalogManager) -> None:
    manager.register_catalog("cat2", GenericInMemoryCatalog("cat2", "home"), "home")
    manager.use_catalog("cat2")
    assert manager.qualify(("t",)) == ObjectPath("cat2", "home", "t")
    with pytest.raises(BindError, match=r"Cannot drop a catalog which is currently in use."):
        manager.unregister_catalog("cat2")
    manager.use_catalog("default_catalog")
    manager.unregister_catalog("cat2")
    with pytest.raises(BindError, match=r"^A catalog with name \[cat2\] does not exist.$"):
        manager.use_catalog("cat2")
    with pytest.raises(BindError, match=r"^Catalog default_catalog already exists.$"):
        manager.register_catalog("default_catalog", GenericInMemoryCatalog("x"), "default")


def test_an_unknown_database_of_a_new_table(manager: CatalogManager) -> None:
    with pytest.raises(BindError, match=r"^Database nosuch does not exist in Catalog default_catalog.$"):
        manager.create(manager.qualify(("nosuch", "t")), TABLE)
