"""``StreamExecutionEnvironment``: where streams begin, and where their jobs are started."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self

from flowsql.common.configuration import Configuration as UserConfiguration
from flowsql.common.execution_config import ExecutionConfig
from flowsql.common.io import InputFormat
from flowsql.common.public_api import keeps_frames, public_api
from flowsql.common.typeinfo import TypeInformation, Types
from flowsql.common.without_java import WithoutJava
from flowsql.configuration import file_configuration, set_option, warn_program
from flowsql.datastream.checkpointing_mode import CheckpointingMode
from flowsql.datastream.connectors.base import Source
from flowsql.datastream.data_stream import DataStream
from flowsql.datastream.execution_mode import RuntimeExecutionMode
from flowsql.datastream.plan import operators
from flowsql.datastream.plan.transformations import OperatorTransformation, Recorder, SpecMaker, Wishes
from flowsql.datastream.slot_sharing_group import SlotSharingGroup
from flowsql.datastream.source_with_times import SourceStream, with_times
from flowsql.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from flowsql.datastream.values.wrapped_integers import converted
from flowsql.jobs.watch import watch
from flowsql.util.python_packages import check_interpreter, install_requirements
from flowsql_core.config import AUTO_WATERMARK_INTERVAL_MS, PARALLELISM, RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError, PlanError
from flowsql_core.graph.spark import streams_on_spark
from flowsql_core.stream.watermark import WatermarkGenerator, WatermarkStrategy

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.common.job_execution_result import JobExecutionResult
    from flowsql.common.restart_strategy import RestartStrategyConfiguration
    from flowsql.datastream.checkpoint_config import CheckpointConfig
    from flowsql.datastream.plan.graph import PlanBuilder, PlanSettings
    from flowsql_core.graph.job import JobGraph
    from flowsql_runtime.cluster.local import LocalCluster

DEFAULT_JOB_NAME = "Flink Streaming Job"
#: Of what only one subtask can do.
_ONE: Final = Wishes(parallelism=1, parallelism_fixed=True)
RESTART_STRATEGY: Final = "restart-strategy.type"
SAVEPOINT_DIRECTORY: Final = "execution.checkpointing.savepoint-dir"


@public_api
class StreamExecutionEnvironment(WithoutJava):
    """Streams begin here; ``execute`` runs what was recorded since the last time.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.from_collection([1, 2, 3]).map(lambda n: n * n).execute_and_collect(limit=3)
    [1, 4, 9]
    """

    #: What :meth:`set_default_local_parallelism` set.
    _default_parallelism: ClassVar[int | None] = None

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        keeps_frames(configuration)
        self.recorder = Recorder()
        #: Runs every job of the environment within one memory budget; made for the first one.
        self._cluster: LocalCluster | None = None
        self._changelog_state: bool | None = None
        self._state_backend: StateBackend | None = None
        self._checkpoint_config: CheckpointConfig | None = None

    @staticmethod
    def get_execution_environment(configuration: UserConfiguration | None = None) -> StreamExecutionEnvironment:
        """An environment: ``config.yaml`` first, ``configuration`` on top."""
        environment = StreamExecutionEnvironment(file_configuration().with_layer())
        if StreamExecutionEnvironment._default_parallelism is not None:
            environment.set_parallelism(StreamExecutionEnvironment._default_parallelism)
        if configuration is not None:
            environment.configure(configuration)
        return environment

    # Settings

    def get_config(self) -> ExecutionConfig:
        """How jobs run: a view, what is set there counts here."""
        return ExecutionConfig(self.configuration)

    def configure(self, configuration: UserConfiguration) -> None:
        """Take over options.

        Raises:
            BindError: a value does not fit its option.
        """
        for key, value in configuration.to_dict().items():
            set_option(self.configuration, key, value)

    def set_parallelism(self, parallelism: int) -> Self:
        """Subtasks of operators that say nothing themselves, from here on."""
        self.get_config().set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Subtasks of operators that say nothing themselves."""
        return self.configuration.get(PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Key groups of operators that say nothing themselves."""
        self.get_config().set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Key groups of operators that say nothing themselves; -1 when they follow from the parallelism."""
        return self.get_config().get_max_parallelism()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Streaming or batch."""
        set_option(self.configuration, RUNTIME_MODE.key, execution_mode.value)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Longest wait of a row in an exchange, in ms; 0: none; -1: until the buffer is full."""
        if timeout_millis < -1:
            raise ValueError("Timeout of buffer must be non-negative or -1")
        set_option(self.configuration, "execution.buffer-timeout.enabled", str(timeout_millis >= 0).lower())
        if timeout_millis >= 0:
            set_option(self.configuration, "execution.buffer-timeout.interval", f"{timeout_millis} ms")
        return self

    def get_buffer_timeout(self) -> int:
        """Milliseconds, or -1; see :meth:`set_buffer_timeout`."""
        from flowsql_runtime.network.partition import BUFFER_TIMEOUT_ENABLED, BUFFER_TIMEOUT_MS

        return self.configuration.get(BUFFER_TIMEOUT_MS) if self.configuration.get(BUFFER_TIMEOUT_ENABLED) else -1

    def disable_operator_chaining(self) -> Self:
        """Run each operator in a task of its own."""
        set_option(self.configuration, "pipeline.operator-chaining.enabled", "false")
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether neighbouring operators share a task."""
        return self._plan_settings().chaining

    def add_python_file(self, file_path: str) -> None:
        """Let functions import from a file, a folder or an archive: it joins ``sys.path`` of this process."""
        path = Path(file_path)
        if not path.exists():
            raise BindError("python-file-not-found", f"There is no file or folder '{file_path}'.")
        folder = str(path.parent if path.suffix == ".py" else path)
        if folder not in sys.path:
            sys.path.append(folder)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install packages for the functions of this process with pip, into a folder that joins ``sys.path`` in front.

        Args:
            requirements_file_path: a file of requirements, as pip reads it.
            requirements_cache_dir: a folder of packages; with it nothing is downloaded.

        Raises:
            BindError: there is no such file or folder, or pip fails.
        """
        install_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> NoReturn:
        """Refused: functions run in this process."""
        raise _no_effect(
            "add_python_archive",
            "unpack the archive; TableEnvironment.add_python_archive works for functions of the Table API",
        )

    def set_python_executable(self, python_exec: str) -> None:
        """Refused unless it is the Python that runs this program: functions run in this process."""
        check_interpreter(python_exec, "set_python_executable")

    def add_jars(self, *jars_path: str) -> NoReturn:
        """Refused: there is no Java."""
        raise _no_effect("add_jars", "connectors are Python packages here: pip install them")

    def add_classpaths(self, *classpaths: str) -> NoReturn:
        """Refused: there is no Java."""
        raise _no_effect("add_classpaths", "connectors are Python packages here: pip install them")

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Take a checkpoint every so many milliseconds; a job that fails then starts again from the last one.

        Args:
            interval: at least 10.
            mode: whether each row counts exactly once (the default) or at least once after a failure.
        """
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """How checkpoints are taken: a view, what is set there counts here."""
        from flowsql.datastream.checkpoint_config import CheckpointConfig

        if self._checkpoint_config is None:
            self._checkpoint_config = CheckpointConfig(self.configuration)
        return self._checkpoint_config

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between checkpoints; -1: none are taken."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """What checkpoints promise."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """What checkpoints promise."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers overtake rows."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether barriers overtake rows in front of custom partitioners too."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Where state is kept: PyFlink 1's way to say ``state.backend.type`` and options of RocksDB.

        Raises:
            NotSupportedYetError: for anything but a ``HashMapStateBackend`` or an ``EmbeddedRocksDBStateBackend``.
        """
        if not isinstance(state_backend, HashMapStateBackend | EmbeddedRocksDBStateBackend):
            raise NotSupportedYetError(
                f"the state backend {type(state_backend).__name__}",
                hint="HashMapStateBackend or EmbeddedRocksDBStateBackend",
            )
        for key, value in state_backend.options.items():
            set_option(self.configuration, key, value)
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend:
        """Return the state backend that was set, or the one that ``state.backend.type`` names."""
        type_ = self.configuration.text("state.backend.type") or "hashmap"
        if self._state_backend is not None and self._state_backend.options["state.backend.type"] == type_:
            return self._state_backend
        return EmbeddedRocksDBStateBackend() if type_ == "rocksdb" else HashMapStateBackend()

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """Whether and when jobs that failed start again: PyFlink 1's way to say ``restart-strategy.*``."""
        self.configuration.reset(RESTART_STRATEGY)
        for key, value in restart_strategy_configuration.options.items():
            set_option(self.configuration, key, value)
        return self

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Keep the wish, and warn of True: the state backends write snapshots, no changelog beside them."""
        if enabled:
            warn_program("enable_changelog_state_backend has no effect: state backends write snapshots alone.")
        self._changelog_state = enabled
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return what was asked for; None where nobody chose. FlowSQL has no such backend."""
        return self._changelog_state

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """The folder for savepoints that name none."""
        set_option(self.configuration, SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """The folder for savepoints that name none; None when there is none either."""
        return self.configuration.text(SAVEPOINT_DIRECTORY)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Make a group known: operators name it. Groups bear no resources, so that nothing more is kept."""
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise TypeError(f"{slot_sharing_group!r} is not a SlotSharingGroup")
        return self

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """No: they never share a task."""
        return False

    @staticmethod
    def get_default_local_parallelism() -> int:
        """The parallelism of new environments: what was set in this process, else ``parallelism.default``."""
        return StreamExecutionEnvironment._default_parallelism or file_configuration().get(PARALLELISM)

    @staticmethod
    def set_default_local_parallelism(parallelism: int) -> None:
        """Set the parallelism of environments that are made after this, in this process."""
        if parallelism < 1:
            raise ValueError("The parallelism of an operator must be at least 1.")
        StreamExecutionEnvironment._default_parallelism = parallelism

    def create_input(self, input_format: InputFormat, type_info: TypeInformation | None = None) -> DataStream:
        """The records of an input format of a file: ``AvroInputFormat``."""
        if not isinstance(input_format, InputFormat):
            raise TypeError(f"{input_format!r} is not an InputFormat")
        source: Source = input_format.source()
        return self.from_source(source, WatermarkStrategy.no_watermarks(), "Custom File Source", type_info)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> NoReturn:
        """Refused: functions run in this process and open files themselves."""
        raise _no_effect("register_cached_file", "open the file in the function's open()")

    # Sources

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """The elements in order, from one subtask. With a type they are converted, and checked, here.

        Integers of 64 bits that are too large for a BYTE, SHORT or INT are cut to its bits, as in PyFlink.

        Raises:
            TypeError: an element is not of the type.
            ValueError: it does not fit.
        """
        elements: Sequence[Any] = list(collection)
        convert = None if type_info is None else type_info.converter()
        if convert is not None:
            elements = converted(elements, convert, type_info)
        made = operators.collection_source(elements)
        return self._source("Collection Source", made, type_info or Types.PICKLED_BYTE_ARRAY(), _ONE)

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The elements of a connector's source, with times by ``watermark_strategy``."""
        if not isinstance(source, Source):
            raise TypeError(f"{source!r} is not a Source")
        wishes = Wishes(parallelism=self.get_parallelism()) if source.parallel else _ONE
        type_ = type_info or source.produced_type()
        streams = [self._source(source_name, source.spec_maker(), type_, wishes)]
        to_values = source.values_of_columns()
        if to_values is not None:
            streams.append(streams[-1].transform("Values", operators.batch_map(to_values), type_, wishes=wishes))
        makes_watermarks = watermark_strategy.generator is not WatermarkGenerator.NO_WATERMARKS
        # Elements of a source that gives values have no timestamps, so no watermark comes before the end.
        if watermark_strategy.timestamp_assigner is not None or (makes_watermarks and to_values is not None):
            streams.append(with_times(streams[-1], watermark_strategy, wishes))
        return streams[0] if len(streams) == 1 else SourceStream(streams[-1], streams[:-1])

    def add_source(self, source_func: object, source_name: str = "Custom Source", type_info: object = None) -> NoReturn:
        """Refused: source functions are Java."""
        raise NotSupportedYetError("add_source", hint="use from_collection, or a table: to_data_stream(from_path(...))")

    def _source(self, name: str, make_spec: SpecMaker, type_: TypeInformation, wishes: Wishes) -> DataStream:
        made = OperatorTransformation(self.recorder.next_id(), type_, (), name, make_spec, wishes=wishes)
        return DataStream(self, self.recorder.add(made))

    # Jobs

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run what was recorded since the last time, to its end.

        Raises:
            FlowSqlError: the job failed or was cancelled, or could not be started.
        """
        graph = self.job_graph(job_name)
        if sum(vertex.parallelism for vertex in graph.vertices) == 1:
            return self._run_here(graph)
        client = self._submit(graph)
        try:
            return client.get_job_execution_result().result()
        except KeyboardInterrupt:
            client.cancel_and_wait()
            raise

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start what was recorded since the last time."""
        return self._submit(self.job_graph(job_name))

    def get_execution_plan(self) -> str:
        """The job that ``execute`` would run, as JSON; each edge says whether it is chained, and why."""
        from flowsql.datastream.plan.graph import json_plan

        return json_plan(self._built(self.recorder.sinks).plan)

    def job_graph(self, job_name: str | None = None) -> JobGraph:
        """What was recorded since the last time, as the runtime takes it.

        The next call begins anew, also where this one raises an error.

        Raises:
            PlanError: nothing was recorded, or its parts do not fit together.
        """
        from flowsql.datastream.plan.graph import to_job_graph

        ends = list(self.recorder.sinks)
        # Whatever becomes of this job, the next one is without it.
        self.recorder.sinks.clear()
        builder = self._built(ends)
        name = job_name or self.configuration.text("pipeline.name") or DEFAULT_JOB_NAME
        options = {**builder.configuration, **dict(self.configuration.items())}
        if builder.settings.batch:
            # AUTOMATIC is decided here; the runtime takes no checkpoints in batch mode.
            options[RUNTIME_MODE.key] = RuntimeMode.BATCH.value
        return to_job_graph(builder.plan, name, builder.settings, tuple(options.items()))

    def _built(self, ends: Sequence[int]) -> PlanBuilder:
        if streams_on_spark(self.configuration):
            raise NotSupportedYetError(
                "a program of DataStreams on Spark", hint="'execution.target' = 'local' runs it; tables run there"
            )
        if not ends:
            raise PlanError(
                "no-sinks",
                "No operators defined in streaming topology. Cannot execute.",
                hint="end a stream with print() or execute_and_collect()",
            )
        builder = self.new_builder()
        for number in ends:
            builder.add(number)
        return builder

    def parallelism_of(self, stream: DataStream) -> int:
        """Subtasks of the operator that makes a stream."""
        builder = self.new_builder()
        origins = builder.add(stream.number)
        return builder.plan.operators[origins[0].operator].parallelism

    def new_builder(self) -> PlanBuilder:
        """A builder over the streams of this environment."""
        from flowsql.datastream.plan.graph import PlanBuilder

        return PlanBuilder(self.recorder, self._plan_settings())

    def _plan_settings(self) -> PlanSettings:
        from flowsql.datastream.plan.graph import PlanSettings
        from flowsql_planner.translate.options import CHAIN_SINGLE_PARTITION, MAX_PARALLELISM, OPERATOR_CHAINING

        configuration = self.configuration
        # Collections end, so that AUTOMATIC means batch, as in Flink.
        return PlanSettings(
            batch=configuration.get(RUNTIME_MODE) is not RuntimeMode.STREAMING,
            watermark_interval_ms=configuration.get(AUTO_WATERMARK_INTERVAL_MS),
            chaining=configuration.get(OPERATOR_CHAINING),
            chain_single_partition=configuration.get(CHAIN_SINGLE_PARTITION),
            max_parallelism=configuration.get(MAX_PARALLELISM),
        )

    @property
    def cluster(self) -> LocalCluster:
        """What runs the jobs."""
        from flowsql_runtime.cluster.local import LocalCluster

        if self._cluster is None:
            self._cluster = LocalCluster()
        return self._cluster

    def _submit(self, graph: JobGraph) -> JobClient:
        from flowsql.common.job_client import JobClient

        job = self.cluster.submit(graph)
        watch(job)
        return JobClient(job, graph)

    def _run_here(self, graph: JobGraph) -> JobExecutionResult:
        """A job of one task runs in the caller's thread: a breakpoint in a function stops there."""
        from flowsql.common.failure import explain_failure
        from flowsql.common.job_client import JobClient

        try:
            job = self.cluster.run(graph, on_job=watch)
        except FlowSqlError as error:
            explain_failure(error, graph)
            raise
        return JobClient(job, graph).get_job_execution_result().result()

    def close(self) -> None:
        """Nothing is kept open between jobs."""


def _no_effect(method: str, instead: str) -> BindError:
    return BindError(
        "no-effect", f"{method} has no effect: FlowSQL runs functions in this process, without Java.", hint=instead
    )
