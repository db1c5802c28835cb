"""``CREATE CATALOG ... WITH ('type' = 'jdbc')``: databases and tables of a server appear by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from flowsql_connectors.jdbc.address import OWN, parse_address, scheme_of
from flowsql_connectors.jdbc.database import Database, Login, dialect_of
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.options import PASSWORD, RETRY_TIMEOUT_MS, TABLE, URL, USER
from flowsql_connectors.options import ConnectorOption, OptionSet
from flowsql_connectors.spi.catalog import CatalogFactory, ReadOnlyCatalog
from flowsql_core.catalog import Catalog, CatalogDatabase, CatalogObject, CatalogTable, TableColumn
from flowsql_core.errors import BindError
from flowsql_core.secrets.placeholders import filled
from flowsql_core.types.logical import STRING

T = TypeVar("T")

BASE_URL = ConnectorOption(
    "base-url", str, "", "The server without a database: jdbc:postgresql://host:port, or of SQLAlchemy."
)
DEFAULT_DATABASE = ConnectorOption("default-database", str, "", "The database that USE CATALOG makes current.")
_OPTIONS: Final = OptionSet(required=(BASE_URL, DEFAULT_DATABASE), optional=(USER, PASSWORD, RETRY_TIMEOUT_MS))
_SQLITE_HEADER: Final = b"SQLite format 3\0"


class JdbcCatalogFactory(CatalogFactory):
    """Makes catalogs of servers of databases, and of folders of databases that are files."""

    identifier = "jdbc"

    def options(self) -> OptionSet:
        """Server, default database, login."""
        return _OPTIONS

    def create_catalog(self, name: str, options: Mapping[str, str]) -> tuple[Catalog, str]:
        """A catalog whose default database was reached."""
        default = filled(options[DEFAULT_DATABASE.key])
        scheme = scheme_of(filled(options[BASE_URL.key]))
        if scheme in OWN and scheme != "sqlite":
            missing = [option.key for option in (PASSWORD, USER) if option.key not in options]
            if missing:
                raise BindError(
                    "catalog-options",
                    f"Unable to create catalog '{name}'.\nOne or more required options are missing.\n"
                    f"Missing required options are: {', '.join(missing)}",
                )
        catalog = JdbcCatalog(name, options)
        catalog.objects_exist(default)
        return catalog, default


class JdbcCatalog(ReadOnlyCatalog):
    """Each question asks the server anew: what was made there since is seen."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, "jdbc")
        self._base = options[BASE_URL.key]
        self.default_database = filled(options[DEFAULT_DATABASE.key])
        kept = (USER.key, PASSWORD.key, RETRY_TIMEOUT_MS.key)
        self._kept = tuple((key, options[key]) for key in kept if key in options)
        parse_address(filled(self._url(self.default_database)))

    def _url(self, database: str) -> str:
        # The parameters of a URL stand behind the database.
        base, mark, parameters = self._base.partition("?")
        return f"{base}{'' if base.endswith('/') else '/'}{database}{mark}{parameters}"

    @contextmanager
    def _connected(self, database: str) -> Iterator[Database]:
        kept = {key: filled(value) for key, value in self._kept}
        address = parse_address(filled(self._url(database)))
        timeout = kept.get(RETRY_TIMEOUT_MS.key)
        login = Login(
            address,
            kept.get(USER.key),
            kept.get(PASSWORD.key),
            RETRY_TIMEOUT_MS.default if timeout is None else RETRY_TIMEOUT_MS.read(timeout),
        )
        connection = dialect_of(login).connect(login)
        try:
            yield connection
        finally:
            connection.close()

    def objects_exist(self, database: str) -> None:
        """Reach a database.

        Raises:
            ConnectorError: it is not there, or the login is refused.
        """
        with self._connected(database):
            pass

    def _asked(self, database: str, ask: Callable[[Database], T]) -> T:
        with self._connected(database) as connection:
            return ask(connection)

    def databases(self) -> list[str]:
        """Of the server, those of its own apart; of SQLite, the databases in the folder."""
        if scheme_of(filled(self._base)) == "sqlite":
            folder = Path(parse_address(filled(self._base)).database)
            return sorted(file.name for file in folder.iterdir() if file.is_file() and _is_sqlite(file))
        return self._asked(self.default_database, lambda connection: connection.databases())

    def database(self, name: str) -> CatalogDatabase | None:
        """One database, if there is one."""
        return CatalogDatabase() if name == self.default_database or name in self.databases() else None

    def objects(self, database: str) -> dict[str, CatalogObject]:
        """All tables and views; of PostgreSQL with their schemas, ``public.orders``."""
        if self.database(database) is None:
            raise BindError("database-not-found", f"Database {database} does not exist in Catalog {self.name}.")
        tables = self._asked(database, lambda connection: connection.tables())
        return {name: self._table(database, name, columns) for name, columns in tables.items()}

    def get(self, database: str, name: str) -> CatalogObject | None:
        """One table, also without its schema where that is the default one."""
        if self.database(database) is None:
            return None
        columns = self._asked(database, lambda connection: connection.find_columns(name))
        return self._table(database, name, columns) if columns else None

    def _table(self, database: str, name: str, columns: Mapping[str, NativeColumn]) -> CatalogTable:
        keys = sorted((column for column in columns.values() if column.key), key=lambda column: column.key)
        return CatalogTable(
            columns=tuple(
                TableColumn(column.name, (column.type or STRING).as_nullable(column.nullable and not column.key))
                for column in columns.values()
            ),
            options=(("connector", "jdbc"), (URL.key, self._url(database)), (TABLE.key, name), *self._kept),
            primary_key=tuple(column.name for column in keys),
        )


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER
