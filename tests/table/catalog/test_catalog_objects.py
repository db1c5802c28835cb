"""``Catalog`` under PyFlink's names: databases, tables, views, partitions, functions, and its exceptions."""

from __future__ import annotations

import pytest

from flowsql.table import Schema, TableEnvironment
from flowsql.table.catalog import (
    Catalog,
    CatalogBaseTable,
    CatalogColumnStatistics,
    CatalogColumnStatisticsData,
    CatalogDatabase,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    ObjectPath,
)
from flowsql.util import exceptions as e
from flowsql_core.errors import NotSupportedYetError

ORDERS = ObjectPath("sales", "orders")
NOWHERE = ObjectPath("sales", "nowhere")
DAY = CatalogPartitionSpec({"day": "2024-01-01", "hour": "1"})


@pytest.fixture
def environment() -> TableEnvironment:
    return TableEnvironment.create()


@pytest.fixture
def catalog(environment: TableEnvironment) -> Catalog:
    found = environment.get_catalog("default_catalog")
    assert found is not None
    found.create_database("sales", CatalogDatabase.create_instance({"owner": "ann"}, "orders"), False)
    return found


def table(comment: str = "what was sold", **options: str) -> CatalogBaseTable:
    schema = (
        Schema.new_builder()
        .column("id", "BIGINT NOT NULL")
        .column("day", "STRING")
        .column("hour", "STRING")
        .column_by_expression("twice", "id * 2")
        .primary_key("id")
        .build()
    )
    return CatalogBaseTable.create_table(schema, ["day", "hour"], {"connector": "datagen", **options}, comment)


def test_databases(catalog: Catalog) -> None:
    assert catalog.get_default_database() == "default_database"
    assert catalog.list_databases() == ["default_database", "sales"]
    assert catalog.database_exists("sales")
    found = catalog.get_database("sales")
    assert (found.get_properties(), found.get_comment()) == ({"owner": "ann"}, "orders")
    catalog.alter_database("sales", CatalogDatabase.create_instance({"owner": "bob"}), False)
    assert catalog.get_database("sales").get_properties() == {"owner": "bob"}
    catalog.create_database("sales", found, True)
    with pytest.raises(e.DatabaseAlreadyExistException, match="Database sales already exists in Catalog"):
        catalog.create_database("sales", found, False)
    catalog.create_table(ORDERS, table(), False)
    with pytest.raises(e.DatabaseNotEmptyException, match="Database sales in catalog default_catalog is not empty"):
        catalog.drop_database("sales", False)
    catalog.drop_table(ORDERS, False)
    catalog.drop_database("sales", False)
    catalog.drop_database("sales", True)
    catalog.alter_database("sales", found, True)
    for call in (
        lambda: catalog.drop_database("sales", False),
        lambda: catalog.get_database("sales"),
        lambda: catalog.alter_database("sales", found, False),
        lambda: catalog.list_tables("sales"),
        lambda: catalog.create_table(ORDERS, table(), False),
    ):
        with pytest.raises(e.DatabaseNotExistException, match="Database sales does not exist in Catalog"):
            call()


def test_tables(environment: TableEnvironment, catalog: Catalog) -> None:
    catalog.create_table(ORDERS, table(), False)
    assert catalog.list_tables("sales") == ["orders"]
    assert catalog.table_exists(ORDERS)
    found = catalog.get_table(ORDERS)
    assert found.get_options() == {"connector": "datagen"}
    assert (found.get_comment(), found.get_description()) == ("what was sold", "what was sold")
    assert [column.name for column in environment.from_path("sales.orders")._schema] == ["id", "day", "hour", "twice"]
    catalog.create_table(ORDERS, table(), True)
    with pytest.raises(e.TableAlreadyExistException, match=r"Table \(or view\) sales.orders already exists in Catalog"):
        catalog.create_table(ORDERS, table(), False)
    catalog.alter_table(ORDERS, table("changed", **{"number-of-rows": "3"}), False)
    assert catalog.get_table(ORDERS).get_options() == {"connector": "datagen", "number-of-rows": "3"}
    assert catalog.list_tables("sales") == ["orders"]
    # What a catalog gave can be put elsewhere, as it is or by its schema.
    again = CatalogBaseTable.create_table(found.get_unresolved_schema(), [], found.get_options())
    catalog.create_table(ObjectPath("sales", "again"), again, False)
    catalog.create_table(ObjectPath("sales", "copied"), found.copy(), False)
    shown = environment.execute_sql("SHOW CREATE TABLE sales.again").collect().__next__()[0]
    assert "`twice` AS id * 2" in shown
    assert "PRIMARY KEY (`id`) NOT ENFORCED" in shown
    catalog.rename_table(ORDERS, "sold", False)
    assert catalog.list_tables("sales") == ["again", "copied", "sold"]
    with pytest.raises(e.TableAlreadyExistException):
        catalog.rename_table(ObjectPath("sales", "sold"), "again", False)
    catalog.drop_table(NOWHERE, True)
    catalog.rename_table(NOWHERE, "x", True)
    catalog.alter_table(NOWHERE, table(), True)
    for call in (
        lambda: catalog.get_table(NOWHERE),
        lambda: catalog.drop_table(NOWHERE, False),
        lambda: catalog.rename_table(NOWHERE, "x", False),
        lambda: catalog.alter_table(NOWHERE, table(), False),
        lambda: catalog.list_partitions(NOWHERE),
        lambda: catalog.get_table_statistics(NOWHERE),
    ):
        with pytest.raises(e.TableNotExistException, match=r"Table \(or view\) sales.nowhere does not exist"):
            call()


def test_views(environment: TableEnvironment, catalog: Catalog) -> None:
    catalog.create_table(ORDERS, table(), False)
    schema = Schema.new_builder().column("id", "BIGINT").build()
    query = "SELECT id FROM `default_catalog`.`sales`.`orders`"
    path = ObjectPath("sales", "v")
    view = CatalogBaseTable.create_view("SELECT id FROM orders", query, schema, {"a": "b"}, "ids")
    catalog.create_table(path, view, False)
    assert catalog.list_views("sales") == ["v"]
    assert catalog.list_tables("sales") == ["orders", "v"]
    found = catalog.get_table(path)
    assert (found.get_comment(), found.get_options()) == ("ids", {"a": "b"})
    assert [column.name for column in environment.from_path("sales.v")._schema] == ["id"]
    with pytest.raises(e.CatalogException, match=r"Existing table 'sales\.v' is VIEW and new table is TABLE"):
        catalog.alter_table(path, table(), False)
    catalog.drop_table(path, False)
    assert catalog.list_views("sales") == []


def test_partitions(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, table(), False)
    partition = CatalogPartition.create_instance({"k": "v"}, "first")
    catalog.create_partition(ORDERS, CatalogPartitionSpec({"hour": "1", "day": "2024-01-01"}), partition, False)
    catalog.create_partition(ORDERS, DAY, partition, True)
    catalog.create_partition(ORDERS, CatalogPartitionSpec({"day": "2024-01-02", "hour": "1"}), partition, False)
    assert len(catalog.list_partitions(ORDERS)) == 2
    assert catalog.list_partitions(ORDERS, CatalogPartitionSpec({"day": "2024-01-01"})) == [DAY]
    assert str(DAY) == "CatalogPartitionSpec{{day=2024-01-01, hour=1}}"
    assert catalog.partition_exists(ORDERS, DAY)
    assert catalog.get_partition(ORDERS, DAY).get_properties() == {"k": "v"}
    catalog.alter_partition(ORDERS, DAY, CatalogPartition.create_instance({"k": "w"}), False)
    assert catalog.get_partition(ORDERS, DAY).get_properties() == {"k": "w"}
    catalog.alter_partition_statistics(ORDERS, DAY, CatalogTableStatistics(7), False)
    assert [found.get_row_count() for found in catalog.bulk_get_partition_statistics(ORDERS, [DAY])] == [7]
    with pytest.raises(e.PartitionAlreadyExistsException, match="already exists"):
        catalog.create_partition(ORDERS, DAY, partition, False)
    with pytest.raises(e.PartitionSpecInvalidException, match=r"does not match partition keys \[day, hour\]"):
        catalog.create_partition(ORDERS, CatalogPartitionSpec({"day": "x"}), partition, False)
    catalog.drop_partition(ORDERS, DAY, False)
    catalog.drop_partition(ORDERS, DAY, True)
    for call in (
        lambda: catalog.get_partition(ORDERS, DAY),
        lambda: catalog.drop_partition(ORDERS, DAY, False),
        lambda: catalog.alter_partition(ORDERS, DAY, partition, False),
    ):
        with pytest.raises(e.PartitionNotExistException, match=r"of table sales\.orders in catalog default_catalog"):
            call()
    plain = CatalogBaseTable.create_table(Schema.new_builder().column("a", "INT").build(), [], {"connector": "datagen"})
    catalog.create_table(ObjectPath("sales", "plain"), plain, False)
    with pytest.raises(e.TableNotPartitionedException, match=r"Table sales\.plain in catalog \w+ is not partitioned"):
        catalog.list_partitions(ObjectPath("sales", "plain"))


def test_functions(environment: TableEnvironment, catalog: Catalog) -> None:
    path = ObjectPath("sales", "Absolute")
    catalog.create_function(path, CatalogFunction.create_instance("operator.abs"), False)
    assert catalog.list_functions("sales") == ["absolute"]
    assert catalog.function_exists(path)
    found = catalog.get_function(path)
    assert (found.get_class_name(), found.get_function_language()) == ("operator.abs", "PYTHON")
    environment.execute_sql("SHOW USER FUNCTIONS FROM sales").print()
    catalog.alter_function(path, CatalogFunction.create_instance("operator.neg"), False)
    assert catalog.get_function(path).get_class_name() == "operator.neg"
    catalog.create_function(path, found, True)
    with pytest.raises(e.FunctionAlreadyExistException, match=r"Function sales\.Absolute already exists in Catalog"):
        catalog.create_function(path, found, False)
    catalog.drop_function(path, False)
    catalog.drop_function(path, True)
    for call in (
        lambda: catalog.get_function(path),
        lambda: catalog.drop_function(path, False),
        lambda: catalog.alter_function(path, found, False),
    ):
        with pytest.raises(e.FunctionNotExistException, match=r"Function sales\.Absolute does not exist in Catalog"):
            call()


def test_statistics(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, table(), False)
    assert catalog.get_table_statistics(ORDERS).get_row_count() == -1
    catalog.alter_table_statistics(ORDERS, CatalogTableStatistics(42), False)
    assert catalog.get_table_statistics(ORDERS).get_row_count() == 42
    catalog.alter_table_statistics(NOWHERE, CatalogTableStatistics(42), True)


def test_statistics_of_columns(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, table(), False)
    assert catalog.get_table_column_statistics(ORDERS).get_column_statistics_data() == {}
    said = CatalogColumnStatistics({"id": CatalogColumnStatisticsData(1, 3, 2, 9)})
    catalog.alter_table_column_statistics(ORDERS, said.copy(), False)
    assert catalog.get_table_statistics(ORDERS).get_row_count() == -1
    catalog.alter_table_statistics(ORDERS, CatalogTableStatistics(42), False)
    found = catalog.get_table_column_statistics(ORDERS).get_column_statistics_data()
    assert found == said.get_column_statistics_data()
    of_id = found["id"]
    assert (of_id.getNullCount(), of_id.getNdv(), of_id.getMin(), of_id.getMax()) == (1, 3, 2, 9)
    assert (of_id.getMaxLength(), of_id.getAvgLength()) == (None, None)
    assert catalog.get_table_statistics(ORDERS).get_row_count() == 42
    catalog.alter_table_column_statistics(ORDERS, CatalogColumnStatistics({}), False)
    assert catalog.get_table_column_statistics(ORDERS).get_column_statistics_data() == {}
    catalog.alter_table_column_statistics(NOWHERE, said, True)
    for call in (
        lambda: catalog.get_table_column_statistics(NOWHERE),
        lambda: catalog.alter_table_column_statistics(NOWHERE, said, False),
    ):
        with pytest.raises(e.TableNotExistException):
            call()
    with pytest.raises(TypeError, match="column 'a': expected a CatalogColumnStatisticsData, got int"):
        CatalogColumnStatistics({"a": 1})  # type: ignore[dict-item]
    with pytest.raises(NotSupportedYetError, match="properties of the statistics"):
        CatalogColumnStatistics({}, {"a": "b"})


def test_statistics_of_columns_of_partitions(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, table(), False)
    said = CatalogColumnStatistics({"id": CatalogColumnStatisticsData(0, 5, max_length=4, avg_length=1.5)})
    catalog.alter_partition_column_statistics(ORDERS, DAY, said, True)
    with pytest.raises(e.PartitionNotExistException):
        catalog.alter_partition_column_statistics(ORDERS, DAY, said, False)
    with pytest.raises(e.PartitionNotExistException):
        catalog.get_partition_column_statistics(ORDERS, DAY)
    catalog.create_partition(ORDERS, DAY, CatalogPartition.create_instance({}), False)
    catalog.alter_partition_column_statistics(ORDERS, DAY, said, False)
    catalog.alter_partition_statistics(ORDERS, DAY, CatalogTableStatistics(7), False)
    (found,) = catalog.bulk_get_partition_column_statistics(ORDERS, [DAY])
    assert found.get_column_statistics_data() == said.get_column_statistics_data()
    assert catalog.get_partition_statistics(ORDERS, DAY).get_row_count() == 7


def test_what_there_is_none_of(catalog: Catalog) -> None:
    assert catalog.list_models("sales") == catalog.list_procedures("sales") == []
    assert catalog.list_materialized_tables("sales") == []
    assert not catalog.model_exists(NOWHERE)
    with pytest.raises(e.ModelNotExistException):
        catalog.get_model(NOWHERE)
    with pytest.raises(e.CatalogException, match=r"Procedure sales\.nowhere does not exist"):
        catalog.get_procedure(NOWHERE)
    with pytest.raises(NotSupportedYetError, match="create_model"):
        catalog.create_model(NOWHERE, object(), False)


def test_errors_of_catalogs_are_table_exceptions(catalog: Catalog) -> None:
    with pytest.raises(e.TableException):
        catalog.get_table(NOWHERE)
