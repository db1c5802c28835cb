"""Random queries: operators over operators down to tables, each with its twin for DuckDB where it has one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from .draws import Draws
from .expressions import Expressions, reference
from .families import aggregates, arrivals, changelogs, joins, plain, ranks, times, windows
from .families.maker import Definition
from .sql import Relation, Sql, both, joined
from .tables import Table

#: More rows than this no join may make.
MOST_ROWS: Final = 4000
#: More changes than this nothing may tell whose changes multiply: the judge holds each as a Python tuple.
MOST_CHANGES: Final = 100_000


@dataclass(frozen=True)
class Query:
    """A query, the views that it names, and what was drawn for it."""

    sql: Sql
    definitions: tuple[Definition, ...]
    views: bool
    draws: tuple[int, ...]
    used: Counter[str]
    tables: frozenset[str]

    def statements(self) -> list[str]:
        """CREATE VIEW, where definitions are views."""
        made = [f"CREATE TEMPORARY VIEW {each.name} AS {each.sql.flink}" for each in self.definitions]
        return made if self.views else []

    def flink(self) -> str:
        """The query itself."""
        if self.views or not self.definitions:
            return self.sql.flink
        return f"WITH {', '.join(f'{each.name} AS ({each.sql.flink})' for each in self.definitions)} {self.sql.flink}"

    def duck(self) -> str | None:
        """Its twin."""
        if self.sql.duck is None or not self.definitions:
            return self.sql.duck
        given = ", ".join(f"{each.name} AS ({each.sql.duck})" for each in self.definitions if each.sql.duck is not None)
        return f"WITH {given} {self.sql.duck}" if given else self.sql.duck


class Queries:
    """Draws one query over tables."""

    def __init__(self, draws: Draws, tables: Sequence[Table]) -> None:
        self.draws = draws
        self._tables = tables
        self._definitions: list[Definition] = []
        self._named: set[str] = set()

    def query(self, depth: int) -> Query:
        """One query of so many levels at most."""
        made = self.relation(depth)
        items = [both("q.{0}", column.name) for column in made.columns]
        sql = both("SELECT {0} FROM {1} AS q", joined(", ", items), made.sql)
        views = self.draws.often(50)
        draws = tuple(self.draws.made)
        if self._definitions and not views:
            self.use("WITH")
        named = frozenset(self._named)
        return Query(sql, tuple(self._definitions), views, draws, self.draws.used, named)

    def use(self, name: str) -> None:
        """Count an operator."""
        self.draws.used[name] += 1

    def table(self, wanted: Callable[[Relation], bool] = lambda table: True) -> Relation:
        """A table; the first one, where none is as wanted."""
        fit = [table.relation for table in self._tables if wanted(table.relation) and not table.relation.versions]
        return self._taken(fit)

    def versions(self) -> Relation:
        """A table whose rows are versions of keys. Anywhere else its key would be a lie."""
        return self._taken([table.relation for table in self._tables if table.relation.versions])

    def _taken(self, fit: list[Relation]) -> Relation:
        relation = self.draws.pick(fit or [self._tables[0].relation])
        self._named.add(relation.sql.flink)
        return relation

    def relation(self, depth: int) -> Relation:
        """Anything."""
        if depth <= 0:
            return self.table()
        made = self.draws.weighted(
            [
                (4, self.table),
                (14, lambda: plain.projection(self, depth)),
                (6, lambda: plain.union(self, depth)),
                (5, lambda: plain.distinct(self, depth)),
                (6, lambda: plain.set_operation(self, depth)),
                (4, lambda: plain.unnest(self, depth)),
                (18, lambda: aggregates.grouped(self, depth)),
                (4, lambda: aggregates.grouping_sets(self, depth)),
                (4, lambda: aggregates.total(self, depth)),
                (18, lambda: joins.join(self, depth)),
                (8, lambda: joins.self_join(self, depth)),
                (10, lambda: joins.filtered_by_query(self, depth)),
                (4, lambda: joins.with_scalar_query(self, depth)),
                (4, lambda: joins.lateral(self, depth)),
                (10, lambda: ranks.top(self, depth)),
                (4, lambda: ranks.limited(self, depth)),
                (12, lambda: windows.aggregate(self, depth)),
                (5, lambda: windows.rank(self, depth)),
                (5, lambda: windows.join(self, depth)),
                (4, lambda: windows.rows(self, depth)),
                (5, lambda: times.interval_join(self, depth)),
                (4, lambda: times.temporal_join(self, depth)),
                (3, lambda: times.lookup_join(self, depth)),
                (6, lambda: times.over(self, depth)),
                (5, lambda: times.first_or_last(self, depth)),
                (3, lambda: times.over_updates(self, depth)),
                (5, lambda: windows.grouped(self, depth)),
                (3, lambda: arrivals.lists(self, depth)),
                (2, lambda: arrivals.over_arrivals(self, depth)),
                (2, lambda: arrivals.first_or_last_arrival(self, depth)),
                (3, lambda: arrivals.matches(self, depth)),
                (3, lambda: changelogs.round_trip(self, depth)),
                (3, lambda: changelogs.net(self, depth)),
            ]
        )
        return self.defined(made) if not made.bare and self.draws.often(10) else made

    def timed(self, wanted: Callable[[Relation], bool] = lambda relation: True) -> Relation:
        """Rows with a row time that only grow."""
        table = self.table(lambda each: each.grows and each.time is not None and wanted(each))
        if self.draws.often(70):
            return table
        return plain.with_time(self, table)

    def defined(self, relation: Relation) -> Relation:
        """The same under a name of its own: a view, or a query of WITH."""
        if relation.bare:
            return relation
        sql = relation.sql
        if sql.flink.startswith("TABLE("):
            sql = both("(SELECT * FROM {0})", sql)
        inner = replace(sql, flink=sql.flink[1:-1], duck=None if sql.duck is None else sql.duck[1:-1])
        name = self.draws.name("w")
        self._definitions.append(Definition(name, inner))
        self.use("VIEW")
        named = replace(inner, flink=name, duck=None if inner.duck is None else name)
        return replace(relation, sql=named, bare=True)

    def fits(self, left: Relation, right: Relation) -> bool:
        """Whether a join of both stays small."""
        return left.rows * right.rows <= MOST_ROWS and self.few(joins.told_by_both(left, right))

    def few(self, changes: int) -> bool:
        """Whether so many changes are few enough to be told."""
        return changes <= MOST_CHANGES

    def expressions(self, *relations: tuple[str, Relation]) -> Expressions:
        """Expressions over columns."""
        return Expressions(
            self.draws, [reference(alias, column) for alias, relation in relations for column in relation.columns]
        )
