"""``ExecutionConfig``: how the jobs of an environment run. A view: what is set here is set for the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn, Self

from flowsql.configuration import set_option
from flowsql_core.config import AUTO_WATERMARK_INTERVAL_MS, OBJECT_REUSE, PARALLELISM, Configuration, parse_duration_ms
from flowsql_core.errors import BindError

#: Prefix of job parameters in the configuration, as in Flink's ``pipeline.global-job-parameters``.
JOB_PARAMETERS = "pipeline.global-job-parameters"


#: What PyFlink's class has beside: settings of Java's serializers, tasks and snapshots.
_WITHOUT_EFFECT: Final = frozenset(
    {
        "disable_auto_generated_uids",
        "disable_closure_cleaner",
        "disable_force_avro",
        "disable_force_kryo",
        "disable_generic_types",
        "enable_auto_generated_uids",
        "enable_closure_cleaner",
        "enable_force_avro",
        "enable_force_kryo",
        "enable_generic_types",
        "get_default_kryo_serializer_classes",
        "get_registered_kryo_types",
        "get_registered_pojo_types",
        "get_registered_types_with_kryo_serializer_classes",
        "get_task_cancellation_interval",
        "get_task_cancellation_timeout",
        "has_auto_generated_uids_enabled",
        "has_generic_types_disabled",
        "is_closure_cleaner_enabled",
        "is_force_avro_enabled",
        "is_force_kryo_enabled",
        "is_use_snapshot_compression",
        "set_task_cancellation_interval",
        "set_task_cancellation_timeout",
        "set_use_snapshot_compression",
    }
)


class ExecutionConfig:
    """Parallelism, watermark interval, object reuse and job parameters of an environment."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

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
        return self._set(JOB_PARAMETERS, ",".join(f"{k}:{v}" for k, v in global_job_parameters_dict.items()))

    def get_global_job_parameters(self) -> dict[str, str]:
        """The parameters of the job."""
        text = self._configuration.text(JOB_PARAMETERS) or ""
        pairs = (item.partition(":") for item in text.split(",") if item)
        return {key: value for key, _, value in pairs}

    def __getattr__(self, name: str) -> NoReturn:
        if name in _WITHOUT_EFFECT:
            raise BindError(
                "no-effect",
                f"{name} has no effect: FlowSQL has no Java serializers, tasks or snapshots.",
                hint="leave it out",
            )
        raise AttributeError(f"'ExecutionConfig' object has no attribute '{name}'")

    def _set(self, key: str, value: str) -> Self:
        set_option(self._configuration, key, value)
        return self
