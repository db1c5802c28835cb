"""Catalog words: what tables, columns and views are, and the protocol that every catalog implements."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Protocol, runtime_checkable

from flowsql_core.record import record
from flowsql_core.types.logical import LogicalType, quote_identifier

#: Catalog and database of tables that a program gave without a name; plans and messages show their last part alone.
ANONYMOUS = "*anonymous*"


@record
class ObjectPath:
    """``catalog.database.object``."""

    catalog: str
    database: str
    name: str

    def __str__(self) -> str:
        return self.name if self.catalog == ANONYMOUS else f"{self.catalog}.{self.database}.{self.name}"

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
class TableDistribution:
    """``DISTRIBUTED BY [HASH|RANGE] (columns) INTO n BUCKETS``; ``str()`` gives that text as SHOW CREATE TABLE does."""

    columns: tuple[str, ...] = ()
    kind: str | None = None
    buckets: int | None = None

    def __str__(self) -> str:
        text = "DISTRIBUTED"
        if self.columns:
            text += f" BY {self.kind or ''}({', '.join(quote_identifier(name) for name in self.columns)})"
        return text if self.buckets is None else f"{text} INTO {self.buckets} BUCKETS"


@record
class CatalogTable:
    """A table as its DDL left it, names and types resolved."""

    columns: tuple[TableColumn, ...]
    #: Secrets may be among them.
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    watermark: WatermarkDefinition | None = None
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None
    distribution: TableDistribution | None = None
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
class CatalogFunction:
    """A user's function. ``class_name``: dotted path of a Python callable; ``source``: its text if written inline."""

    class_name: str
    language: str = "PYTHON"
    source: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    #: Python object of a function that a program registered (``flowsql_core.udf.ScalarUdf``); never stored.
    function: Any = field(default=None, compare=False, repr=False)


@record
class ColumnStatistics:
    """What ANALYZE TABLE ... FOR COLUMNS found; None where it does not apply to the type, or is not known."""

    nulls: int | None
    distinct: int | None = None
    average_length: float | None = None
    longest: int | None = None
    greatest: int | float | None = None
    smallest: int | float | None = None


#: The number of rows of a table of which only columns are known.
UNKNOWN_ROWS: Final = -1


@record
class TableStatistics:
    """What ANALYZE TABLE found, or a program said: the number of rows, and columns by name."""

    rows: int
    columns: tuple[tuple[str, ColumnStatistics], ...] = ()


@record
class CatalogPartition:
    """A partition that the catalog knows: its key values as text, in the order of the table's partition keys."""

    values: tuple[tuple[str, str], ...]
    properties: tuple[tuple[str, str], ...] = ()
    statistics: TableStatistics | None = None

    @property
    def name(self) -> str:
        """``dt=2020-01-01/hh=5``."""
        return "/".join(f"{key}={value}" for key, value in self.values)


@record
class TableDetails:
    """What belongs to a table beside its definition."""

    partitions: tuple[CatalogPartition, ...] = ()
    statistics: TableStatistics | None = None


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

    def details(self, database: str, name: str) -> TableDetails:
        """Partitions and statistics of a table; empty ones when nothing is known."""
        ...

    def put_details(self, database: str, name: str, details: TableDetails) -> None:
        """Replace them. They go with the table when it is dropped."""
        ...

    def functions(self, database: str) -> dict[str, CatalogFunction]:
        """User functions by name; empty when the database is missing."""
        ...

    def put_function(self, database: str, name: str, function: CatalogFunction) -> None:
        """Add or replace a function."""
        ...

    def drop_function(self, database: str, name: str) -> None:
        """Remove a function."""
        ...


@runtime_checkable
class TableKeeper(Protocol):
    """A catalog whose tables are more than their definitions: rows go with a table that is dropped and put anew."""

    def rename(self, database: str, name: str, new_name: str) -> None:
        """Give a table another name; it keeps all that it is."""
        ...

    def completed(self, database: str, name: str, table: CatalogTable) -> CatalogTable:
        """A new table as :meth:`Catalog.get` will give it once it is put.

        Raises:
            BindError: the catalog cannot keep it.
        """
        ...
