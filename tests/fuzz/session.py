"""Tables and queries in a session: jobs of any variation in this process, and DuckDB beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from flowsql.session_zone import session_zone
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration
from flowsql_core.graph.job import JobGraph
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.planner import Planner
from flowsql_runtime.testing.cut import run_cut, run_whole

from .variations import RUN_OPTIONS, Variation

Changes = list[tuple[Any, ...]]
Answer = Counter[Hashable]

#: Batch mode beside the others: the engine's name in ``execution.batch.engine``; None while there is none at home.
BATCH_ENGINE: str | None = None


class TakenBackError(Exception):
    """A change takes a row back that is not there."""


class Bound:
    """A query whose names are resolved. Ways that have one plan share it.

    Args:
        query: the query.
        configuration: of the session.
    """

    def __init__(self, query: op.Query, configuration: Configuration) -> None:
        self._query = query
        self._configuration = configuration
        self._plans: dict[tuple[object, ...], JobGraph] = {}

    def graph(self, variation: Variation, *, behind: bool = False) -> JobGraph:
        """The job before or behind the cut."""
        options = variation.options(behind)
        parallelism = variation.after if behind else variation.parallelism
        plan = (parallelism, variation.mini_batch, variation.phases, variation.split)
        layer = options | {"parallelism.default": str(parallelism)}
        if plan not in self._plans:
            configuration = self._configuration.with_layer(layer)
            self._plans[plan] = Planner(configuration).plan_query(self._query, object())
        graph = self._plans[plan]
        # Rows of batches and backends are options of the run.
        of_plan = {key: value for key, value in graph.configuration if key not in RUN_OPTIONS}
        return replace(graph, configuration=tuple((of_plan | options).items()))

    def changes(self, variation: Variation) -> Changes:
        """What the query tells, run one way."""
        if variation.cut is None:
            return run_whole(self.graph(variation))["collect"]
        behind = iter((False, True))

        def make(parallelism: int) -> JobGraph:
            return self.graph(variation, behind=next(behind))

        run = run_cut(make, (variation.parallelism, variation.after), variation.position)
        return run.rows("collect")


class Session:
    """A catalog over a folder of files.

    Args:
        folder: what ``${DIR}`` stands for in statements.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = TableEnvironment.create()
        self._environment.get_config().set("table.local-time-zone", "UTC")

    def execute(self, statement: str) -> None:
        """Carry a statement out."""
        self._environment.execute_sql(statement.replace("${DIR}", str(self._folder))).wait()

    def query(self, sql: str) -> Bound:
        """A query, bound: its jobs are planned from here."""
        environment = self._environment
        zone = {LOCAL_TIME_ZONE.key: session_zone(environment.configuration)}
        configuration = environment.configuration.with_layer(zone)
        source = Source(sql)
        bound = bind_statement(parse_statement(source), BindContext(environment.catalogs, configuration, source))
        assert isinstance(bound, op.Query)
        return Bound(bound, configuration)

    def changes(self, sql: str, variation: Variation) -> Changes:
        """What a query tells, run one way."""
        return self.query(sql).changes(variation)

    def batch(self, sql: str) -> Answer | None:
        """The answer of batch mode; None while no engine is named."""
        if BATCH_ENGINE is None:
            return None
        config = self._environment.get_config()
        config.set("execution.runtime-mode", "batch").set("execution.batch.engine", BATCH_ENGINE)
        try:
            with self._environment.execute_sql(sql).collect() as rows:
                return Counter(plain(list(row)) for row in rows)
        finally:
            config.set("execution.runtime-mode", "streaming")


def plain(value: Any) -> Hashable:
    """A value that can be counted, equal for equal numbers and moments of both homes; a multiset without its order."""
    match value:
        case list() | tuple():
            if value and all(isinstance(part, tuple) and len(part) == 2 for part in value):
                return frozenset(map(plain, value))
            return tuple(map(plain, value))
        case dict():
            return frozenset((plain(key), plain(part)) for key, part in value.items())
        case Decimal():
            return value.normalize() + 0
        case bool():
            return str(value)
        case datetime():
            return value.isoformat(" ", "milliseconds")
        case date():
            return value.isoformat()
        case float():
            return value + 0.0
    return value  # type: ignore[no-any-return]


def folded(changes: Iterable[tuple[Any, ...]]) -> Answer:
    """The table that changes add up to."""
    table: Answer = Counter()
    for kind, *values in changes:
        row = plain(values)
        if kind in ("+I", "+U"):
            table[row] += 1
        elif table[row] > 0:
            table[row] -= 1
        else:
            raise TakenBackError(f"{kind} of a row that is not there: {row}")
    return +table
