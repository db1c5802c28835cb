"""``ExecutionConfig``: how the jobs of an environment run. A view: what is set here is set for the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from flowsql.configuration import set_option
from flowsql_core.config import (
    AUTO_WATERMARK_INTERVAL_MS,
    OBJECT_REUSE,
    PARALLELISM,
    Configuration,
    parse_bool,
    parse_duration_ms,
)

#: Prefix of job parameters in the configuration, as in Flink's ``pipeline.global-job-parameters``.
JOB_PARAMETERS = "pipeline.global-job-parameters"


class ExecutionConfig:
    """Parallelism, watermark interval, object reuse and job parameters of an environment."""

    #: Stands for "as many subtasks as the environment says".
    PARALLELISM_DEFAULT: Final = -1
    #: Stands for "unknown".
    PARALLELISM_UNKNOWN: Final = -2

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._options() == other._options()

    def __hash__(self) -> int:
        return hash(frozenset(self._options().items()))

    def _options(self) -> dict[str, str]:
        return dict(self._configuration.items())

    def get_parallelism(self) -> int:
        """Subtasks of an operator that says nothing itself."""
        return self._configuration.get(PARALLELISM)

    def set_parallelism(self, parallelism: int) -> Self:
        """Subtasks of an operator that says nothing itself."""
        if parallelism < 1:
            raise ValueError("The parallelism of an operator must be at least 1.")
        return self._set(PARALLELISM.key, str(parallelism))

    def get_max_parallelism(self) -> int:
        """Key groups; -1 when they follow from the parallelism."""
        return int(self._configuration.text("pipeline.max-parallelism") or -1)

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Key groups of operators that say nothing themselves."""
        if not 0 < max_parallelism <= 1 << 15:
            raise ValueError(f"Maximum parallelism must be between 1 and {1 << 15}, is {max_parallelism}")
        return self._set("pipeline.max-parallelism", str(max_parallelism))

    def get_auto_watermark_interval(self) -> int:
        """Milliseconds; see ``pipeline.auto-watermark-interval``."""
        return self._configuration.get(AUTO_WATERMARK_INTERVAL_MS)

    def set_auto_watermark_interval(self, interval: int) -> Self:
        """A row that lifts the watermark by more milliseconds than this emits it."""
        if interval < 0:
            raise ValueError("Auto watermark interval must not be negative.")
        return self._set(AUTO_WATERMARK_INTERVAL_MS.key, f"{interval} ms")

    def enable_object_reuse(self) -> Self:
        """Hand objects on inside a chain without copies."""
        return self._set(OBJECT_REUSE.key, "true")

    def disable_object_reuse(self) -> Self:
        """Copy objects between the functions of a chain (the default)."""
        return self._set(OBJECT_REUSE.key, "false")

    def is_object_reuse_enabled(self) -> bool:
        """Whether objects go on without copies."""
        return self._configuration.get(OBJECT_REUSE)

    def set_latency_tracking_interval(self, interval: int) -> Self:
        """Milliseconds between latency markers; 0 sends none."""
        return self._set("metrics.latency.interval", f"{interval} ms")

    def get_latency_tracking_interval(self) -> int:
        """Milliseconds between latency markers; 0 when none are sent."""
        text = self._configuration.text("metrics.latency.interval")
        return 0 if text is None else parse_duration_ms(text)

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, str]) -> Self:
        """Parameters that functions read with ``runtime_context.get_job_parameter(key, default)``."""
        from flowsql.options.flink import with_entry

        pairs = ""
        for key, value in global_job_parameters_dict.items():
            pairs = with_entry(pairs, key, str(value))
        return self._set(JOB_PARAMETERS, pairs)

    def get_global_job_parameters(self) -> dict[str, str]:
        """The parameters of the job."""
        from flowsql_runtime.python.options import global_job_parameters

        return global_job_parameters(self._configuration.text(JOB_PARAMETERS) or "")

    # Settings of Java's closures, serializers and tasks: options like any other, see docs/options.md.

    def enable_closure_cleaner(self) -> Self:
        """``pipeline.closure-cleaner-level``; the default."""
        return self._set("pipeline.closure-cleaner-level", "RECURSIVE")

    def disable_closure_cleaner(self) -> Self:
        """``pipeline.closure-cleaner-level``."""
        return self._set("pipeline.closure-cleaner-level", "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """``pipeline.closure-cleaner-level``."""
        return (self._configuration.text("pipeline.closure-cleaner-level") or "").upper() != "NONE"

    def enable_force_kryo(self) -> Self:
        """``pipeline.force-kryo``."""
        return self._set("pipeline.force-kryo", "true")

    def disable_force_kryo(self) -> Self:
        """``pipeline.force-kryo``; the default."""
        return self._set("pipeline.force-kryo", "false")

    def is_force_kryo_enabled(self) -> bool:
        """``pipeline.force-kryo``."""
        return self._is_set("pipeline.force-kryo")

    def enable_force_avro(self) -> Self:
        """``pipeline.force-avro``."""
        return self._set("pipeline.force-avro", "true")

    def disable_force_avro(self) -> Self:
        """``pipeline.force-avro``; the default."""
        return self._set("pipeline.force-avro", "false")

    def is_force_avro_enabled(self) -> bool:
        """``pipeline.force-avro``."""
        return self._is_set("pipeline.force-avro")

    def enable_generic_types(self) -> Self:
        """``pipeline.generic-types``; the default."""
        return self._set("pipeline.generic-types", "true")

    def disable_generic_types(self) -> Self:
        """``pipeline.generic-types``."""
        return self._set("pipeline.generic-types", "false")

    def has_generic_types_disabled(self) -> bool:
        """``pipeline.generic-types``."""
        return not self._is_set("pipeline.generic-types", True)

    def enable_auto_generated_uids(self) -> Self:
        """``pipeline.auto-generate-uids``; the default."""
        return self._set("pipeline.auto-generate-uids", "true")

    def disable_auto_generated_uids(self) -> Self:
        """``pipeline.auto-generate-uids``."""
        return self._set("pipeline.auto-generate-uids", "false")

    def has_auto_generated_uids_enabled(self) -> bool:
        """``pipeline.auto-generate-uids``."""
        return self._is_set("pipeline.auto-generate-uids", True)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> Self:
        """``execution.checkpointing.snapshot-compression``."""
        return self._set("execution.checkpointing.snapshot-compression", str(use_snapshot_compression).lower())

    def is_use_snapshot_compression(self) -> bool:
        """``execution.checkpointing.snapshot-compression``."""
        return self._is_set("execution.checkpointing.snapshot-compression")

    def set_task_cancellation_interval(self, interval: int) -> Self:
        """``task.cancellation.interval``, in milliseconds."""
        return self._set("task.cancellation.interval", f"{interval} ms")

    def get_task_cancellation_interval(self) -> int:
        """``task.cancellation.interval``, in milliseconds."""
        return parse_duration_ms(self._configuration.text("task.cancellation.interval") or "30 s")

    def set_task_cancellation_timeout(self, timeout: int) -> Self:
        """``task.cancellation.timeout``, in milliseconds."""
        return self._set("task.cancellation.timeout", f"{timeout} ms")

    def get_task_cancellation_timeout(self) -> int:
        """``task.cancellation.timeout``, in milliseconds."""
        return parse_duration_ms(self._configuration.text("task.cancellation.timeout") or "3 min")

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """None: serializers of Java cannot be registered."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """None: types of Java cannot be registered."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """None: types of Java cannot be registered."""
        return []

    def _is_set(self, key: str, default: bool = False) -> bool:
        text = self._configuration.text(key)
        return default if text is None else parse_bool(text)

    def _set(self, key: str, value: str) -> Self:
        set_option(self._configuration, key, value)
        return self
