"""Tables and queries in a session: jobs of any variation in this process, and DuckDB beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from flowsql.session_zone import session_zone
from flowsql.table.environment_settings import EnvironmentSettings
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration
from flowsql_core.graph.job import JobGraph
from flowsql_core.span import Source
from flowsql_grammar import ast, parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.logical.nodes import Rel
from flowsql_planner.optimize.driver import Trace
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.options import MULTI_JOIN
from flowsql_planner.planner import Planner
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.testing.cut import run_cut, run_whole

from .variations import RUN_OPTIONS, Variation

Changes = list[tuple[Any, ...]]
Answer = Counter[Hashable]


class TakenBackError(AssertionError):
    """A change takes a row back that is not there."""


@contextmanager
def _room(room_bytes: int) -> Iterator[None]:
    """Operators of batch mode hold no more rows than that; what does not fit waits in files. 0: as they are."""
    if not room_bytes:
        yield
        return
    share = BoundedOperator.share_bytes
    setattr(BoundedOperator, "share_bytes", property(lambda self: room_bytes))  # noqa: B010
    try:
        yield
    finally:
        setattr(BoundedOperator, "share_bytes", share)  # noqa: B010


class SharingPlanner(Planner):
    """A planner that optimizes a query once for all ways to run it that the logical rules cannot tell apart.

    Args:
        configuration: of the job.
        optimized: optimized plans of the query, by what the rules look at.
    """

    def __init__(self, configuration: Configuration, optimized: dict[bool, Rel]) -> None:
        super().__init__(configuration)
        self._shared = optimized
        self._multi_joins = configuration.get(MULTI_JOIN)

    def optimized(self, root: Rel, context: PlanContext, trace: Trace | None = None) -> Rel:
        """The logical plan after all rules."""
        if self._multi_joins not in self._shared:
            self._shared[self._multi_joins] = super().optimized(root, context, trace)
        return self._shared[self._multi_joins]


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
        self._optimized: dict[bool, Rel] = {}

    def graph(self, variation: Variation, *, behind: bool = False) -> JobGraph:
        """The job before or behind the cut."""
        options = variation.options(behind)
        parallelism = variation.after if behind else variation.parallelism
        plan = (parallelism, variation.mini_batch, variation.phases, variation.split, variation.multi_joins)
        plan += (variation.disabled, variation.blocking) if variation.batch else ()
        layer = options | {"parallelism.default": str(parallelism)}
        if plan not in self._plans:
            configuration = self._configuration.with_layer(layer)
            self._plans[plan] = SharingPlanner(configuration, self._optimized).plan_query(self._query, object())
        graph = self._plans[plan]
        # Rows of batches and backends are options of the run.
        of_plan = {key: value for key, value in graph.configuration if key not in RUN_OPTIONS}
        return replace(graph, configuration=tuple((of_plan | options).items()))

    def changes(self, variation: Variation) -> Changes:
        """What the query tells, run one way."""
        if variation.cut is None:
            with _room(variation.room if variation.batch else 0):
                return run_whole(self.graph(variation))["collect"]
        behind = iter((False, True))

        def make(parallelism: int) -> JobGraph:
            return self.graph(variation, behind=next(behind))

        run = run_cut(make, (variation.parallelism, variation.after), variation.position)
        return run.rows("collect")


class Session:
    """Two catalogs over a folder of files, one of them for batch mode: its tables get no changes.

    Args:
        folder: what ``${DIR}`` stands for in statements.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: What was asked last: both modes ask one after the other.
        self._last: tuple[Source, ast.Statement] | None = None
        self._streaming = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        self._batch = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        # A fault is named by the frame that it comes from.
        self._streaming.get_config().set("sql-client.verbose", "true")
        self._batch.get_config().set("execution.batch.engine", "local")
        for environment in (self._streaming, self._batch):
            environment.get_config().set("table.local-time-zone", "UTC").set("io.tmp.dirs", str(folder))

    def execute(self, statement: str, mode: str = "") -> None:
        """Carry a statement out, in ``streaming``, in ``batch``, or in both catalogs."""
        modes = {"streaming": [self._streaming], "batch": [self._batch]}
        for environment in modes.get(mode, [self._streaming, self._batch]):
            environment.execute_sql(statement.replace("${DIR}", str(self._folder))).wait()

    def query(self, sql: str, batch: bool = False) -> Bound:
        """A query, bound: its jobs are planned from here."""
        environment = self._batch if batch else self._streaming
        zone = {LOCAL_TIME_ZONE.key: session_zone(environment.configuration)}
        configuration = environment.configuration.with_layer(zone)
        source, statement = self._parsed(sql)
        bound = bind_statement(statement, BindContext(environment.catalogs, configuration, source))
        assert isinstance(bound, op.Query)
        return Bound(bound, configuration)

    def _parsed(self, sql: str) -> tuple[Source, ast.Statement]:
        if self._last is None or self._last[0].text != sql:
            source = Source(sql)
            self._last = (source, parse_statement(source))
        return self._last

    def changes(self, sql: str, variation: Variation) -> Changes:
        """What a query tells, run one way."""
        return self.query(sql, variation.batch).changes(variation)


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
