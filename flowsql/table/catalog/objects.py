"""Catalog objects under PyFlink's names: paths, descriptors, the parts of a resolved schema.

What a catalog holds stands in ``entries``. Classes of what FlowSQL has not can be imported and are refused when used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowsql.common.public_api import public_api
from flowsql.common.refused import Refused
from flowsql.table.syntax.object_paths import split_path
from flowsql_connectors import registry
from flowsql_core.errors import BindError
from flowsql_core.types.logical import quote_identifier


@public_api
class ObjectPath:
    """``database.object`` within a catalog."""

    def __init__(self, database_name: str, object_name: str) -> None:
        self._database = database_name
        self._object = object_name

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """The path of a text with one dot."""
        parts = split_path(full_name)
        if len(parts) != 2:
            raise BindError("bad-identifier", f"Cannot split '{full_name}' to get databaseName and objectName")
        return ObjectPath(*parts)

    def get_database_name(self) -> str:
        """The database."""
        return self._database

    def get_object_name(self) -> str:
        """The object."""
        return self._object

    def get_full_name(self) -> str:
        """Both, with a dot between."""
        return f"{self._database}.{self._object}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self.get_full_name() == other.get_full_name()

    def __hash__(self) -> int:
        return hash(self.get_full_name())

    def compare_to(self, other: ObjectPath) -> int:
        """Return -1, 0 or 1: this path comes before, is, or comes after the other in the order of names.

        Raises:
            TypeError: the other is no ObjectPath.
        """
        if not isinstance(other, ObjectPath):
            raise TypeError(f"an ObjectPath is compared with another one, got {other!r}")
        mine, its = self.get_full_name(), other.get_full_name()
        return (mine > its) - (mine < its)

    def __lt__(self, other: object) -> bool:
        return self.compare_to(other) < 0 if isinstance(other, ObjectPath) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.compare_to(other) <= 0 if isinstance(other, ObjectPath) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.compare_to(other) > 0 if isinstance(other, ObjectPath) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.compare_to(other) >= 0 if isinstance(other, ObjectPath) else NotImplemented

    def __str__(self) -> str:
        return self.get_full_name()


class ObjectIdentifier:
    """``catalog.database.object``."""

    def __init__(self, catalog_name: str, database_name: str, object_name: str) -> None:
        self._parts = (catalog_name, database_name, object_name)

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """The identifier of three names."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """The catalog."""
        return self._parts[0]

    def get_database_name(self) -> str:
        """The database."""
        return self._parts[1]

    def get_object_name(self) -> str:
        """The object."""
        return self._parts[2]

    def to_object_path(self) -> ObjectPath:
        """Without the catalog."""
        return ObjectPath(self._parts[1], self._parts[2])

    def to_list(self) -> list[str]:
        """The three names."""
        return list(self._parts)

    def as_serializable_string(self) -> str:
        """The three names in back-ticks."""
        return ".".join(quote_identifier(part) for part in self._parts)

    def as_summary_string(self) -> str:
        """The three names with dots between."""
        return ".".join(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectIdentifier) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __str__(self) -> str:
        return self.as_serializable_string()


class CatalogDescriptor:
    """A catalog to be made: its name, options and comment."""

    def __init__(self, catalog_name: str, options: Mapping[str, str], comment: str | None = None) -> None:
        self.catalog_name = catalog_name
        self.options = dict(options)
        self.comment = comment

    @staticmethod
    def of(catalog_name: str, configuration: Any, comment: str | None = None) -> CatalogDescriptor:
        """A descriptor of a ``Configuration``, or of a dict of options."""
        options = configuration.to_dict() if hasattr(configuration, "to_dict") else dict(configuration)
        return CatalogDescriptor(catalog_name, {str(key): str(value) for key, value in options.items()}, comment)


class CatalogModel(metaclass=Refused, construct="models", hint=None):
    """A model of a catalog."""


class Procedure(metaclass=Refused, construct="procedures of catalogs", hint=None):
    """A procedure of a catalog."""


class HiveCatalog(metaclass=Refused, construct="it runs in a JVM", hint="CREATE CATALOG ... WITH ('type' = ...)"):
    """Tables of a Hive metastore."""


class JdbcCatalog:
    """Tables of a server of databases, for ``register_catalog``: what ``CREATE CATALOG`` with the type ``jdbc`` makes.

    Args:
        base_url: of the server without a database, ``jdbc:postgresql://host:port`` or a URL of SQLAlchemy.
    """

    def __new__(cls, catalog_name: str, default_database: str, username: str, pwd: str, base_url: str) -> Any:
        """The catalog, whose default database was reached."""
        options = {
            "base-url": base_url, "default-database": default_database, "username": username, "password": pwd,
        }  # fmt: skip
        factory = registry.catalog_factory("jdbc")
        assert factory is not None, "built in"
        return factory.create_catalog(catalog_name, options)[0]
