"""Statements as written that read or change data, and the union of all statements.

What defines objects is in ``ddl``, what concerns the session in ``session``, SHOW and DESCRIBE in ``inspection``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Identifier, Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.ddl import DdlStatement, PartitionSpec
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.inspection import (
        Describe,
        DescribeJob,
        DescribeStatement,
        Show,
        ShowCreate,
        ShowCurrent,
        ShowOperators,
    )
    from flowsql_grammar.ast.query import Hint, Query, Relation
    from flowsql_grammar.ast.session import (
        AddJar,
        Call,
        LoadModule,
        RemoveJar,
        Reset,
        Set,
        StopJob,
        UnloadModule,
        UseCatalog,
        UseDatabase,
        UseModules,
    )


class QueryStatement(Node):
    """A query on its own."""

    query: Query


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


class MergeInsert(Node):
    """``WHEN NOT MATCHED THEN INSERT [(columns)] VALUES (values)``."""

    columns: tuple[Name, ...]
    values: tuple[Expression, ...]


class Merge(Node):
    """``MERGE INTO t [[AS] alias] USING source ON condition`` and what happens; at least one of the two."""

    target: Identifier
    source: Relation
    condition: Expression
    update: tuple[Assignment, ...] = ()
    insert: MergeInsert | None = None
    alias: Name | None = None


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


class ExplainDetail(StrEnum):
    """What EXPLAIN adds; LINEAGE stands alone, and in the place of the plans."""

    ESTIMATED_COST = "ESTIMATED_COST"
    CHANGELOG_MODE = "CHANGELOG_MODE"
    JSON_EXECUTION_PLAN = "JSON_EXECUTION_PLAN"
    PLAN_ADVICE = "PLAN_ADVICE"
    LINEAGE = "LINEAGE"


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


class ClientCommandKind(StrEnum):
    """Commands of the shell itself."""

    QUIT = "QUIT"
    CLEAR = "CLEAR"
    HELP = "HELP"


class ClientCommand(Node):
    """``QUIT`` (or ``EXIT``), ``CLEAR``, ``HELP``."""

    kind: ClientCommandKind


Runnable: TypeAlias = "QueryStatement | Insert | Update | Delete | StatementSet"
"""What has a plan."""

Statement: TypeAlias = (
    "QueryStatement | Insert | Update | Delete | Merge | Truncate | StatementSet | BeginStatementSet |"
    " EndStatementSet | Execute | Explain | CompilePlan | ExecutePlan | CompileAndExecutePlan | Set | Reset |"
    " UseCatalog | UseDatabase | UseModules | LoadModule | UnloadModule | AddJar | RemoveJar | Call | StopJob |"
    " ClientCommand | Show | ShowCurrent | ShowCreate | ShowOperators | Describe | DescribeStatement | DescribeJob |"
    " DdlStatement"
)
