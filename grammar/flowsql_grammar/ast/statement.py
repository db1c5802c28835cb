"""Statements as written: queries, changes of data, sessions, jobs, inspection. What defines objects is in ``ddl``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.ddl import DdlStatement, Option, PartitionSpec
from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.expression import Expression, FunctionCall
    from flowsql_grammar.ast.query import Hint, Query


class QueryStatement(Node):
    """A query on its own."""

    query: Query


# Changes of data


class ConflictAction(StrEnum):
    """What a sink does with a second row of the same key."""

    NOTHING = "NOTHING"
    ERROR = "ERROR"
    DEDUPLICATE = "DEDUPLICATE"


class Insert(Node):
    """``INSERT INTO | OVERWRITE, UPSERT INTO t [hints] [PARTITION ()] [(columns)] query [ON CONFLICT ...]``."""

    target: Identifier
    query: Query
    columns: tuple[Identifier, ...] = ()
    partition: PartitionSpec | None = None
    overwrite: bool = False
    hints: tuple[Hint, ...] = ()
    on_conflict: ConflictAction | None = None
    upsert: bool = False


class Assignment(Node):
    """``column = value`` of UPDATE."""

    column: Name
    value: Expression


class Update(Node):
    """``UPDATE t [[AS] alias] SET a = 1, ... [WHERE condition]``."""

    target: Identifier
    assignments: tuple[Assignment, ...]
    where: Expression | None = None
    alias: Name | None = None
    hints: tuple[Hint, ...] = ()


class Delete(Node):
    """``DELETE FROM t [[AS] alias] [WHERE condition]``."""

    target: Identifier
    where: Expression | None = None
    alias: Name | None = None
    hints: tuple[Hint, ...] = ()


class Truncate(Node):
    """``TRUNCATE TABLE t``."""

    target: Identifier


class StatementSet(Node):
    """``[EXECUTE] STATEMENT SET BEGIN ...; END`` or a whole ``BEGIN STATEMENT SET; ...; END``: one job."""

    statements: tuple[Insert, ...]


class BeginStatementSet(Node):
    """``BEGIN STATEMENT SET`` alone, as typed into a shell: the statements follow one by one."""


class EndStatementSet(Node):
    """``END`` alone."""


class Execute(Node):
    """``EXECUTE query`` or ``EXECUTE INSERT ...``; statement sets and plans have nodes of their own."""

    statement: Runnable


# Plans


class ExplainDetail(StrEnum):
    """What EXPLAIN adds."""

    ESTIMATED_COST = "ESTIMATED_COST"
    CHANGELOG_MODE = "CHANGELOG_MODE"
    JSON_EXECUTION_PLAN = "JSON_EXECUTION_PLAN"
    PLAN_ADVICE = "PLAN_ADVICE"


class Explain(Node):
    """``EXPLAIN [details | PLAN FOR] statement``."""

    statement: Statement
    details: tuple[ExplainDetail, ...] = ()


class CompilePlan(Node):
    """``COMPILE PLAN 'path' [IF NOT EXISTS] FOR statement``."""

    path: str
    statement: Runnable
    if_not_exists: bool = False


class ExecutePlan(Node):
    """``EXECUTE PLAN 'path'``."""

    path: str


class CompileAndExecutePlan(Node):
    """``COMPILE AND EXECUTE PLAN 'path' FOR statement``."""

    path: str
    statement: Runnable


# Session


class Set(Node):
    """``SET 'k' = 'v'``; both None for the bare SET, which lists."""

    key: str | None = None
    value: str | None = None


class Reset(Node):
    """``RESET 'k'``; None for all."""

    key: str | None = None


class UseCatalog(Node):
    """``USE CATALOG c``."""

    name: Name


class UseDatabase(Node):
    """``USE [catalog.]database``."""

    name: Identifier


class UseModules(Node):
    """``USE MODULES a, b``."""

    names: tuple[Name, ...]


class LoadModule(Node):
    """``LOAD MODULE m [WITH (...)]``."""

    name: Name
    options: tuple[Option, ...] = ()


class UnloadModule(Node):
    """``UNLOAD MODULE m``."""

    name: Name


class AddJar(Node):
    """``ADD JAR 'path'``."""

    path: str


class RemoveJar(Node):
    """``REMOVE JAR 'path'``."""

    path: str


class Call(Node):
    """``CALL procedure(args)``."""

    call: FunctionCall


class StopJob(Node):
    """``STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]``."""

    job_id: str
    with_savepoint: bool = False
    with_drain: bool = False


class ClientCommandKind(StrEnum):
    """Commands of the shell itself."""

    QUIT = "QUIT"
    CLEAR = "CLEAR"
    HELP = "HELP"


class ClientCommand(Node):
    """``QUIT`` (or ``EXIT``), ``CLEAR``, ``HELP``."""

    kind: ClientCommandKind


# Inspection


class ShowKind(StrEnum):
    """What SHOW lists."""

    CATALOGS = "CATALOGS"
    DATABASES = "DATABASES"
    TABLES = "TABLES"
    VIEWS = "VIEWS"
    MATERIALIZED_TABLES = "MATERIALIZED TABLES"
    FUNCTIONS = "FUNCTIONS"
    USER_FUNCTIONS = "USER FUNCTIONS"
    PROCEDURES = "PROCEDURES"
    COLUMNS = "COLUMNS"
    PARTITIONS = "PARTITIONS"
    MODELS = "MODELS"
    CONNECTIONS = "CONNECTIONS"
    MODULES = "MODULES"
    FULL_MODULES = "FULL MODULES"
    JARS = "JARS"
    JOBS = "JOBS"


class Preposition(StrEnum):
    """The word in front of the place; no difference in meaning."""

    FROM = "FROM"
    IN = "IN"


class ShowLike(Node):
    """``[NOT] LIKE 'pattern'`` or ``ILIKE``, which ignores case."""

    pattern: str
    negated: bool = False
    ignore_case: bool = False


class Show(Node):
    """``SHOW kind [FROM | IN place] [[NOT] LIKE 'p']``; for COLUMNS and PARTITIONS the place is the table."""

    kind: ShowKind
    place: Identifier | None = None
    like: ShowLike | None = None
    partition: PartitionSpec | None = None
    preposition: Preposition | None = None


class ShowCurrentKind(StrEnum):
    """What SHOW CURRENT tells."""

    CATALOG = "CATALOG"
    DATABASE = "DATABASE"


class ShowCurrent(Node):
    """``SHOW CURRENT CATALOG | DATABASE``."""

    kind: ShowCurrentKind


class ShowCreateKind(StrEnum):
    """What SHOW CREATE writes out."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    MATERIALIZED_TABLE = "MATERIALIZED TABLE"
    CATALOG = "CATALOG"
    MODEL = "MODEL"
    CONNECTION = "CONNECTION"


class ShowCreate(Node):
    """``SHOW CREATE TABLE t``."""

    kind: ShowCreateKind
    name: Identifier


class DescribeKind(StrEnum):
    """What DESCRIBE looks at."""

    TABLE = "TABLE"
    CATALOG = "CATALOG"
    DATABASE = "DATABASE"
    FUNCTION = "FUNCTION"
    MODEL = "MODEL"
    CONNECTION = "CONNECTION"


class Describe(Node):
    """``DESCRIBE [kind] [EXTENDED] name``; a table, view or materialized table has no word for its kind."""

    kind: DescribeKind
    name: Identifier
    extended: bool = False


class DescribeJob(Node):
    """``DESCRIBE JOB 'id'``."""

    job_id: str


Runnable: TypeAlias = "QueryStatement | Insert | Update | Delete | StatementSet"
"""What has a plan."""

Statement = (
    QueryStatement
    | Insert
    | Update
    | Delete
    | Truncate
    | StatementSet
    | BeginStatementSet
    | EndStatementSet
    | Execute
    | Explain
    | CompilePlan
    | ExecutePlan
    | CompileAndExecutePlan
    | Set
    | Reset
    | UseCatalog
    | UseDatabase
    | UseModules
    | LoadModule
    | UnloadModule
    | AddJar
    | RemoveJar
    | Call
    | StopJob
    | ClientCommand
    | Show
    | ShowCurrent
    | ShowCreate
    | Describe
    | DescribeJob
    | DdlStatement
)
