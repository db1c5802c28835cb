"""Tables and queries in a session: jobs of any variation in this process, and DuckDB beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from flowsql.session_zone import session_zone
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.graph.job import JobGraph
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.planner import Planner
from flowsql_runtime.testing.cut import run_cut, run_whole

from .variations import Variation

Changes = list[tuple[Any, ...]]
Answer = Counter[Hashable]

#: Batch mode beside the others: the engine's name in ``execution.batch.engine``; None while there is none at home.
BATCH_ENGINE: str | None = None


class TakenBackError(Exception):
    """A change takes a row back that is not there."""


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

    def graph(self, sql: str, parallelism: int, options: dict[str, str]) -> JobGraph:
        """The job of a query."""
        environment = self._environment
        zone = {LOCAL_TIME_ZONE.key: session_zone(environment.configuration)}
        layer = zone | options | {"parallelism.default": str(parallelism)}
        configuration = environment.configuration.with_layer(layer)
        source = Source(sql)
        bound = bind_statement(parse_statement(source), BindContext(environment.catalogs, configuration, source))
        assert isinstance(bound, op.Query)
        return Planner(configuration).plan_query(bound, object())

    def changes(self, sql: str, variation: Variation) -> Changes:
        """What a query tells, run one way."""
        if variation.cut is None:
            graph = self.graph(sql, variation.parallelism, variation.options())
            return run_whole(graph)["collect"]
        behind = iter((False, True))

        def make(parallelism: int) -> JobGraph:
            return self.graph(sql, parallelism, variation.options(next(behind)))

        run = run_cut(make, (variation.parallelism, variation.after), variation.position)
        return run.rows("collect")

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
