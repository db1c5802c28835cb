"""The Table API under PyFlink's names: ``pyflink.table`` becomes ``flowsql.table``. Names load when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql.common.row import Row as Row
    from flowsql.table.config import TableConfig as TableConfig
    from flowsql.table.environment import TableEnvironment as TableEnvironment
    from flowsql.table.result import ResolvedSchema as ResolvedSchema
    from flowsql.table.result import ResultKind as ResultKind
    from flowsql.table.result import TableResult as TableResult
    from flowsql.table.settings import EnvironmentSettings as EnvironmentSettings
    from flowsql.table.statement_set import StatementSet as StatementSet
    from flowsql.table.table import ExplainDetail as ExplainDetail
    from flowsql.table.table import Table as Table
    from flowsql_core.row import ChangelogMode as ChangelogMode
    from flowsql_core.row import RowKind as RowKind

_HOMES = {
    "ChangelogMode": "flowsql_core.row",
    "EnvironmentSettings": "flowsql.table.settings",
    "ExplainDetail": "flowsql.table.table",
    "ResolvedSchema": "flowsql.table.result",
    "ResultKind": "flowsql.table.result",
    "Row": "flowsql.common.row",
    "RowKind": "flowsql_core.row",
    "StatementSet": "flowsql.table.statement_set",
    "Table": "flowsql.table.table",
    "TableConfig": "flowsql.table.config",
    "TableEnvironment": "flowsql.table.environment",
    "TableResult": "flowsql.table.result",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
