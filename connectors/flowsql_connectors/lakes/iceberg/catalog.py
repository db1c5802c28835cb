"""``CREATE CATALOG ... WITH ('type' = 'iceberg')``: namespaces are databases, tables appear and are made in it."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from pyiceberg import exceptions

from flowsql_connectors.lakes.iceberg.altering import alter
from flowsql_connectors.lakes.iceberg.connection import Address, namespace_of, opened, said
from flowsql_connectors.lakes.iceberg.described import COMMENT, described
from flowsql_connectors.lakes.iceberg.options import (
    CATALOG_NAME,
    CATALOG_TYPE,
    CLIENT,
    DATABASE,
    TABLE,
    URI,
    WAREHOUSE,
    is_property,
)
from flowsql_connectors.lakes.iceberg.sink import partition_spec
from flowsql_connectors.lakes.iceberg.types import to_iceberg
from flowsql_connectors.options import ConnectorOption
from flowsql_core.catalog import (
    CatalogDatabase,
    CatalogFunction,
    CatalogObject,
    CatalogTable,
    CatalogView,
    ColumnKind,
    TableDetails,
)
from flowsql_core.errors import BindError
from flowsql_core.secrets.placeholders import filled
from flowsql_core.types.logical import Column, Schema

CONNECTION: Final[tuple[ConnectorOption[Any], ...]] = (CATALOG_TYPE, URI, WAREHOUSE, *CLIENT)
_OF_PLACE: Final = ("connector", CATALOG_NAME.key, DATABASE.key, TABLE.key, *(option.key for option in CONNECTION))


class IcebergCatalog:
    """Each question asks anew: what others made since is seen.

    Args:
        name: of the catalog.
        properties: of pyiceberg's, as they are written.
        default_database: it is made with the first table.
    """

    def __init__(self, name: str, properties: tuple[tuple[str, str], ...], default_database: str) -> None:
        self.name = name
        self._properties = properties
        self._default_database = default_database

    def _address(self, database: str, name: str) -> Address:
        return Address(self.name, self._properties, namespace_of(database), name)

    def _connection(self, database: str, name: str) -> tuple[tuple[str, str], ...]:
        return (
            ("connector", "iceberg"),
            (CATALOG_NAME.key, self.name),
            *self._properties,
            (DATABASE.key, database),
            (TABLE.key, name),
        )

    # -- databases

    def databases(self) -> list[str]:
        """Namespaces, with those in them."""
        catalog = opened(self.name, dict(self._properties))
        with said(f"Iceberg catalog '{self.name}'"):
            found, left = [], list(catalog.list_namespaces())
            while left:
                namespace = left.pop()
                found.append(".".join(namespace))
                left += [each for each in catalog.list_namespaces(namespace) if each != namespace]
        return sorted({*found, self._default_database})

    def database(self, name: str) -> CatalogDatabase | None:
        """One namespace with its properties; the default one also before it is made."""
        catalog = opened(self.name, dict(self._properties))
        with said(f"Iceberg catalog '{self.name}'"):
            try:
                properties = dict(catalog.load_namespace_properties(namespace_of(name)))
            except exceptions.NoSuchNamespaceError:
                return CatalogDatabase() if name == self._default_database else None
        comment = properties.pop(COMMENT, None)
        properties.pop("exists", None)
        return CatalogDatabase(comment, properties)

    def create_database(self, name: str, database: CatalogDatabase) -> None:
        """Add a namespace."""
        catalog = opened(self.name, dict(self._properties))
        properties = dict(database.properties)
        if database.comment:
            properties[COMMENT] = database.comment
        with said(f"Database '{name}' of Iceberg catalog '{self.name}'"):
            catalog.create_namespace_if_not_exists(namespace_of(name), properties)

    def alter_database(self, name: str, database: CatalogDatabase) -> None:
        """Replace its properties."""
        was = self.database(name) or CatalogDatabase()
        changed = {key: value for key, value in database.properties.items() if was.properties.get(key) != value}
        if database.comment is not None and database.comment != was.comment:
            changed[COMMENT] = database.comment
        gone = {key for key in was.properties if key not in database.properties}
        catalog = opened(self.name, dict(self._properties))
        with said(f"Database '{name}' of Iceberg catalog '{self.name}'"):
            catalog.create_namespace_if_not_exists(namespace_of(name))
            catalog.update_namespace_properties(namespace_of(name), gone, changed)

    def drop_database(self, name: str) -> None:
        """Remove an empty namespace."""
        catalog = opened(self.name, dict(self._properties))
        with said(f"Database '{name}' of Iceberg catalog '{self.name}'"):
            try:
                catalog.drop_namespace(namespace_of(name))
            except exceptions.NoSuchNamespaceError:
                return  # the default one, which was never made

    # -- tables

    def objects(self, database: str) -> dict[str, CatalogObject]:
        """All tables. One with a type that SQL has no counterpart of shows no columns."""
        catalog = opened(self.name, dict(self._properties))
        with said(f"Database '{database}' of Iceberg catalog '{self.name}'"):
            try:
                names = [identifier[-1] for identifier in catalog.list_tables(namespace_of(database))]
            except exceptions.NoSuchNamespaceError:
                names = []
        found: dict[str, CatalogObject] = {}
        for name in names:
            try:
                value = self.get(database, name)
            except BindError:
                value = CatalogTable((), self._connection(database, name))
            if value is not None:
                found[name] = value
        return found

    def get(self, database: str, name: str) -> CatalogObject | None:
        """One table.

        Raises:
            BindError: it has a column of a type that SQL has no counterpart of.
        """
        address = self._address(database, name)
        catalog = address.open()
        with said(f"Iceberg table '{address.shown}'"):
            try:
                table = catalog.load_table(address.identifier)
            except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
                return None
        return described(table, address.shown, self._connection(database, name))

    def completed(self, database: str, name: str, table: CatalogTable) -> CatalogTable:
        """With the options by which the connector will find it.

        Raises:
            BindError: the catalog cannot keep it.
        """
        shown = self._address(database, name).shown
        options = dict(table.options)
        connector = options.get("connector", "iceberg")
        if connector != "iceberg":
            raise BindError(
                "lake-table",
                f"Iceberg catalog '{self.name}' keeps tables of Iceberg alone, and '{shown}' is one of the connector "
                f"'{connector}'.",
                hint="CREATE TEMPORARY TABLE, or another catalog, e.g. default_catalog",
            )
        strange = next((key for key in options if key not in _OF_PLACE and not is_property(key)), None)
        if strange is not None:
            raise BindError(
                "lake-table",
                f"Table '{shown}': '{strange}' is no property of Iceberg tables.",
                hint=f"SELECT ... FROM {name} /*+ OPTIONS('{strange}' = '...') */ sets options of a single statement",
            )
        if any(column.kind is not ColumnKind.PHYSICAL for column in table.columns):
            raise BindError(
                "lake-table", f"Table '{shown}': Creating table with computed columns is not supported yet."
            )
        if table.watermark is not None:
            raise BindError(
                "lake-table",
                f"Table '{shown}': Creating table with watermark specs is not supported yet.",
                hint="CREATE TEMPORARY TABLE ... (WATERMARK FOR ...) LIKE it",
            )
        if table.distribution is not None:
            raise BindError("lake-table", f"Table '{shown}': Iceberg tables have no DISTRIBUTED BY.")
        to_iceberg(_columns(table), {})
        kept = tuple((key, value) for key, value in table.options if is_property(key))
        return CatalogTable(
            table.columns,
            (*self._connection(database, name), *kept),
            primary_key=table.primary_key,
            partition_keys=table.partition_keys,
            comment=table.comment,
        )

    def put(self, database: str, name: str, value: CatalogObject) -> None:
        """Make a table, or change it."""
        address = self._address(database, name)
        if isinstance(value, CatalogView):
            raise BindError(
                "lake-view",
                f"Iceberg catalog '{self.name}' keeps no views of SQL ('{address.shown}').",
                hint="CREATE TEMPORARY VIEW, or another catalog, e.g. default_catalog",
            )
        value = self.completed(database, name, value)
        was = self.get(database, name)
        catalog = address.open()
        with said(f"Iceberg table '{address.shown}'"):
            if isinstance(was, CatalogTable):
                alter(catalog.load_table(address.identifier), was, value, address.shown)
                return
            comments = {column.name: column.comment for column in value.columns}
            schema = to_iceberg(_columns(value), comments, value.primary_key)
            properties = {key: filled(text) for key, text in value.options if is_property(key)}
            if value.comment:
                properties[COMMENT] = value.comment
            catalog.create_namespace_if_not_exists(address.namespace)
            spec = partition_spec(schema, value.partition_keys)
            catalog.create_table(address.identifier, schema, partition_spec=spec, properties=properties)

    def rename(self, database: str, name: str, new_name: str) -> None:
        """Another name for a table."""
        address = self._address(database, name)
        catalog = address.open()
        with said(f"Iceberg table '{address.shown}'"):
            catalog.rename_table(address.identifier, (*address.namespace, new_name))

    def drop(self, database: str, name: str) -> None:
        """Remove a table with its files, as Flink's catalog does."""
        address = self._address(database, name)
        catalog = address.open()
        with said(f"Iceberg table '{address.shown}'"):
            catalog.purge_table(address.identifier)

    def details(self, database: str, name: str) -> TableDetails:
        """Partitions and statistics are Iceberg's own affair."""
        return TableDetails()

    def put_details(self, database: str, name: str, details: TableDetails) -> None:
        """Nothing is kept beside the table."""
        if details != TableDetails():
            self._refuse(f"partitions and statistics of '{database}.{name}' are its own, and not set by SQL")

    # -- functions

    def functions(self, database: str) -> dict[str, CatalogFunction]:
        """None."""
        return {}

    def put_function(self, database: str, name: str, function: CatalogFunction) -> None:
        """Refused."""
        self._refuse(f"it keeps no functions ('{database}.{name}')")

    def drop_function(self, database: str, name: str) -> None:
        """Refused."""
        self._refuse(f"there is no function '{database}.{name}'")

    def _refuse(self, why: str) -> NoReturn:
        raise BindError("lake-catalog", f"Iceberg catalog '{self.name}': {why}.")


def _columns(table: CatalogTable) -> Schema:
    key = table.primary_key
    return tuple(
        Column(column.name, column.type.as_nullable(column.type.nullable and column.name not in key))
        for column in table.columns
    )
