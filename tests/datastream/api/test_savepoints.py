"""Programs of streams that take checkpoints, are stopped with a savepoint, fail, and go on with their state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Configuration, Duration, JobStatus, RestartStrategies, Types, WatermarkStrategy
from flowsql.common.job_client import JobClient
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flowsql.datastream.state import ValueStateDescriptor
from flowsql.jobs.everywhere import act_on
from flowsql.jobs.watch import JOBS
from flowsql_core.clock import ManualClock
from flowsql_core.element import SnapshotKind
from flowsql_core.errors import BindError, ExecutionError
from flowsql_runtime.checkpoint.settings import CheckpointSettings
from flowsql_runtime.checkpoint.storage import LocalFolder
from flowsql_runtime.cluster.local import LocalCluster

from ...cold_state import BACKENDS, ColdOperators

WAIT_S = 20.0
KEYS = 5
ELEMENTS = 400
#: Clock of the timers of processing time: set in the first run, due in the second.
ALARM_MS = 5_000


def eventually(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.002)


class Gate:
    """Holds the source's task: slow while closed, until opened; the last element waits for ``end``."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.end = threading.Event()

    def __deepcopy__(self, memo: Any) -> Gate:
        return self

    def pass_one(self, number: int) -> None:
        if number >= 50:
            self.opened.wait(0.02)
        if number == ELEMENTS - 1:
            assert self.end.wait(WAIT_S)


class Counting(KeyedProcessFunction):
    """Counts per key; an event timer behind each element, one alarm of the clock per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count == 1:
            ctx.timer_service().register_processing_time_timer(ALARM_MS)
        ctx.timer_service().register_event_time_timer(value[1] + 73)
        yield ("element", value[0], count)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        domain = "alarm" if timestamp == ALARM_MS else "event"
        yield (domain, ctx.get_current_key(), timestamp)


class Times(TimestampAssigner):
    """The second field of an element."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def element(number: int) -> tuple[int, int]:
    return (number % KEYS, 10_000 + number * 10)


class Program:
    """Numbers -> gate -> counts per key -> a list."""

    def __init__(
        self,
        parallelism: int,
        restored: str | None = None,
        uid: str | None = None,
        extra: bool = False,
        backend: str = "hashmap",
    ):
        options = Configuration()
        for key, value in BACKENDS[backend].items():
            options.set_string(key, value)
        options.set_string("flowsql.source.batch-rows", "1")
        if restored is not None:
            options.set_string("execution.state-recovery.path", restored)
        self.env = StreamExecutionEnvironment.get_execution_environment(options)
        self.env.set_parallelism(parallelism)
        self.clock = ManualClock(1_000)
        self.env._cluster = LocalCluster(self.clock)
        self.gate = Gate()
        self.found: list[Any] = []
        gate, found = self.gate, self.found

        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())

        def let_through(number: int) -> Any:
            gate.pass_one(number)
            return element(number)

        stream = self.env.from_collection(range(ELEMENTS)).map(let_through).set_parallelism(1)
        if extra:
            stream = stream.map(lambda value: value).set_parallelism(1)
        stream = stream.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
        counts = stream.key_by(lambda value: value[0]).process(Counting())
        if uid is not None:
            stream.uid("times")
            counts = counts.uid(uid)
        counts.map(found.append).print()

    def start(self) -> JobClient:
        return self.env.execute_async("counts")


def undisturbed() -> list[Any]:
    elements = [("element", number % KEYS, number // KEYS + 1) for number in range(ELEMENTS)]
    events = [("event", number % KEYS, element(number)[1] + 73) for number in range(ELEMENTS)]
    return sorted(elements + events + [("alarm", key, ALARM_MS) for key in range(KEYS)])


def stop(program: Program, directory: Path, drain: bool = False) -> str:
    client = program.start()
    eventually(lambda: len(program.found) > 20, "the first results")
    path = client.stop_with_savepoint(drain, str(directory)).result()
    assert client.get_job_status() is JobStatus.FINISHED
    return path


def finish(program: Program) -> None:
    client = program.start()
    program.gate.opened.set()
    # The alarms were set before the savepoint: they ring in the second run.
    program.clock.advance(ALARM_MS)
    eventually(lambda: sum(found[0] == "alarm" for found in program.found) == KEYS, "the alarms")
    program.gate.end.set()
    client.wait(WAIT_S)


@pytest.mark.parametrize(
    ("before", "after", "backends"),
    [
        (1, 1, ("hashmap", "hashmap")),
        (2, 3, ("hashmap", "hashmap")),
        (3, 1, ("hashmap", "rocksdb")),
        (1, 2, ("rocksdb", "hashmap")),
        (2, 4, ("rocksdb", "rocksdb")),
    ],
)
def test_state_and_timers_of_both_domains_go_on_from_a_savepoint(
    tmp_path: Path, before: int, after: int, backends: tuple[str, str], cold_operators: ColdOperators
) -> None:
    first = Program(before, backend=backends[0])
    path = stop(first, tmp_path)
    assert Path(path, "_metadata").is_file()
    assert len(first.found) < ELEMENTS
    assert bool(cold_operators.written()) == (backends[0] == "rocksdb")
    cold_operators.clear()
    second = Program(after, restored=path, backend=backends[1])
    finish(second)
    assert sorted(first.found + second.found) == undisturbed()
    assert bool(cold_operators.written()) == (backends[1] == "rocksdb")


def test_draining_fires_event_timers_before_the_savepoint(tmp_path: Path) -> None:
    program = Program(2)
    stop(program, tmp_path, drain=True)
    elements = sum(found[0] == "element" for found in program.found)
    assert sum(found[0] == "event" for found in program.found) == elements < ELEMENTS


def test_a_uid_finds_the_state_of_a_changed_program(tmp_path: Path) -> None:
    first = Program(1, uid="counts")
    path = stop(first, tmp_path)
    second = Program(2, restored=path, uid="counts", extra=True)
    # The source reads on where it stood: its place in the program is the same.
    finish(second)
    assert sorted(first.found + second.found) == undisturbed()


def test_state_that_no_operator_takes_is_refused(tmp_path: Path) -> None:
    path = stop(Program(1, uid="counts"), tmp_path)
    with pytest.raises(BindError, match="state that no operator of the job takes: counts"):
        Program(1, restored=path, uid="others").start()


def test_a_savepoint_beside_the_running_job(tmp_path: Path) -> None:
    program = Program(2)
    program.env.set_default_savepoint_directory(str(tmp_path))
    client = program.start()
    eventually(lambda: len(program.found) > 20, "the first results")
    future = client.trigger_savepoint()
    path = future.result()
    assert future.done()
    assert client.get_job_status() is JobStatus.RUNNING
    assert Path(path).parent == tmp_path
    client.cancel_and_wait()
    with pytest.raises(ExecutionError, match="there is nothing to save"):
        client.trigger_savepoint()


def test_a_savepoint_needs_a_folder() -> None:
    program = Program(1)
    client = program.start()
    with pytest.raises(ExecutionError, match="No folder for the savepoint is known") as refused:
        client.stop_with_savepoint(False)
    assert "execution.checkpointing.savepoint-dir" in refused.value.render()
    client.cancel_and_wait()


class Alone:
    """A program of one task, which runs in the thread that executes it."""

    def __init__(self) -> None:
        self.env = environment()
        self.env.configure(_options({"flowsql.source.batch-rows": "1"}))
        never = threading.Event()
        self.env.from_collection(range(10_000)).map(lambda number: never.wait(0.01)).print()
        self.ended: list[Any] = []
        self.thread = threading.Thread(target=self._execute)
        known = {info.id for info in JOBS.infos()}
        self.thread.start()
        self.job: list[str] = []

        def found() -> bool:
            self.job = [info.id for info in JOBS.infos() if info.is_running and info.id not in known]
            return bool(self.job)

        eventually(found, "the job")

    def _execute(self) -> None:
        try:
            self.ended.append(self.env.execute("alone"))
        except ExecutionError as error:
            self.ended.append(error)


def test_a_program_that_runs_in_its_own_thread_is_stopped_from_another(tmp_path: Path) -> None:
    program = Alone()
    path = act_on("stop", program.job[0], directory=str(tmp_path))["path"]
    program.thread.join(WAIT_S)
    assert Path(path, "_metadata").is_file()
    assert program.ended[0].get_job_id() == program.job[0]


def test_whoever_waits_for_a_cancelled_program_hears_of_it() -> None:
    program = Alone()
    act_on("cancel", program.job[0])
    program.thread.join(WAIT_S)
    assert str(program.ended[0]) == "Job was cancelled."
    # Who leaves an iterator ends the job itself: that is no error.
    with environment().from_collection(range(1_000_000)).execute_and_collect() as values:
        assert next(values) == 0


def test_a_savepoint_that_is_asked_for_at_the_jobs_end_is_answered(tmp_path: Path) -> None:
    program = Program(1)
    program.env.enable_checkpointing(1_000)
    client = program.start()
    eventually(lambda: program.found, "the first results")
    master: Any = client._job.master
    coordinator = master._coordinator
    client.cancel_and_wait()
    with pytest.raises(ExecutionError, match="the job is not running"):
        coordinator.savepoint(LocalFolder(str(tmp_path)), SnapshotKind.SAVEPOINT).result(WAIT_S)


def test_a_job_that_ends_gets_no_coordinator_any_more(tmp_path: Path) -> None:
    """Its savepoint would never be answered."""
    program = Program(1)
    client = program.start()
    eventually(lambda: program.found, "the first results")
    master: Any = client._job.master
    client.cancel_and_wait()
    assert master._coordinator is None
    with pytest.raises(ExecutionError, match="ends: only a running job can be saved"):
        master.savepoint(str(tmp_path), SnapshotKind.SAVEPOINT)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.BATCH, RuntimeExecutionMode.AUTOMATIC])
def test_batch_mode_has_no_snapshots(tmp_path: Path, mode: RuntimeExecutionMode) -> None:
    env = environment().set_runtime_mode(mode).enable_checkpointing(10)
    gate = threading.Event()
    env.from_collection([1]).map(lambda value: gate.wait(WAIT_S)).print()
    client = env.execute_async()
    with pytest.raises(ExecutionError, match=f"Job {client.get_job_id()} is not a streaming job"):
        client.trigger_savepoint(str(tmp_path))
    gate.set()
    client.wait(WAIT_S)


class Failing(Counting):
    """Fails once, behind a checkpoint."""

    failed = threading.Event()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if value[1] >= element(300)[1] and not Failing.failed.is_set():
            Failing.failed.set()
            raise ValueError("once")
        yield from super().process_element(value, ctx)


def test_a_failed_program_starts_again_from_its_checkpoint() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(_options({"flowsql.source.batch-rows": "1"}))
    env.enable_checkpointing(10).set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    Failing.failed.clear()

    def slowly(number: int) -> Any:
        time.sleep(0.0005)
        return element(number)

    counts = env.from_collection(range(ELEMENTS)).map(slowly).key_by(lambda value: value[0]).process(Failing())
    found = sorted(value for value in counts.execute_and_collect() if value[0] == "element")
    assert Failing.failed.is_set()
    assert found == [one for one in undisturbed() if one[0] == "element"]


def test_restarts_are_told_with_their_causes() -> None:
    env = environment().enable_checkpointing(10)
    # An hour: the job waits for its restart until it is cancelled.
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 3_600_000))
    env.from_collection([1, 0]).map(lambda value: 1 // value).print()
    client = env.execute_async("division")
    eventually(lambda: client.get_job_status() is JobStatus.RESTARTING, "the restart")
    told: list[Any] = []
    client.on_restart(told.append)
    [restart] = told
    assert (restart.job, restart.number, restart.delay_ms) == ("division", 1, 3_600_000)
    assert "ZeroDivisionError" in str(restart.cause)
    with pytest.raises(ExecutionError, match="is RESTARTING: only a running job can be saved"):
        client.trigger_savepoint("/tmp")
    client.cancel_and_wait()
    assert client.get_job_status() is JobStatus.CANCELED


def _options(values: dict[str, str]) -> Configuration:
    options = Configuration()
    for key, value in values.items():
        options.set_string(key, value)
    return options


# -- settings


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_checkpoint_config_begins_with_flinks_values() -> None:
    env = environment()
    config = env.get_checkpoint_config()
    assert not config.is_checkpointing_enabled()
    # Flink, while no checkpoints are taken.
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert config.get_checkpoint_interval() == env.get_checkpoint_interval() == -1
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_min_pause_between_checkpoints() == 0
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.is_fail_on_checkpointing_errors()
    assert config.get_tolerable_checkpoint_failure_number() == 0
    assert not config.is_externalized_checkpoints_enabled()
    assert config.get_externalized_checkpoint_retention() is ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    assert not config.is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout().to_milliseconds() == 0
    assert env.get_default_savepoint_directory() is None


def test_checkpoint_config_is_the_environments() -> None:
    env = environment()
    env.enable_checkpointing(1_000, CheckpointingMode.AT_LEAST_ONCE)
    config = env.get_checkpoint_config()
    assert env.get_checkpoint_interval() == 1_000
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    config.set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE).set_checkpoint_timeout(20_000)
    config.set_min_pause_between_checkpoints(5).set_max_concurrent_checkpoints(2)
    config.set_fail_on_checkpointing_errors(False)
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    config.set_checkpoint_storage(FileSystemCheckpointStorage("/tmp/c", 100))
    again = env.get_checkpoint_config()
    assert again.is_externalized_checkpoints_enabled()
    assert again.get_tolerable_checkpoint_failure_number() == 2**31 - 1
    assert {key: value for key, value in env.configuration.items() if "checkpointing" in key} == {
        "execution.checkpointing.interval": "1000 ms",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.timeout": "20000 ms",
        "execution.checkpointing.min-pause": "5 ms",
        "execution.checkpointing.max-concurrent-checkpoints": "2",
        "execution.checkpointing.tolerable-failed-checkpoints": "2147483647",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": "/tmp/c",
        "execution.checkpointing.data-inline-threshold": "100 b",
    }
    config.set_checkpoint_storage(JobManagerCheckpointStorage())
    assert env.configuration.text("execution.checkpointing.storage") == "jobmanager"


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("set_checkpoint_interval", 9, "Checkpoint interval must be larger than or equal to 10 ms"),
        ("set_checkpoint_timeout", 9, "Checkpoint timeout must be larger than or equal to 10 ms"),
        ("set_min_pause_between_checkpoints", -1, "Pause value must be zero or positive"),
        ("set_max_concurrent_checkpoints", 0, "The maximum number of concurrent attempts must be at least one."),
        ("set_tolerable_checkpoint_failure_number", -1, "The tolerable failure checkpoint number must be non-negative"),
    ],
)
def test_what_is_out_of_range_is_refused_with_flinks_text(method: str, value: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(environment().get_checkpoint_config(), method)(value)


def test_unaligned_checkpoints_are_options() -> None:
    env = environment().enable_checkpointing(1_000)
    config = env.get_checkpoint_config().enable_unaligned_checkpoints()
    config.set_alignment_timeout(Duration.of_seconds(2))
    assert env.is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout().to_milliseconds() == 2_000
    assert CheckpointSettings.of(env.configuration).unaligned_after_ms == 2_000
    # As in Flink: barriers that do not wait need not overtake.
    config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    assert not env.is_unaligned_checkpoints_enabled()
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert not config.is_force_unaligned_checkpoints()
    config.set_force_unaligned_checkpoints()
    assert env.is_force_unaligned_checkpoints()


def test_restart_strategies_are_options() -> None:
    env = environment()
    env.set_restart_strategy(RestartStrategies.failure_rate_restart(3, 60_000, 500))
    assert {key: value for key, value in env.configuration.items() if key.startswith("restart")} == {
        "restart-strategy.type": "failure-rate",
        "restart-strategy.failure-rate.max-failures-per-interval": "3",
        "restart-strategy.failure-rate.failure-rate-interval": "60000 ms",
        "restart-strategy.failure-rate.delay": "500 ms",
    }
    env.set_restart_strategy(RestartStrategies.fall_back_restart())
    assert env.configuration.text("restart-strategy.type") is None
    assert RestartStrategies.no_restart() == RestartStrategies.no_restart() != RestartStrategies.fall_back_restart()
    with pytest.raises(TypeError, match="only supports integer and"):
        RestartStrategies.fixed_delay_restart(3, "1 s")  # type: ignore[arg-type]
