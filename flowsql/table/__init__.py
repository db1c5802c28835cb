"""The Table API under PyFlink's names: ``pyflink.table`` becomes ``flowsql.table``. Names load when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql.common.row import Row as Row
    from flowsql.table.catalog.resolved_schema import ResolvedSchema as ResolvedSchema
    from flowsql.table.changelog_mode import ChangelogMode as ChangelogMode
    from flowsql.table.compiled_plan import CompiledPlan as CompiledPlan
    from flowsql.table.data_view import DataView as DataView
    from flowsql.table.data_view import ListView as ListView
    from flowsql.table.data_view import MapView as MapView
    from flowsql.table.environment_settings import EnvironmentSettings as EnvironmentSettings
    from flowsql.table.explain_detail import ExplainDetail as ExplainDetail
    from flowsql.table.expression import Expression as Expression
    from flowsql.table.module import Module as Module
    from flowsql.table.module import ModuleEntry as ModuleEntry
    from flowsql.table.plan_reference import PlanReference as PlanReference
    from flowsql.table.query.grouped_table import GroupedTable as GroupedTable
    from flowsql.table.query.grouped_table import GroupWindowedTable as GroupWindowedTable
    from flowsql.table.query.grouped_table import OverWindowedTable as OverWindowedTable
    from flowsql.table.query.grouped_table import WindowGroupedTable as WindowGroupedTable
    from flowsql.table.schema import Schema as Schema
    from flowsql.table.session.environment import TableEnvironment as TableEnvironment
    from flowsql.table.session.stream_environment import StreamTableEnvironment as StreamTableEnvironment
    from flowsql.table.sql_dialect import SqlDialect as SqlDialect
    from flowsql.table.statement_set import StatementSet as StatementSet
    from flowsql.table.table import Table as Table
    from flowsql.table.table_config import TableConfig as TableConfig
    from flowsql.table.table_descriptor import FormatDescriptor as FormatDescriptor
    from flowsql.table.table_descriptor import TableDescriptor as TableDescriptor
    from flowsql.table.table_pipeline import TablePipeline as TablePipeline
    from flowsql.table.table_result import ResultKind as ResultKind
    from flowsql.table.table_result import TableResult as TableResult
    from flowsql.table.table_schema import TableSchema as TableSchema
    from flowsql.table.types import DataTypes as DataTypes
    from flowsql.table.types.data_type import UserDefinedType as UserDefinedType
    from flowsql_core.row import RowKind as RowKind
    from flowsql_core.udf import AggregateFunction as AggregateFunction
    from flowsql_core.udf import AsyncScalarFunction as AsyncScalarFunction
    from flowsql_core.udf import FunctionContext as FunctionContext
    from flowsql_core.udf import ScalarFunction as ScalarFunction
    from flowsql_core.udf import TableAggregateFunction as TableAggregateFunction
    from flowsql_core.udf import TableFunction as TableFunction

_HOMES = {
    "AggregateFunction": "flowsql_core.udf",
    "AsyncScalarFunction": "flowsql_core.udf",
    "ChangelogMode": "flowsql.table.changelog_mode",
    "CompiledPlan": "flowsql.table.compiled_plan",
    "DataTypes": "flowsql.table.types",
    "DataView": "flowsql.table.data_view",
    "EnvironmentSettings": "flowsql.table.environment_settings",
    "ExplainDetail": "flowsql.table.explain_detail",
    "Expression": "flowsql.table.expression",
    "FormatDescriptor": "flowsql.table.table_descriptor",
    "FunctionContext": "flowsql_core.udf",
    "GroupWindowedTable": "flowsql.table.query.grouped_table",
    "GroupedTable": "flowsql.table.query.grouped_table",
    "ListView": "flowsql.table.data_view",
    "MapView": "flowsql.table.data_view",
    "Module": "flowsql.table.module",
    "ModuleEntry": "flowsql.table.module",
    "OverWindowedTable": "flowsql.table.query.grouped_table",
    "PlanReference": "flowsql.table.plan_reference",
    "ResolvedSchema": "flowsql.table.catalog.resolved_schema",
    "ResultKind": "flowsql.table.table_result",
    "Row": "flowsql.common.row",
    "RowKind": "flowsql_core.row",
    "ScalarFunction": "flowsql_core.udf",
    "Schema": "flowsql.table.schema",
    "SqlDialect": "flowsql.table.sql_dialect",
    "StatementSet": "flowsql.table.statement_set",
    "StreamTableEnvironment": "flowsql.table.session.stream_environment",
    "Table": "flowsql.table.table",
    "TableAggregateFunction": "flowsql_core.udf",
    "TableConfig": "flowsql.table.table_config",
    "TableDescriptor": "flowsql.table.table_descriptor",
    "TableEnvironment": "flowsql.table.session.environment",
    "TableFunction": "flowsql_core.udf",
    "TablePipeline": "flowsql.table.table_pipeline",
    "TableResult": "flowsql.table.table_result",
    "TableSchema": "flowsql.table.table_schema",
    "UserDefinedType": "flowsql.table.types.data_type",
    "WindowGroupedTable": "flowsql.table.query.grouped_table",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
