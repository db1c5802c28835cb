"""Batch mode of keyed streams beyond what ``programs/batch.txt`` compares with PyFlink: timers, memory, refusals."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from flowsql.common import Duration, Row, Time, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flowsql.datastream.functions import KeyedCoProcessFunction, ProcessWindowFunction
from flowsql.datastream.state import ListStateDescriptor, StateTtlConfig, ValueStateDescriptor
from flowsql.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows
from flowsql_core.errors import ExecutionError
from flowsql_runtime.network.spill import SpillSpace

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
DATA = [("b", 2), ("a", 3), ("b", 1), ("a", 1), ("c", 5), ("a", 2)]
LOWEST, HIGHEST = -(2**63), 2**63 - 1


@pytest.fixture(autouse=True)
def batch_mode(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(1)


def keyed(env: StreamExecutionEnvironment, data: list[Any] = DATA) -> Any:
    return env.from_collection(data, PAIR).key_by(lambda value: value[0], Types.STRING())


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Timed(KeyedProcessFunction):
    """A timer of both domains for each element; the first one registers another of each."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.values.add(value[1])
        ctx.timer_service().register_event_time_timer(value[1])
        ctx.timer_service().register_processing_time_timer(10 - value[1])
        if value == ("a", 2):
            ctx.timer_service().delete_event_time_timer(3)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        domain = ctx.time_domain().name[:1]
        service = ctx.timer_service()
        yield ctx.get_current_key(), domain, timestamp, sorted(self.values.get()), service.current_watermark()
        if timestamp == 1:
            service.register_event_time_timer(100)
            service.register_processing_time_timer(200)


def test_timers_fire_at_the_end_of_their_key_with_its_state(env: StreamExecutionEnvironment) -> None:
    found = list(keyed(env).process(Timed()).execute_and_collect())
    assert [value[:3] for value in found] == [
        *(("a", "E", 1), ("a", "E", 2), ("a", "P", 7), ("a", "P", 8), ("a", "P", 9), ("a", "E", 100), ("a", "P", 200)),
        *(("b", "E", 1), ("b", "E", 2), ("b", "P", 8), ("b", "P", 9), ("b", "E", 100), ("b", "P", 200)),
        *(("c", "E", 5), ("c", "P", 5)),
    ]
    assert {(value[0], *value[3]) for value in found} == {("a", 1, 2, 3), ("b", 1, 2), ("c", 5)}
    assert {value[4] for value in found} == {HIGHEST}


def test_timers_that_register_timers_for_ever_are_refused(env: StreamExecutionEnvironment) -> None:
    class Endless(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(0)

        def on_timer(self, timestamp: int, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(timestamp + 1)

    with pytest.raises(ExecutionError, match="timers of the key 'a' have registered further timers 10000 times"):
        list(keyed(env).process(Endless()).execute_and_collect())


class Counted(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("n", Types.INT())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.count = runtime_context.get_state(descriptor)
        self.last: Any = None

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), ctx.timestamp(), count, value


@pytest.mark.parametrize(("parallelism", "memory"), [(1, "4 mb"), (3, "64 mb")])
def test_keys_come_one_after_the_other_in_order_of_time_from_files_too(
    env: StreamExecutionEnvironment, parallelism: int, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[Any] = []
    made = SpillSpace.new_file

    def counted(space: SpillSpace, types: tuple[Any, ...]) -> Any:
        files.append(types)
        return made(space, types)

    monkeypatch.setattr(SpillSpace, "new_file", counted)
    env.set_parallelism(parallelism)
    env.configuration.set("flowsql.memory", memory)
    drawn = random.Random(7)
    data = [(f"key-{drawn.randrange(50)}", drawn.randrange(10**6), "x" * 200) for _ in range(40_000)]
    stamped = env.from_collection(data).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(Seconds())
    )
    found = list(stamped.key_by(lambda value: value[0]).process(Counted()).execute_and_collect())
    assert files or parallelism > 1
    assert sorted(value[3] for value in found) == sorted(data)
    of_key: dict[str, list[Any]] = {}
    for value in found:
        of_key.setdefault(value[0], []).append(value)
    for values in of_key.values():
        assert [value[2] for value in values] == list(range(1, len(values) + 1))
        times = [value[1] for value in values]
        assert times == sorted(times)


def test_windows_are_evaluated_at_the_end_of_their_key(env: StreamExecutionEnvironment) -> None:
    class Listed(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
            yield key, context.window().start, context.window().end, [value[1] for value in elements]

    data = [("b", 12), ("a", 3), ("b", 1), ("a", 11), ("c", 25), ("a", 2), ("a", 19)]
    stream = (
        env.from_collection(data, PAIR)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
        )
        .key_by(lambda value: value[0], Types.STRING())
    )
    sessions = stream.window(EventTimeSessionWindows.with_gap(Time.milliseconds(9))).process(Listed())
    assert list(sessions.execute_and_collect()) == [
        ("a", 2, 28, [2, 3, 11, 19]),
        ("b", 1, 10, [1]),
        ("b", 12, 21, [12]),
        ("c", 25, 34, [25]),
    ]
    sliding = stream.window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))).process(Listed())
    assert list(sliding.execute_and_collect())[:3] == [("a", -5, 5, [2, 3]), ("a", 0, 10, [2, 3]), ("a", 5, 15, [11])]


def test_two_inputs_take_turns_within_a_key(env: StreamExecutionEnvironment) -> None:
    class Both(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
            ctx.timer_service().register_event_time_timer(value[1])
            yield 1, value

        def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield 2, value

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            yield "end", ctx.get_current_key(), timestamp

    other = env.from_collection([("a", 9), ("d", 1), ("b", 0), ("a", 7)], PAIR)
    found = keyed(env).connect(other.key_by(lambda value: value[0], Types.STRING())).process(Both())
    assert list(found.execute_and_collect()) == [
        *((1, ("a", 3)), (2, ("a", 9)), (1, ("a", 1)), (2, ("a", 7)), (1, ("a", 2))),
        *(("end", "a", 1), ("end", "a", 2), ("end", "a", 3)),
        *((2, ("b", 0)), (1, ("b", 2)), (1, ("b", 1)), ("end", "b", 1), ("end", "b", 2)),
        *((1, ("c", 5)), ("end", "c", 5), (2, ("d", 1))),
    ]


def test_an_element_that_cannot_be_pickled_is_named(env: StreamExecutionEnvironment) -> None:
    env.get_config().enable_object_reuse()
    stream = env.from_collection([1]).map(lambda value: threading.Lock())
    with pytest.raises(ExecutionError, match="an element cannot be sorted by its key: TypeError"):
        list(stream.key_by(lambda value: 1).map(str).execute_and_collect())


def test_a_keyed_stream_is_collected_as_keys_and_values(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    assert list(keyed(env, [("p", 1)]).execute_and_collect()) == [Row(f0="p", f1=("p", 1))]
    env.set_parallelism(3)
    many = [(f"k{number % 7}", number) for number in range(50)]
    assert list(keyed(env, many).execute_and_collect()) == [Row(f0=value[0], f1=value) for value in many]
    by_number = env.from_collection([("p", 1.1)], Types.TUPLE([Types.STRING(), Types.FLOAT()])).key_by(
        lambda value: value[1], Types.FLOAT()
    )
    assert str(list(by_number.execute_and_collect())) == "[Row(f0=1.1, f1=('p', 1.1))]"


def test_a_key_may_be_none(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    stream = env.from_collection([1, None, 1, None]).key_by(lambda value: value, Types.INT())
    assert [value[::2] for value in stream.process(Counted()).execute_and_collect()] == [
        (1, 1),
        (None, 1),
        (1, 2),
        (None, 2),
    ]


def test_a_refused_job_leaves_the_environment_usable(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ExecutionError):
        list(keyed(env).map(lambda value: 1 // 0).execute_and_collect())
    assert list(env.from_collection([1, 2]).execute_and_collect()) == [1, 2]
