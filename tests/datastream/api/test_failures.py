"""What a program sees when one of its functions fails: its own exception first, then the place and the element."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Configuration, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoMapFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from flowsql.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flowsql.datastream.window import GlobalWindows, Trigger, TriggerResult
from flowsql_core.errors import ExecutionError

from ...cold_state import COLD

Env = StreamExecutionEnvironment
RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())


def boom(*arguments: Any) -> Any:
    raise ValueError(f"boom {arguments[0]!r}")


class Stamps(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(boom(value))


class Opens(MapFunction):
    def open(self, runtime_context: Any) -> None:
        boom("open")

    def map(self, value: Any) -> Any:
        return value


class Closes(MapFunction):
    def close(self) -> None:
        boom("close")

    def map(self, value: Any) -> Any:
        return value


class Processes(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value
        boom(value)


class Alarms(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(5)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        boom(timestamp)


class Evaluates(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield boom(list(elements))


class Folds(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return boom(value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a


class Fires(Trigger[Any, Any]):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult(boom(element))

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None:
        pass

    def clear(self, window: Any, ctx: Any) -> None:
        pass


class Pairs(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return boom(value)

    def map2(self, value: Any) -> Any:
        return value


class Rules(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> None:
        pass

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        boom(value)


def one_key(stream: DataStream) -> Any:
    return stream.key_by(lambda value: 0)


#: A program, the text of its exception, the function that the error names.
CASES: dict[str, tuple[Callable[[DataStream], DataStream], str, str]] = {
    "map": (lambda ds: ds.map(boom), "boom 7", "boom"),
    "flat_map": (lambda ds: ds.flat_map(boom), "boom 7", "boom"),
    "filter": (lambda ds: ds.filter(boom), "boom 7", "boom"),
    "key_by": (lambda ds: ds.key_by(boom).map(str), "boom 7", "boom"),
    "partition_custom": (lambda ds: ds.partition_custom(boom, int).map(str).set_parallelism(2), "boom 7", "boom"),
    "process": (lambda ds: ds.process(Processes()), "boom 7", "Processes.process_element"),
    "timer": (lambda ds: one_key(ds).process(Alarms()), "boom 5", "Alarms.on_timer"),
    "open": (lambda ds: ds.map(Opens()), "boom 'open'", "Opens.open"),
    "close": (lambda ds: ds.map(Closes()), "boom 'close'", "Closes.close"),
    "timestamps": (
        lambda ds: ds.assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamps())
        ),
        "boom 7",
        "Stamps.extract_timestamp",
    ),
    "reduce": (lambda ds: one_key(ds).reduce(boom), "boom 7", "boom"),
    "window": (lambda ds: one_key(ds).count_window(2).process(Evaluates()), "boom [7, 8]", "Evaluates.process"),
    "aggregate": (lambda ds: one_key(ds).count_window(2).aggregate(Folds()), "boom 7", "Folds.add"),
    "trigger": (
        lambda ds: one_key(ds).window(GlobalWindows.create()).trigger(Fires()).process(Evaluates()),
        "boom 7",
        "Fires.on_element",
    ),
    "co_map": (lambda ds: ds.connect(ds).map(Pairs()), "boom 7", "Pairs.map1"),
    "broadcast": (
        lambda ds: ds.connect(ds.broadcast(RULES)).process(Rules()),
        "boom 7",
        "Rules.process_broadcast_element",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_exception_comes_first_then_place_and_element(env: Env, name: str) -> None:
    program, text, function = CASES[name]
    with pytest.raises(ExecutionError) as failed:
        list(program(env.from_collection([7, 8])).execute_and_collect())
    error = failed.value
    assert str(error).splitlines()[0] == f"ValueError: {text}"
    assert isinstance(error.__cause__, ValueError)
    assert error.details[0] == f"in {function}"
    assert any(__file__ in line for line in error.details)
    # Where nobody catches it, Python writes the same below the traceback.
    written = "".join(traceback.format_exception(error))
    assert written.rstrip().endswith(error.render_details())
    if name not in ("open", "close"):
        assert any(line.startswith(("element: 7", "element: 5", "element: 8")) for line in error.details), error.details


def leave(value: Any) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("function", "text"), [(leave, "SystemExit: 3"), (lambda value: next(iter(())), "StopIteration")]
)
def test_what_ends_programs_and_loops_is_a_failure_too(env: Env, function: Any, text: str) -> None:
    with pytest.raises(ExecutionError) as failed:
        list(env.from_collection([1]).map(function).execute_and_collect())
    assert str(failed.value).splitlines()[0] == text


def test_ctrl_c_in_a_function_stops_the_program(env: Env) -> None:
    def interrupted(value: Any) -> Any:
        raise KeyboardInterrupt

    env.from_collection([1]).map(interrupted).print()
    with pytest.raises(KeyboardInterrupt):
        env.execute()


@pytest.mark.parametrize("answer", [99, -1, None, "1"])
def test_a_partitioner_must_name_a_subtask(env: Env, answer: Any) -> None:
    stream = env.from_collection([1]).partition_custom(lambda key, channels: answer, lambda value: value)
    with pytest.raises(ExecutionError, match="which is not one of 2 subtasks"):
        list(stream.map(str).set_parallelism(2).execute_and_collect())


#: A program whose function stops in the debugger.
STOPPED = """
from flowsql.common import Types
from flowsql.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Twice(KeyedProcessFunction):
    def process_element(self, value, ctx):
        made = value * 2
        breakpoint()
        yield made


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
numbers = env.from_collection([21], Types.INT())
numbers.key_by(lambda n: n).process(Twice(), Types.INT()).print()
env.execute()
"""


def test_a_breakpoint_stops_in_the_function(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STOPPED)
    done = subprocess.run(
        [sys.executable, str(program)],
        input="where\nprint('value is', value, 'key', ctx.get_current_key())\nmade = 43\ncontinue\n",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "process_element" in done.stdout
    assert "value is 21 key 21" in done.stdout
    assert done.stdout.rstrip().endswith("43")


class Hoards(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self.kept.update(number for number in range(3))


def test_a_value_that_cannot_leave_memory_is_named_with_state_key_type_and_operator() -> None:
    options = Configuration()
    for key, value in COLD.items():
        options.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.from_collection(["a"]).key_by(lambda value: (value, 1)).process(Hoards()).print()
    with pytest.raises(ExecutionError) as caught:
        env.execute()
    assert caught.value.render().splitlines()[0] == (
        "the state 'kept' cannot be saved: a value of type generator under a key of type tuple: "
        "TypeError: cannot pickle 'generator' object"
    )
    assert caught.value.render().splitlines()[-1] == "in operator KEYED PROCESS"
