"""Streams that live: watermarks leave by the clock, timers and receivers wait for one row and not for a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flowsql.common import Time, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import OutputTag, StreamExecutionEnvironment
from flowsql.datastream.functions import (
    CoMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from flowsql.datastream.state import StateTtlConfig, ValueStateDescriptor
from flowsql.datastream.window import TumblingEventTimeWindows
from flowsql.table import StreamTableEnvironment
from flowsql_core.clock import ManualClock
from flowsql_core.element import MIN_WATERMARK
from flowsql_runtime.cluster.local import LocalCluster

pytestmark = pytest.mark.ticks


class World:
    """The clock of a test and what its functions saw; functions are copied, the world is not."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.seen: list[Any] = []

    def __deepcopy__(self, memo: object) -> World:
        return self

    def run(self, env: StreamExecutionEnvironment) -> list[Any]:
        """Run what was recorded."""
        LocalCluster(self.clock).run(env.job_graph())
        return self.seen


@pytest.fixture
def world() -> World:
    return World()


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())


class Slow(MapFunction):
    """Takes so long for each element."""

    def __init__(self, world: World, takes_ms: int) -> None:
        self.world = world
        self.takes_ms = takes_ms

    def map(self, value: Any) -> Any:
        self.world.seen.append(("map", value))
        self.world.clock.advance(self.takes_ms)
        return value


class Watermarks(ProcessFunction):
    """Notes the watermark before each element."""

    def __init__(self, world: World, takes_ms: int = 0) -> None:
        self.world = world
        self.takes_ms = takes_ms

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        self.world.seen.append((value, ctx.timer_service().current_watermark()))
        if self.takes_ms:
            self.world.clock.advance(self.takes_ms)


#: Elements of 50 ms each, watermarks every 200 ms: the first one leaves behind the fourth element.
EVERY_FOURTH = [(n, MIN_WATERMARK if n < 104 else (n - 100) // 4 * 4 + 98) for n in range(100, 110)]


def slow_before(stream: Any, world: World) -> Any:
    return (
        stream.map(Slow(world, 50))
        .filter(lambda value: True)
        .assign_timestamps_and_watermarks(MONOTONOUS)
        .process(Watermarks(world))
    )


def slow_behind(stream: Any, world: World) -> Any:
    return stream.assign_timestamps_and_watermarks(MONOTONOUS).process(Watermarks(world, 50))


@pytest.mark.parametrize("program", [slow_before, slow_behind])
def test_the_watermark_rises_every_interval_between_rows_of_a_bounded_input(
    env: StreamExecutionEnvironment, world: World, program: Callable[[Any, World], Any]
) -> None:
    program(env.from_collection(list(range(100, 110))), world).print()
    assert [entry for entry in world.run(env) if entry[0] != "map"] == EVERY_FOURTH


@pytest.mark.parametrize(("interval", "risen"), [(0, set()), (50, set(range(101, 110))), (1_000, set())])
def test_the_interval_is_the_one_that_was_set(
    env: StreamExecutionEnvironment, world: World, interval: int, risen: set[int]
) -> None:
    env.get_config().set_auto_watermark_interval(interval)
    slow_behind(env.from_collection(list(range(100, 110))), world).print()
    assert {value for value, level in world.run(env) if level == value - 2} == risen


def test_a_late_row_of_a_slow_bounded_input_is_late(env: StreamExecutionEnvironment, world: World) -> None:
    class Fired(ProcessWindowFunction):  # type: ignore[type-arg]
        def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
            world.seen.append((context.window().start, list(elements)))
            yield from ()

        def clear(self, context: Any) -> None:
            pass

    late = OutputTag("late")
    rows = [1, 2, 11, 3, 12, 25, 13, 4]
    windows = (
        env.from_collection(rows)
        .map(Slow(world, 200))
        .assign_timestamps_and_watermarks(MONOTONOUS)
        .key_by(lambda value: 0)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .side_output_late_data(late)
        .process(Fired())
    )
    windows.get_side_output(late).map(lambda value: world.seen.append(("late", value))).print()
    windows.print()
    found = [entry for entry in world.run(env) if entry[0] != "map"]
    assert [entry for entry in found if entry[0] == "late"] == [("late", 3), ("late", 13), ("late", 4)]
    assert [entry for entry in found if entry[0] != "late"] == [(0, [1, 2]), (10, [11, 12]), (20, [25])]


def test_windows_of_a_stream_without_end_fire(env: StreamExecutionEnvironment) -> None:
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '1000000000')"
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(First())
    env.get_config().set_auto_watermark_interval(5)
    counts = (
        tables.to_data_stream(tables.from_path("endless"))
        .map(lambda row: row[0], Types.LONG())
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: 0)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda one, two: two)
    )
    with counts.execute_and_collect() as found:
        assert [next(found), next(found)] == [9, 19]


class First(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


def test_what_a_slow_function_made_goes_on_before_its_next_call(env: StreamExecutionEnvironment, world: World) -> None:
    env.from_collection([1, 2, 3]).map(Slow(world, 100)).process(Watermarks(world)).print()
    seen = [(name, value) if name == "map" else ("seen", name) for name, value in world.run(env)]
    assert seen == [(who, value) for value in (1, 2, 3) for who in ("map", "seen")]


@pytest.mark.parametrize("kind", ["map", "flat_map", "filter", "key_by", "co_map", "keyed map", "reduce"])
def test_receivers_see_rows_while_a_function_is_still_at_work(env: StreamExecutionEnvironment, kind: str) -> None:
    """With the machine's clock: the second call ends only once the first one's result has arrived."""
    arrived = threading.Event()

    class Waits:
        def __deepcopy__(self, memo: object) -> Any:
            return self

        def __call__(self, value: Any, *others: Any) -> Any:
            other = others[0] if others else value
            if other == 2:
                assert arrived.wait(20)
            return other

        def twice(self, value: Any) -> Iterator[Any]:
            yield self(value)

    class Both(CoMapFunction):
        def map1(self, value: Any) -> Any:
            return waits(value)

        def map2(self, value: Any) -> Any:
            return value

    def saw(value: Any) -> bool:
        arrived.set()
        return True

    waits = Waits()
    stream: Any = env.from_collection([1, 2, 3])
    match kind:
        case "map":
            made = stream.map(waits)
        case "flat_map":
            made = stream.flat_map(waits.twice)
        case "filter":
            made = stream.filter(waits)
        case "key_by":
            made = stream.key_by(waits).map(lambda value: value)
        case "co_map":
            made = stream.connect(env.from_collection([0])).map(Both())
        case "keyed map":
            made = stream.key_by(lambda value: 0).map(waits)
        case _:
            made = stream.key_by(lambda value: 0).reduce(waits)
    with made.filter(saw).execute_and_collect() as found:
        assert {1, 2, 3} <= set(found)


def test_one_element_that_becomes_many_shows_the_first_before_the_last(env: StreamExecutionEnvironment) -> None:
    arrived = threading.Event()

    def many(value: int) -> Iterator[int]:
        yield 1
        while not arrived.is_set():
            yield 2

    def saw(value: int) -> bool:
        arrived.set()
        return value == 1

    with env.from_collection([0]).flat_map(many).filter(saw).execute_and_collect() as found:
        assert list(found) == [1]


class Alarm(KeyedProcessFunction):
    """Works 100 ms on each element; asks to be called 50 ms after it began."""

    def __init__(self, world: World) -> None:
        self.world = world

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last", Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(250)).build())
        self.last = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        now_ms = ctx.timer_service().current_processing_time()
        self.world.seen.append(("element", value, now_ms, self.last.value()))
        if value != "again":
            self.last.update(now_ms)
        ctx.timer_service().register_processing_time_timer(now_ms + 50)
        self.world.clock.advance(100)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        self.world.seen.append(("timer", ctx.get_current_key(), timestamp))


def test_timers_of_the_clock_fire_and_state_expires_between_the_rows_of_a_batch(
    env: StreamExecutionEnvironment, world: World
) -> None:
    env.from_collection(["a", "b", "again", "again"]).key_by(lambda value: 0).process(Alarm(world)).print()
    assert world.run(env) == [
        ("element", "a", 0, None),
        ("timer", 0, 50),
        ("element", "b", 100, 0),
        ("timer", 0, 150),
        ("element", "again", 200, 100),
        ("timer", 0, 250),
        ("element", "again", 300, 100),
        ("timer", 0, 350),
    ]


def test_an_event_time_timer_that_works_long_lets_the_clock_go_on(
    env: StreamExecutionEnvironment, world: World
) -> None:
    class Works(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_event_time_timer(value)
            ctx.timer_service().register_processing_time_timer(10 * value)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            world.seen.append((ctx.time_domain().name, timestamp))
            world.clock.advance(15)

    env.from_collection([1, 2, 3]).key_by(lambda value: 0).process(Works()).print()
    world.run(env)
    assert [entry for entry in world.seen if entry[0] == "EVENT_TIME"] == [("EVENT_TIME", n) for n in (1, 2, 3)]
    assert world.seen.index(("PROCESSING_TIME", 10)) < world.seen.index(("EVENT_TIME", 2))
