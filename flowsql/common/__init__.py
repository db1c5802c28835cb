"""PyFlink's ``pyflink.common`` under FlowSQL's name: what both APIs share. Names load when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.lazy import lazy_names

if TYPE_CHECKING:
    from flowsql.common.completable_future import CompletableFuture as CompletableFuture
    from flowsql.common.config_options import ConfigOption as ConfigOption
    from flowsql.common.config_options import ConfigOptions as ConfigOptions
    from flowsql.common.configuration import Configuration as Configuration
    from flowsql.common.execution_config import ExecutionConfig as ExecutionConfig
    from flowsql.common.input_dependency_constraint import InputDependencyConstraint as InputDependencyConstraint
    from flowsql.common.job_client import JobClient as JobClient
    from flowsql.common.job_execution_result import JobExecutionResult as JobExecutionResult
    from flowsql.common.job_id import JobID as JobID
    from flowsql.common.job_status import JobStatus as JobStatus
    from flowsql.common.restart_strategy import RestartStrategies as RestartStrategies
    from flowsql.common.restart_strategy import RestartStrategyConfiguration as RestartStrategyConfiguration
    from flowsql.common.row import Row as Row
    from flowsql.common.serialization import ByteArraySchema as ByteArraySchema
    from flowsql.common.serialization import DeserializationSchema as DeserializationSchema
    from flowsql.common.serialization import Encoder as Encoder
    from flowsql.common.serialization import RowFieldExtractorSchema as RowFieldExtractorSchema
    from flowsql.common.serialization import SerializationSchema as SerializationSchema
    from flowsql.common.serialization import SimpleStringSchema as SimpleStringSchema
    from flowsql.common.serializer import TypeSerializer as TypeSerializer
    from flowsql.common.time import Duration as Duration
    from flowsql.common.time import Instant as Instant
    from flowsql.common.time import Time as Time
    from flowsql.common.typeinfo import TypeInformation as TypeInformation
    from flowsql.common.typeinfo import Types as Types
    from flowsql.common.watermark_strategy import (
        AssignerWithPeriodicWatermarksWrapper as AssignerWithPeriodicWatermarksWrapper,
    )
    from flowsql.common.watermark_strategy import WatermarkStrategy as WatermarkStrategy
    from flowsql_core.row import RowKind as RowKind

_HOMES = {
    "AssignerWithPeriodicWatermarksWrapper": "flowsql.common.watermark_strategy",
    "ByteArraySchema": "flowsql.common.serialization",
    "CompletableFuture": "flowsql.common.completable_future",
    "ConfigOption": "flowsql.common.config_options",
    "ConfigOptions": "flowsql.common.config_options",
    "Configuration": "flowsql.common.configuration",
    "DeserializationSchema": "flowsql.common.serialization",
    "Duration": "flowsql_core.stream.time",
    "Encoder": "flowsql.common.serialization",
    "ExecutionConfig": "flowsql.common.execution_config",
    "Instant": "flowsql.common.time",
    "InputDependencyConstraint": "flowsql.common.input_dependency_constraint",
    "JobClient": "flowsql.common.job_client",
    "JobExecutionResult": "flowsql.common.job_execution_result",
    "JobID": "flowsql.common.job_id",
    "JobStatus": "flowsql.common.job_status",
    "RestartStrategies": "flowsql.common.restart_strategy",
    "RestartStrategyConfiguration": "flowsql.common.restart_strategy",
    "Row": "flowsql.common.row",
    "RowKind": "flowsql_core.row",
    "SerializationSchema": "flowsql.common.serialization",
    "RowFieldExtractorSchema": "flowsql.common.serialization",
    "SimpleStringSchema": "flowsql.common.serialization",
    "Time": "flowsql_core.stream.time",
    "TypeSerializer": "flowsql.common.serializer",
    "TypeInformation": "flowsql.common.typeinfo",
    "Types": "flowsql.common.typeinfo",
    "WatermarkStrategy": "flowsql.common.watermark_strategy",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
