"""What lineage says: which columns of which tables a column is computed from, and how; which ones decide about rows."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Final

from flowsql_connectors import registry
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record


class How(enum.Enum):
    """How a column of a source takes part; names and order are those of OpenLineage's column lineage facet."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    FILTER = "FILTER"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"

    @property
    def direct(self) -> bool:
        """Whether values come from the column; else it only decides about them, or about rows."""
        return self in _DIRECT


_DIRECT: Final = frozenset({How.IDENTITY, How.TRANSFORMATION, How.AGGREGATION})
_ORDER: Final = {how: place for place, how in enumerate(How)}


@record
class Dataset:
    """A table. ``namespace`` and ``name``: under which OpenLineage knows it."""

    path: tuple[str, ...]
    namespace: str
    name: str

    def __str__(self) -> str:
        return ".".join(self.path)


@record
class SourceColumn:
    """A column of a table that is read."""

    dataset: Dataset
    column: str

    def __str__(self) -> str:
        return f"{self.dataset}.{self.column}"


@record
class Influence:
    """A column that takes part, in one way."""

    source: SourceColumn
    how: How


Influences = frozenset[Influence]
NONE: Final[Influences] = frozenset()


@record
class Flow:
    """Where the output of a plan comes from: each column, the choice of rows, and all tables that are read."""

    columns: tuple[Influences, ...]
    rows: Influences
    tables: frozenset[Dataset]


@record
class Lineage:
    """Where what a statement writes to one table comes from.

    ``target`` None: the answer of a query. ``columns``: by name, in the table's order. ``rows``: what decides about the
    rows as wholes, and so about all columns.
    """

    target: Dataset | None
    columns: tuple[tuple[str, Influences], ...]
    rows: Influences
    sources: tuple[Dataset, ...]


def dataset_of(table: TableSpec) -> Dataset:
    """A table as lineage names it: files by their path, since several tables may be over them; others as declared."""
    location = registry.location(table)
    if location is not None:
        scheme, separator, rest = location.partition("://")
        if not separator:
            return Dataset(table.shown_path, "file", location.removeprefix("file:"))
        if scheme == "file":
            return Dataset(table.shown_path, "file", rest)
        place, _, key = rest.partition("/")
        return Dataset(table.shown_path, f"{scheme}://{place}", key)
    catalog, *names = table.shown_path if len(table.shown_path) > 1 else ("flowsql", *table.shown_path)
    return Dataset(table.shown_path, catalog, ".".join(names))


def sorted_influences(influences: Iterable[Influence]) -> list[Influence]:
    """By table and column, direct ones first."""
    return sorted(influences, key=lambda each: (each.source.dataset.path, each.source.column, _ORDER[each.how]))


def by_source(influences: Iterable[Influence]) -> Mapping[SourceColumn, list[How]]:
    """For each column all ways in which it takes part, sorted."""
    found: dict[SourceColumn, list[How]] = {}
    for each in sorted_influences(influences):
        found.setdefault(each.source, []).append(each.how)
    return found
