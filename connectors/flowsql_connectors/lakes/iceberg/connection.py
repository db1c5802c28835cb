"""Catalogs and tables of pyiceberg, opened by the options of a table or catalog, and what is said when they fail."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pyiceberg import exceptions
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from flowsql_connectors.lakes.iceberg.options import (
    CATALOG_NAME,
    CATALOG_TYPE,
    CLIENT,
    DATABASE,
    TABLE,
    URI,
    WAREHOUSE,
    check_uri,
)
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.secrets.placeholders import filled

#: Catalogs by process and properties: they hold connections, which a forked process must not share.
_OPENED: Final[dict[tuple[object, ...], Catalog]] = {}
_LOCK: Final = threading.Lock()


@record
class Address:
    """Where a table is.

    ``properties``: of the catalog, as they are written, with their placeholders.
    """

    catalog: str
    properties: tuple[tuple[str, str], ...]
    namespace: tuple[str, ...]
    name: str

    @property
    def shown(self) -> str:
        """For messages."""
        return ".".join((self.catalog, *self.namespace, self.name))

    @property
    def identifier(self) -> tuple[str, ...]:
        """For pyiceberg."""
        return (*self.namespace, self.name)

    def open(self) -> Catalog:
        """The catalog; raises as :func:`opened`."""
        return opened(self.catalog, dict(self.properties))

    def load(self) -> Table:
        """The table as it is now.

        Raises:
            ConnectorError: ``lake-table``, there is none; else as :func:`opened`.
        """
        catalog = self.open()
        with said(f"Iceberg table '{self.shown}'"):
            return catalog.load_table(self.identifier)


def namespace_of(database: str) -> tuple[str, ...]:
    """The levels of a namespace: a database ``a.b`` is two."""
    return tuple(database.split("."))


def address_of(table: TableSpec) -> Address:
    """Where the table of a declaration is.

    Raises:
        BindError: a password in the address of the catalog.
    """
    declared = dict(table.options)
    check_uri(declared)
    _, database, name = table.path
    kept = {CATALOG_TYPE.key, URI.key, WAREHOUSE.key, *(option.key for option in CLIENT)}
    properties = tuple((key, value) for key, value in table.options if key in kept)
    return Address(
        filled(declared[CATALOG_NAME.key]),
        properties,
        namespace_of(filled(declared.get(DATABASE.key, database))),
        filled(declared.get(TABLE.key, name)),
    )


def opened(name: str, declared: Mapping[str, str]) -> Catalog:
    """A catalog; it is kept for the process.

    Raises:
        ConnectorError: it cannot be reached, or a package that it needs is missing.
    """
    properties = {key: filled(value) for key, value in declared.items()}
    properties["type"] = properties.pop(CATALOG_TYPE.key).lower()
    warehouse = properties.get(WAREHOUSE.key)
    if properties["type"] == "sql" and warehouse and "://" not in warehouse:
        # Tables keep the paths of their files: they must not hang on where a process runs.
        properties[WAREHOUSE.key] = os.path.abspath(warehouse)
    key = (os.getpid(), name, *sorted(properties.items()))
    with _LOCK:
        if key not in _OPENED:
            with said(f"Iceberg catalog '{name}'"):
                _OPENED[key] = load_catalog(name, **properties)
        return _OPENED[key]


@contextmanager
def said(what: str) -> Iterator[None]:
    """What pyiceberg and what is below it raise, as one sentence about ``what``."""
    try:
        yield
    except (FlowSqlError, exceptions.CommitFailedException):
        raise
    except exceptions.NoSuchTableError as error:
        raise ConnectorError("lake-table", f"{what} does not exist.") from error
    except exceptions.NoSuchNamespaceError as error:
        raise ConnectorError("lake-table", f"{what}: its namespace does not exist.") from error
    except (exceptions.NotInstalledError, ModuleNotFoundError) as error:
        raise ConnectorError(
            "connector-not-installed",
            f"{what} needs a package that is not installed: {_line(error)}.",
            hint="pip install 'flowsql[iceberg]', or pyiceberg with the extra of the catalog or file system",
        ) from error
    except (exceptions.UnauthorizedError, exceptions.ForbiddenError, PermissionError) as error:
        raise ConnectorError("lake-refused", f"{what}: access is refused: {_line(error)}.") from error
    except FileNotFoundError as error:
        raise ConnectorError("lake-file", f"{what}: a file is missing: {_line(error)}.") from error
    except Exception as error:  # pyiceberg, SQLAlchemy, Arrow and clients of services raise what they like
        raise ConnectorError("lake-failed", f"{what}: {_line(error)}.", retryable=_passes(error)) from error


def _line(error: Exception) -> str:
    """What an error says, in one line."""
    original: Any = getattr(error, "orig", None)
    text = str(original if original is not None else error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")


def _passes(error: Exception) -> bool:
    """Whether the same may work a little later: a connection, a database that is locked."""
    return isinstance(error, OSError | exceptions.CommitStateUnknownException | exceptions.ServerError) or (
        type(error).__module__.startswith("sqlalchemy") and type(error).__name__ == "OperationalError"
    )
