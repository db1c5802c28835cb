"""What a bound statement asks for: one frozen dataclass per kind, executed by the roof.

``bind_statement`` (``bind/statement.py``) makes them. Those that change the catalog are carried out by
``flowsql_planner.catalog.apply.apply_ddl``; queries and inserts go to the planner; the rest is the session's.
"""

from __future__ import annotations

from dataclasses import field

from flowsql_core.catalog import (
    CatalogDatabase,
    CatalogFunction,
    CatalogPartition,
    CatalogTable,
    CatalogView,
    ObjectPath,
)
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import Schema
from flowsql_planner.logical.nodes import Rel, Sink


@record
class Query:
    """A SELECT, WITH or VALUES whose rows go to the caller."""

    rel: Rel
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """Names and types of the answer, time attributes marked."""
        return self.rel.schema


@record
class Insert:
    """INSERT INTO or OVERWRITE one table."""

    rel: Sink
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class StatementSet:
    """Several INSERTs that run as one job."""

    inserts: tuple[Insert, ...]


@record
class BeginStatementSet:
    """``BEGIN STATEMENT SET`` typed into a shell: collect INSERTs until END."""


@record
class EndStatementSet:
    """``END`` of a collected statement set."""


@record
class Explain:
    """EXPLAIN of a query, an INSERT or a statement set. ``details``: Flink's names, e.g. ``CHANGELOG_MODE``."""

    operation: Query | Insert | StatementSet
    details: tuple[str, ...] = ()


@record
class CreateTable:
    """CREATE [OR REPLACE] [TEMPORARY] TABLE; names, types and expressions are resolved."""

    path: ObjectPath
    table: CatalogTable
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class CreateTableAs:
    """CREATE TABLE ... AS SELECT: create the table, then run ``insert`` (skip both if the table exists and may)."""

    create: CreateTable
    insert: Insert


@record
class CreateView:
    """CREATE [TEMPORARY] VIEW. As in Flink, OR REPLACE replaces nothing: a name that is taken is refused."""

    path: ObjectPath
    view: CatalogView
    temporary: bool = False
    if_not_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class AlterObject:
    """ALTER TABLE or VIEW in the catalog: ``value`` replaces what stands at ``path``; None if only the name changes."""

    path: ObjectPath
    value: CatalogTable | CatalogView | None
    new_name: str | None = None
    temporary: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class DropTable:
    """DROP [TEMPORARY] TABLE."""

    path: ObjectPath
    temporary: bool = False
    if_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class DropView:
    """DROP [TEMPORARY] VIEW."""

    path: ObjectPath
    temporary: bool = False
    if_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class CreateDatabase:
    """CREATE DATABASE."""

    catalog: str
    name: str
    database: CatalogDatabase
    if_not_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class AlterDatabase:
    """ALTER DATABASE ... SET: ``database`` replaces the old one."""

    catalog: str
    name: str
    database: CatalogDatabase
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class DropDatabase:
    """DROP DATABASE; ``cascade`` drops its objects too."""

    catalog: str
    name: str
    if_exists: bool = False
    cascade: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class CreateCatalog:
    """CREATE CATALOG; its options are checked when it is made."""

    name: str
    options: tuple[tuple[str, str], ...]
    comment: str | None = None
    if_not_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class AlterCatalog:
    """ALTER CATALOG: its options and comment from now on."""

    name: str
    options: tuple[tuple[str, str], ...]
    comment: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class DropCatalog:
    """DROP CATALOG."""

    name: str
    if_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class UseCatalog:
    """USE CATALOG."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class UseDatabase:
    """USE [catalog.]database."""

    catalog: str
    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class AddPartitions:
    """ALTER TABLE ... ADD PARTITION."""

    path: ObjectPath
    partitions: tuple[CatalogPartition, ...]
    if_not_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class DropPartitions:
    """ALTER TABLE ... DROP PARTITION."""

    path: ObjectPath
    partitions: tuple[CatalogPartition, ...]
    if_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class CreateFunction:
    """CREATE [TEMPORARY [SYSTEM]] FUNCTION; ``path`` counts by its name alone if ``system``."""

    path: ObjectPath
    function: CatalogFunction
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class AlterFunction:
    """ALTER FUNCTION of a permanent one."""

    path: ObjectPath
    function: CatalogFunction
    if_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class DropFunction:
    """DROP [TEMPORARY [SYSTEM]] FUNCTION."""

    path: ObjectPath
    temporary: bool = False
    system: bool = False
    if_exists: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class LoadModule:
    """LOAD MODULE."""

    name: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class UnloadModule:
    """UNLOAD MODULE."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class UseModules:
    """USE MODULES."""

    names: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class CompilePlan:
    """COMPILE PLAN, and COMPILE AND EXECUTE PLAN (``execute``): the job of ``inserts`` as a file."""

    path: str
    inserts: tuple[Insert, ...]
    if_not_exists: bool = False
    execute: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class ExecutePlan:
    """EXECUTE PLAN: run the job of a file."""

    path: str
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class AnalyzeTable:
    """ANALYZE TABLE: run ``queries`` (one row each) and store what they found.

    ``partitions``: the partition each query is about; empty for a table without. ``columns``: names in the order of the
    answer's groups.
    """

    path: ObjectPath
    query: Query
    columns: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class Rows:
    """An answer that is known already: SHOW and DESCRIBE. ``rows`` hold Python values of ``schema``'s types."""

    schema: Schema
    rows: tuple[tuple[str | bool | None, ...], ...]


@record
class ShowJobs:
    """SHOW JOBS."""


@record
class DescribeJob:
    """DESCRIBE JOB."""

    job_id: str
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class StopJob:
    """STOP JOB; ``drain``: the last watermark is sent before the savepoint."""

    job_id: str
    savepoint: bool
    drain: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class ShowOperators:
    """What a snapshot holds: a row an operator and state."""

    savepoint: str
    span: Span


@record
class SetOption:
    """``SET 'k' = 'v'``."""

    key: str
    value: str
    span: Span | None = field(default=None, compare=False, repr=False)


@record
class ShowOptions:
    """The bare ``SET``: list what is set."""


@record
class ResetOption:
    """``RESET 'k'``, or RESET of everything (``key`` None)."""

    key: str | None = None


@record
class ClientCommand:
    """``QUIT``, ``CLEAR`` or ``HELP``."""

    name: str


@record
class NoOperation:
    """Nothing is left to do, e.g. ALTER ... IF EXISTS of a missing object."""


DdlOperation = (
    CreateTable
    | CreateView
    | AlterObject
    | DropTable
    | DropView
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
    | CreateCatalog
    | AlterCatalog
    | DropCatalog
    | UseCatalog
    | UseDatabase
    | AddPartitions
    | DropPartitions
    | CreateFunction
    | AlterFunction
    | DropFunction
    | LoadModule
    | UnloadModule
    | UseModules
)

Operation = (
    Query
    | Insert
    | StatementSet
    | BeginStatementSet
    | EndStatementSet
    | Explain
    | CreateTableAs
    | Rows
    | ShowJobs
    | DescribeJob
    | StopJob
    | ShowOperators
    | SetOption
    | ShowOptions
    | ResetOption
    | ClientCommand
    | NoOperation
    | CompilePlan
    | ExecutePlan
    | AnalyzeTable
    | DdlOperation
)
