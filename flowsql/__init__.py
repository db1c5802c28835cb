"""FlowSQL: Apache Flink's SQL, Table API and DataStream API for Python people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql.common.row import Row as Row
    from flowsql.table.environment_settings import EnvironmentSettings as EnvironmentSettings
    from flowsql.table.session.environment import TableEnvironment as TableEnvironment
    from flowsql.table.table import Table as Table
    from flowsql.table.table_result import TableResult as TableResult
    from flowsql_core.errors import FlowSqlError as FlowSqlError
    from flowsql_core.row import RowKind as RowKind

_HOMES = {
    "EnvironmentSettings": "flowsql.table.environment_settings",
    "FlowSqlError": "flowsql_core.errors",
    "Row": "flowsql.common.row",
    "RowKind": "flowsql_core.row",
    "Table": "flowsql.table.table",
    "TableEnvironment": "flowsql.table.session.environment",
    "TableResult": "flowsql.table.table_result",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
