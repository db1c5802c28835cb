"""Catalog words: what tables, columns and views are, and the protocol that every catalog implements."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from flowsql_core.record import record
from flowsql_core.types.logical import LogicalType


@record
class ObjectPath:
    """``catalog.database.object``."""

    catalog: str
    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.name}"

    @property
    def parts(self) -> tuple[str, str, str]:
        """The three names."""
        return (self.catalog, self.database, self.name)


class ColumnKind(enum.Enum):
    """Where a column's value comes from."""

    PHYSICAL = "physical"
    COMPUTED = "computed"
    METADATA = "metadata"


@record
class TableColumn:
    """A column of a table. ``expression``: SQL text of a computed column; ``metadata_key``/``virtual`` for metadata."""

    name: str
    type: LogicalType
    kind: ColumnKind = ColumnKind.PHYSICAL
    expression: str | None = None
    metadata_key: str | None = None
    virtual: bool = False
    comment: str | None = None


@record
class WatermarkDefinition:
    """``WATERMARK FOR rowtime AS expression``; the column may be nested (a.b)."""

    rowtime: str
    expression: str
    type: LogicalType


@record
class CatalogTable:
    """A table as its DDL left it, names and types resolved."""

    columns: tuple[TableColumn, ...]
    options: tuple[tuple[str, str], ...] = ()
    watermark: WatermarkDefinition | None = None
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None
    distribution: str | None = None
    #: Python object of ``from_pandas``/``from_arrow``/``from_elements`` tables; never stored.
    resource: str | None = field(default=None, compare=False)

    def column(self, name: str) -> TableColumn | None:
        """A column by exact name."""
        return next((column for column in self.columns if column.name == name), None)


@record
class CatalogView:
    """A view: the query as written and with every name expanded, and its columns."""

    original_query: str
    expanded_query: str
    columns: tuple[TableColumn, ...]
    comment: str | None = None
    options: tuple[tuple[str, str], ...] = ()


CatalogObject = CatalogTable | CatalogView


@record
class CatalogDatabase:
    """A database: comment and properties."""

    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


class Catalog(Protocol):
    """A store of databases, tables and views. Raises BindError with Flink's texts for missing or existing objects."""

    name: str

    def databases(self) -> list[str]:
        """Names, sorted."""
        ...

    def database(self, name: str) -> CatalogDatabase | None:
        """One database."""
        ...

    def create_database(self, name: str, database: CatalogDatabase) -> None:
        """Add a database."""
        ...

    def alter_database(self, name: str, database: CatalogDatabase) -> None:
        """Replace a database's comment and properties."""
        ...

    def drop_database(self, name: str) -> None:
        """Remove an empty database."""
        ...

    def objects(self, database: str) -> dict[str, CatalogObject]:
        """Tables and views by name."""
        ...

    def get(self, database: str, name: str) -> CatalogObject | None:
        """One table or view."""
        ...

    def put(self, database: str, name: str, value: CatalogObject) -> None:
        """Add or replace a table or view."""
        ...

    def drop(self, database: str, name: str) -> None:
        """Remove a table or view."""
        ...
