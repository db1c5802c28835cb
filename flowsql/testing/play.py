"""Plays a job against rows, watermarks and a clock that a test moves.

The tables that the INSERTs of the job read and write are replaced by lists of rows (``given-rows``); all else is the
engine that runs elsewhere: the same plans, operators and tasks, in streaming mode or in batch mode.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from flowsql.configuration import set_options
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.syntax.object_paths import split_path
from flowsql.testing.rows import Row, batch_of_values, materialized, moment_ms, texts_of, typed_batch
from flowsql_connectors import given, registry
from flowsql_connectors.datastream import mode_text
from flowsql_core.batch import ChangelogBatch
from flowsql_core.catalog import CatalogTable, ColumnKind, ObjectPath
from flowsql_core.clock import ManualClock
from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.graph.expectation import EXPECTATIONS
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flowsql_core.span import Source
from flowsql_core.types.logical import Column, Schema, quote_identifier, without_attribute
from flowsql_grammar import ast, parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.logical.nodes import Scan, Sink
from flowsql_planner.logical.rewrite import walk
from flowsql_runtime.cluster.local import LocalCluster

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient

#: What a test runs with unless it says otherwise: answers that no machine and no moment changes.
DEFAULTS: Final = {"table.local-time-zone": "UTC", "parallelism.default": "1"}

_RUNS: Final = (ast.Insert, ast.StatementSet)


@dataclass
class Table:
    """A table that a test gives rows to, or looks at."""

    path: ObjectPath
    #: As the script has made it.
    original: CatalogTable
    is_temporary: bool
    rows: given.GivenRows
    list_name: str
    schema: Schema
    primary_key: tuple[int, ...]
    #: It is written by a job of the script; its rows end when that job does.
    is_written: bool = False
    has_ended: bool = False
    #: Happenings that have been compared as changes.
    compared: int = 0


@dataclass
class Job:
    """An INSERT, and the tables of the test that it writes and reads. ``client``: None before it begins."""

    statement: ast.Statement
    source: Source
    writes: list[Table]
    reads: list[Table]
    client: JobClient | None = None

    @property
    def is_over(self) -> bool:
        """It began and has ended."""
        return self.client is not None and self.client.is_over()


@dataclass
class Given:
    """What a test says of a table before jobs run. ``keeps``: it reads what its connector has."""

    mode: ChangelogMode | None = None
    keeps: bool = False


class Play:
    """One test on its way. A context manager: leaving it ends all jobs.

    Args:
        options: of the session, over :data:`DEFAULTS`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        configuration = set_options(Configuration(values={}), {**DEFAULTS, **options}.items())
        self.clock = ManualClock()
        # What a test defines is gone with it.
        self.environment = TableEnvironment.of_configuration(configuration.with_layer()).tried_out()
        self.environment._executor.use_cluster(LocalCluster(self.clock))
        self._scratch = TableEnvironment.of_configuration(Configuration(values=dict(DEFAULTS)))
        #: INSERTs of the script that wait for :meth:`start`.
        self._statements: list[tuple[ast.Statement, Source]] = []
        self._tables: dict[ObjectPath, Table] = {}
        self._jobs: list[Job] = []
        self._folder = tempfile.mkdtemp(prefix="flowsql-test-")
        self._savepoints = 0
        #: What made a job fail, until a step asks for it.
        self.failure: FlowSqlError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all jobs, and forget the rows."""
        for job in self._jobs:
            if job.client is not None and not job.is_over:
                job.client.cancel_and_wait()
        for table in self._tables.values():
            given.forget(table.list_name)
        shutil.rmtree(self._folder, ignore_errors=True)

    # Statements

    def run(self, statement: ast.Statement, source: Source) -> None:
        """A definition takes effect; an INSERT waits until :meth:`start`."""
        if isinstance(statement, _RUNS):
            self._statements.append((statement, source))
        elif isinstance(statement, ast.QueryStatement):
            raise BindError(
                "query-in-test",
                "A query on its own has no table that a test could look at.",
                statement.span,
                "CREATE VIEW v AS ..., and EXPECT v",
            ).within(source)
        else:
            self.define(statement, source)
            if isinstance(statement, ast.CreateTable) and statement.query is not None:
                self.insert_of(statement, source)

    def define(self, statement: ast.Statement, source: Source) -> None:
        """A definition takes effect; of a CREATE TABLE AS the table alone."""
        if isinstance(statement, ast.CreateTable) and statement.query is not None:
            operation = self.environment.bind_tree(statement, source)
            assert isinstance(operation, op.CreateTableAs)
            self.environment.run_bound(operation.create, source)
        else:
            self.environment.execute(statement, source)
        if isinstance(statement, ast.CreateTable):
            # Views over it are bound next, and its connector may not be here.
            self._replace(self.environment.catalogs.qualify(statement.name.texts))

    def insert_of(self, statement: ast.CreateTable, source: Source) -> None:
        """The rows of a CREATE TABLE AS come as those of an INSERT: they wait until :meth:`start`."""
        query = statement.query
        assert query is not None
        answer = self.environment.bind_tree(ast.QueryStatement(query, span=query.span), source)
        assert isinstance(answer, op.Query)
        columns = tuple(ast.Identifier((ast.Name(column.name, quoted=True),)) for column in answer.rel.schema)
        self._statements.append((ast.Insert(statement.name, query, columns, span=statement.span), source))

    def start(self, told: Mapping[str, Given], watched: Iterable[str] = ()) -> None:
        """Begin all INSERTs.

        Args:
            told: what the test says of tables, by their names as the test writes them.
            watched: names of views that the test looks at.

        Raises:
            BindError: a table is read, and the test does not say what it holds.
        """
        says = {self.path_of(name): about for name, about in told.items()}
        bound = [self.environment.bind_tree(statement, source) for statement, source in self._statements]
        written = {path for operation in bound for path in _written(operation)}
        views = [name for name in dict.fromkeys(watched) if self._is_view(name)]
        read = {path for operation in [*bound, *map(self._bound_view, views)] for path in _read(operation)}
        for path in sorted(read - written - says.keys(), key=str):
            raise BindError(
                "table-not-given",
                f"The job reads '{path.name}', and the test does not say which rows it holds.",
                hint=f"GIVEN {path.name} and rows; or GIVEN {path.name} NOTHING; or FROM TABLE, which reads what its "
                "connector has",
            )
        for path, table in self._tables.items():
            self._settle_options(table, says.get(path, Given()), path in written)
        self._jobs = [self._job(statement, source) for statement, source in self._statements]
        self._jobs += [self._watching(name) for name in views]
        if not self._is_batch():
            for job in self._jobs:
                self._begin(job)

    def watch(self, name: str) -> None:
        """Look at a view from now on: it is answered over all that was given so far."""
        if self._is_view(name) and replace(self.path_of(name), name=_watched_name(name)) not in self._tables:
            self._jobs.append(self._watching(name))
            if not self._is_batch():
                self._begin(self._jobs[-1])
                self.settle()

    def _is_batch(self) -> bool:
        return self.environment.configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH

    def _job(self, statement: ast.Statement, source: Source) -> Job:
        operation = self.environment.bind_tree(statement, source)
        writes, reads = _written(operation), _read(operation)
        return Job(statement, source, [self._tables[path] for path in writes],
                   [self._tables[path] for path in reads if path in self._tables])  # fmt: skip

    def _begin(self, job: Job) -> None:
        job.client = self.environment.execute(job.statement, job.source, waiting=True).get_job_client()

    # Tables

    def path_of(self, name: str) -> ObjectPath:
        """The object that a name of the test stands for."""
        return self.environment.catalogs.qualify(split_path(name))

    def table(self, name: str) -> Table:
        """A table of the test.

        Raises:
            BindError: it takes no part in the test.
        """
        path = self.path_of(name)
        found = self._tables.get(path) or self._tables.get(replace(path, name=_watched_name(path.name)))
        if found is None:
            raise BindError(
                "table-not-in-test",
                f"'{name}' is neither given nor written by the job.",
                hint="the tables of the test are "
                + ", ".join(sorted(each.path.name for each in self._tables.values())),
            )
        return found

    def definition(self, name: str) -> CatalogTable:
        """The table of the catalog behind a name, for the types of its columns."""
        found = self.environment.catalogs.lookup(self.path_of(name))
        if found is None or not isinstance(found.value, CatalogTable):
            raise BindError("table-not-found", f"There is no table '{name}' to give rows to.")
        return found.value

    def _is_view(self, name: str) -> bool:
        found = self.environment.catalogs.lookup(self.path_of(name))
        return found is not None and not isinstance(found.value, CatalogTable)

    def _bound_view(self, name: str) -> op.Query:
        source = Source(f"SELECT * FROM {name}", "<view>")
        operation = self.environment.bind_tree(parse_statement(source), source)
        assert isinstance(operation, op.Query)
        return operation

    def _watching(self, name: str) -> Job:
        """An INSERT of a view into a table of the test."""
        columns = ", ".join(
            f"`{column.name}` {without_attribute(column.type)}" for column in self._bound_view(name).rel.schema
        )
        target = f"`{_watched_name(self.path_of(name).name)}`"
        self.environment.execute_sql(f"CREATE TEMPORARY TABLE {target} ({columns}) WITH ('connector' = 'print')")
        self._replace(self.path_of(target))
        made = self._tables[self.path_of(target)]
        made.is_written = True
        self._point_to(made, ALL_CHANGES)
        source = Source(f"INSERT INTO {target} SELECT * FROM {name}", "<view>")
        return self._job(parse_statement(source), source)

    def _replace(self, path: ObjectPath) -> None:
        """Let a table of the catalog have the rows of the test."""
        found = self.environment.catalogs.lookup(path)
        if found is None or not isinstance(found.value, CatalogTable):
            return
        table = found.value
        physical = [column for column in table.columns if column.kind is ColumnKind.PHYSICAL]
        metadata = {
            column.metadata_key or column.name: column.type
            for column in table.columns
            if column.kind is ColumnKind.METADATA
        }
        rows = given.GivenRows(metadata, len(physical))
        schema = tuple(Column(column.name, column.type) for column in physical)
        key = tuple(place for place, column in enumerate(physical) if column.name in table.primary_key)
        # LIKE a table that the test has replaced already: the options that it had before.
        like = next((each for each in self._tables.values() if ("rows", each.list_name) in table.options), None)
        original = table if like is None else replace(table, options=like.original.options)
        made = Table(path, original, found.temporary, rows, given.register(rows), schema, key)
        self._tables[path] = made
        self._point_to(made, INSERT_ONLY)

    def _point_to(self, table: Table, mode: ChangelogMode) -> None:
        options = (("connector", given.IDENTIFIER), ("mode", mode_text(mode)), ("rows", table.list_name))
        expectations = tuple(option for option in table.original.options if option[0] == EXPECTATIONS)
        replaced = replace(table.original, options=(*options, *expectations))
        self.environment.catalogs.alter(table.path, replaced, temporary=table.is_temporary)

    def _settle_options(self, table: Table, about: Given, is_written: bool) -> None:
        """Say which changes a table bears, now that it is known how it is used."""
        table.is_written = is_written
        if about.keeps:
            self._take_own_rows(table)
        elif about.mode is not None:
            self._point_to(table, about.mode)
        elif is_written:
            self._point_to(table, _sink_mode(table))

    def _take_own_rows(self, table: Table) -> None:
        """Give a table what its connector has.

        Raises:
            BindError: the connector's rows never end.
        """
        self.environment.catalogs.alter(table.path, table.original, temporary=table.is_temporary)
        columns = _given_columns(table.original)
        source = registry.create_source(ScanSpec(_spec(table), (), ()), {})
        if not source.bounded:
            raise BindError(
                "table-unbounded",
                f"The rows of '{table.path.name}' never end: a test cannot read them all.",
                hint=f"GIVEN {table.path.name} and some rows",
            )
        names = ", ".join(quote_identifier(column.name) for column in columns)
        query = f"SELECT {names} FROM {'.'.join(map(quote_identifier, _names(table.path)))}"
        for batch in self.environment.execute_sql(query).batches():
            table.rows.add(batch)
        self._point_to(table, source.changelog_mode)

    # Steps

    def give(self, name: str, batch: ChangelogBatch) -> None:
        """Rows come to a table; see :func:`~flowsql.testing.rows.typed_batch`."""
        self._open_table(name).rows.add(batch)
        self.settle()

    def advance_watermark(self, name: str, to_ms: int) -> None:
        """The source of a table says how far event time is."""
        self._open_table(name).rows.add(to_ms)
        self.settle()

    def advance_time(self, by_ms: int) -> None:
        """The clock moves, and what waits for it fires."""
        self.clock.advance(by_ms)
        self.settle()

    def end_input(self, name: str | None = None) -> None:
        """A table (or all that are given) has no more rows: its last watermark comes."""
        ending = [self.table(name)] if name else [table for table in self._tables.values() if not table.is_written]
        for table in ending:
            self._end(table)
        self.settle()

    def _end(self, table: Table) -> None:
        if not table.has_ended:
            table.has_ended = True
            table.rows.add(None)

    def _open_table(self, name: str) -> Table:
        table = self.table(name)
        if table.has_ended:
            raise BindError("input-ended", f"The rows of '{name}' have ended already.")
        return table

    def settle(self) -> None:
        """Wait until all that was given has gone through all jobs.

        A barrier goes behind it; a job that reads what another one writes is looked at behind that one.
        """
        readers = sum(any(table.is_written for table in job.reads) for job in self._jobs)
        for _ in range(readers + 1):
            for job in self._jobs:
                if job.client is not None:
                    self._settle(job, job.client)

    def _settle(self, job: Job, client: JobClient) -> None:
        if job.is_over or (job.reads and all(table.has_ended for table in job.reads)):
            self._await(job, client)
            return
        self._savepoints += 1
        try:
            client.trigger_savepoint(f"{self._folder}/{self._savepoints}").result()
        except FlowSqlError:
            # It ended or failed meanwhile.
            self._await(job, client)

    def _await(self, job: Job, client: JobClient) -> None:
        """The end of a job, which is that of the tables that no other one writes."""
        try:
            client.wait()
        except FlowSqlError as error:
            if self.failure is None:
                self.failure = error.within(job.source)
        for table in job.writes:
            if all(other.is_over for other in self._jobs if table in other.writes):
                self._end(table)

    def _run_batch(self) -> None:
        """In batch mode jobs begin when all rows are there: one behind another."""
        for table in self._tables.values():
            if not table.is_written:
                self._end(table)
        while waiting := [job for job in self._jobs if job.client is None]:
            ready = [job for job in waiting if all(table.has_ended for table in job.reads)]
            job = (ready or waiting)[0]
            self._begin(job)
            assert job.client is not None
            self._await(job, job.client)

    # Looking

    def content(self, name: str) -> list[Row]:
        """The rows that a table holds now, as texts, in the order in which they came to be."""
        table = self._looked_at(name)
        return materialized(table.rows.batches(), table.schema, table.primary_key)

    def changes(self, name: str) -> list[Row]:
        """The changes since they were asked for last, each with its kind in front."""
        table = self._looked_at(name)
        happenings = table.rows.since(table.compared)
        table.compared += len(happenings)
        batches = [each for each in happenings if isinstance(each, ChangelogBatch)]
        return [(kind, *cells) for batch in batches for kind, cells in zip(*texts_of(batch, table.schema), strict=True)]

    def _looked_at(self, name: str) -> Table:
        if self._is_batch():
            self._run_batch()
        table = self.table(name)
        if self.failure is not None:
            raise self.failure
        return table

    # Values

    def batch_of(
        self, name: str, names: Sequence[str], rows: Sequence[Sequence[str | None]], kinds: Sequence[str] | None = None
    ) -> ChangelogBatch:
        """Rows of texts as the columns of a table; columns that are not named are NULL."""
        return typed_batch(self._scratch, _given_columns(self.definition(name)), names, rows, kinds)

    def batch_of_values(self, name: str, names: Sequence[str], values: str) -> ChangelogBatch:
        """``VALUES (...), (...)`` as the columns of a table."""
        return batch_of_values(self._scratch, _given_columns(self.definition(name)), names, values)

    def moment_ms(self, expression: str) -> int:
        """Milliseconds since 1970 of an expression that is a moment, as a clock in UTC shows it."""
        return moment_ms(self._scratch, expression)


def _given_columns(table: CatalogTable) -> Schema:
    """The columns that rows can be given: physical ones, then metadata."""
    columns = [column for column in table.columns if column.kind is ColumnKind.PHYSICAL]
    columns += [column for column in table.columns if column.kind is ColumnKind.METADATA]
    return tuple(Column(column.name, column.type) for column in columns)


def _watched_name(name: str) -> str:
    return f"{name} (watched)"


def _names(path: ObjectPath) -> tuple[str, str, str]:
    return path.catalog, path.database, path.name


def _spec(table: Table) -> TableSpec:
    """The table as its own connector sees it."""
    original = table.original
    options = tuple(option for option in original.options if option[0] != EXPECTATIONS)
    return TableSpec(_names(table.path), table.schema, options, original.partition_keys, original.primary_key)


def _sinks(operation: Any) -> list[Sink]:
    match operation:
        case op.Insert(rel=sink):
            return [sink]
        case op.StatementSet(inserts=inserts):
            return [insert.rel for insert in inserts]
    return []


def _written(operation: Any) -> list[ObjectPath]:
    return [ObjectPath(*sink.table.path) for sink in _sinks(operation) if sink.table is not None]


def _read(operation: Any) -> list[ObjectPath]:
    roots = [operation.rel] if isinstance(operation, op.Query) else _sinks(operation)
    paths = (ObjectPath(*node.table.path) for root in roots for node in walk(root) if isinstance(node, Scan))
    return list(dict.fromkeys(paths))


def _sink_mode(table: Table) -> ChangelogMode:
    """The kinds of changes that a table's own connector takes; all where it is not here."""
    try:
        sink = registry.create_sink(SinkSpec(_spec(table), table.schema, INSERT_ONLY), {})
    except FlowSqlError:
        return ALL_CHANGES
    return sink.accepts(ALL_CHANGES)
