"""Keyed streams, windows and connected streams through the API; what the operators do in detail is tested below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from flowsql.common import Configuration, Row, Time, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import (
    AggregateFunction,
    CoMapFunction,
    CoProcessFunction,
    DataStream,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    WindowFunction,
)
from flowsql.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from flowsql.datastream.plan.field_fold import FieldCall, FieldFold
from flowsql.datastream.state import ListStateDescriptor, ValueStateDescriptor
from flowsql.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)
from flowsql_core.errors import FlowSqlError

Env = StreamExecutionEnvironment
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
DATA = [("a", 1), ("b", 2), ("a", 3), ("b", 1), ("a", 3)]


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as values:
        return list(values)


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("sum", [("a", 1), ("b", 2), ("a", 4), ("b", 3), ("a", 7)]),
        ("min", [("a", 1), ("b", 2), ("a", 1), ("b", 1), ("a", 1)]),
        ("max", [("a", 1), ("b", 2), ("a", 3), ("b", 2), ("a", 3)]),
    ],
)
def test_a_field_is_folded(env: Env, method: str, wanted: list[Any]) -> None:
    keyed = env.from_collection(DATA, PAIR).key_by(lambda value: value[0], Types.STRING())
    assert collected(getattr(keyed, method)(1)) == wanted
    named = env.from_collection(DATA, Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]))
    rows = collected(getattr(named.key_by(lambda row: row.k), method)("n"))
    assert [tuple(row) for row in rows] == wanted


def test_extremes_keep_the_first_value_that_has_them(env: Env) -> None:
    data = [("a", 2, "x"), ("a", 1, "y"), ("a", 1, "z"), ("a", 3, "w")]
    keyed = env.from_collection(data).key_by(lambda value: value[0])
    assert [value[2] for value in collected(keyed.min_by(1))] == ["x", "y", "y", "y"]
    assert [value[2] for value in collected(keyed.max_by(1))] == ["x", "x", "x", "w"]
    whole = env.from_collection([3, 1, 2]).key_by(lambda value: 0)
    assert collected(whole.min()) == [3, 1, 1]
    with pytest.raises(FlowSqlError, match="basic type"):
        collected(whole.sum(1))
    with pytest.raises(TypeError, match="field"):
        whole.sum(1.5)  # type: ignore[arg-type]


def test_folds_change_no_value_that_came_in(env: Env) -> None:
    fold = FieldFold(1, FieldCall.SUM)
    for first, second in ((["a", 1], ["a", 2]), (Row("a", 1), Row("a", 2)), (Named("a", 1), Named("a", 2))):
        made = fold.reduce(first, second)
        assert list(made) == ["a", 3]
        assert list(first) == ["a", 1]
    assert collected(env.from_collection([["a", 1], ["a", 2]]).key_by(lambda value: value[0]).max(1))[-1] == ["a", 2]


def test_reduce_takes_functions_and_converts(env: Env) -> None:
    class Add(ReduceFunction):
        def reduce(self, value1: Any, value2: Any) -> Any:
            return [value1[0], value1[1] + value2[1]]

    keyed = env.from_collection(DATA, PAIR).key_by(lambda value: value[0])
    assert collected(keyed.reduce(Add()))[-1] == ("a", 7)
    reduced = keyed.reduce(lambda one, two: (one[0], one[1] + two[1]))
    assert reduced.get_type() == PAIR
    assert collected(reduced)[-1] == ("a", 7)


def test_batch_mode_gives_last_results(env: Env) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    keyed = env.from_collection(DATA, PAIR).key_by(lambda value: value[0])
    assert collected(keyed.sum(1)) == [("a", 7), ("b", 3)]
    assert collected(keyed.count_window(2).reduce(lambda one, two: (one[0], one[1] + two[1]))) == [("a", 4), ("b", 3)]


def test_state_of_a_map_function_on_a_keyed_stream(env: Env) -> None:
    class Number(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("n", Types.INT()))

        def map(self, value: Any) -> Any:
            n = (self.count.value() or 0) + 1
            self.count.update(n)
            return value[0], n

    env.set_parallelism(2)
    keyed = env.from_collection(DATA, PAIR).key_by(lambda value: value[0])
    assert sorted(collected(keyed.map(Number(), PAIR))) == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]
    assert sorted(collected(keyed.filter(lambda value: value[1] > 1))) == [("a", 3), ("a", 3), ("b", 2)]
    assert sorted(collected(keyed.flat_map(lambda value: value[0] * value[1]))) == ["a"] * 7 + ["b"] * 3


class ByField(KeySelector):
    def __init__(self, field: int) -> None:
        self.field = field

    def get_key(self, value: Any) -> Any:
        return value[self.field]


def test_key_selectors_and_types_of_keys(env: Env) -> None:
    class Key(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            yield ctx.get_current_key()

    stream = env.from_collection([(1.1, [1, 2]), (2.2, [1, 2])])
    assert collected(stream.key_by(ByField(0), Types.FLOAT()).process(Key())) == [1.100000023841858, 2.200000047683716]
    assert collected(stream.key_by(ByField(1), Types.LIST(Types.INT())).process(Key())) == [[1, 2], [1, 2]]
    assert len(collected(stream.key_by(ByField(1)).count_window(2).apply(Names()))) == 1


class Names(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(key, len(list(inputs)))]


def test_a_keyed_stream_is_no_operator(env: Env) -> None:
    keyed = env.from_collection(DATA).key_by(lambda value: value[0])
    for refused in (
        lambda: keyed.name("x"),
        lambda: keyed.get_name(),
        lambda: keyed.set_parallelism(2),
        lambda: keyed.uid("x"),
        lambda: keyed.shuffle(),
        lambda: keyed.broadcast(),
        lambda: keyed.start_new_chain(),
    ):
        with pytest.raises(TypeError, match=r"KeyedStream|non parallel"):
            refused()
    with pytest.raises(TypeError, match="KeyedProcessFunction is required"):
        keyed.process(lambda value: value)  # type: ignore[arg-type]
    assert collected(keyed.values()) == DATA
    assert collected(keyed.key_by(lambda value: value[1]).sum(1))[-1] == ("a", 6)
    assert sorted(collected(keyed.union(keyed))) == sorted(DATA * 2)


class Named(NamedTuple):
    key: str
    n: int


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


@pytest.fixture
def timed(env: Env) -> DataStream:
    env.configure(Configuration().set_string("pipeline.auto-watermark-interval", "0 ms"))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    data = [("a", 1), ("b", 2), ("a", 4), ("a", 6), ("a", 11)]
    return env.from_collection(data, PAIR).assign_timestamps_and_watermarks(strategy)


class Count(ProcessWindowFunction[Any, Any, Any, TimeWindow]):
    def process(self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().start, len(list(elements))


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


TRIPLE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
FIVE = TumblingEventTimeWindows.of(Time.milliseconds(5))


def test_windows_of_keys(timed: DataStream) -> None:
    keyed = timed.key_by(lambda value: value[0])
    counts = keyed.window(FIVE).process(Count(), TRIPLE)
    assert sorted(collected(counts)) == [("a", 0, 2), ("a", 5, 1), ("a", 10, 1), ("b", 0, 1)]
    assert counts.get_name() == "TumblingEventTimeWindows"
    sums = keyed.window(FIVE).reduce(lambda one, two: (one[0], one[1] + two[1]))
    assert sorted(collected(sums)) == [("a", 5), ("a", 6), ("a", 11), ("b", 2)]
    assert sums.get_type() == PAIR
    means = keyed.window(FIVE).aggregate(Mean(), output_type=Types.DOUBLE())
    assert sorted(collected(means)) == [2.0, 2.5, 6.0, 11.0]
    shown = keyed.window(FIVE).aggregate(Mean(), window_function=Names(), output_type=Types.ROW(
        [Types.STRING(), Types.INT()]
    ))  # fmt: skip
    assert {type(row) for row in collected(shown)} == {Row}
    sliding = keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)))
    assert len(collected(sliding.process(Count()))) == 6
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
    assert sorted(collected(sessions.process(Count()))) == [("a", 1, 3), ("a", 11, 1), ("b", 2, 1)]


def test_windows_of_whole_streams(timed: DataStream) -> None:
    timed.environment.set_parallelism(2)

    class Largest(AllWindowFunction[Any, Any, Any]):
        def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
            return [max(value[1] for value in inputs)]

    class Size(ProcessAllWindowFunction[Any, Any, Any]):
        def process(self, context: ProcessAllWindowFunction.Context[Any], elements: Iterable[Any]) -> Iterable[Any]:
            return [(context.window().end, len(list(elements)))]

    windowed = timed.window_all(FIVE).apply(Largest(), Types.INT())
    assert collected(windowed) == [4, 6, 11]
    assert collected(timed.window_all(FIVE).process(Size())) == [(5, 3), (10, 1), (15, 1)]
    assert len(collected(timed.count_window_all(2).apply(Largest()))) == 2
    with pytest.raises(ValueError, match="non parallel"):
        windowed.set_parallelism(2)


def test_triggers_and_count_windows(env: Env) -> None:
    keyed = env.from_collection([("a", n) for n in range(6)]).key_by(lambda value: value[0])
    assert collected(keyed.count_window(2).apply(Names())) == [("a", 2)] * 3
    assert len(collected(keyed.count_window(2, 1).apply(Names()))) == 5
    trigger = PurgingTrigger.of(CountTrigger.of(3))
    assert collected(keyed.window(GlobalWindows.create()).trigger(trigger).apply(Names())) == [("a", 3)] * 2
    with pytest.raises(TypeError, match="WindowFunction"):
        keyed.count_window(2).apply(lambda key, window, values: values)
    with pytest.raises(TypeError, match="ProcessWindowFunction"):
        keyed.count_window(2).process(Names())


def test_late_values_have_a_side_output(env: Env) -> None:
    class OnEvery(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
            yield value

    late = OutputTag("late", PAIR)
    env.configure(Configuration().set_string("pipeline.auto-watermark-interval", "0 ms"))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    stream = env.from_collection([("a", 1), ("a", 20), ("a", 2)], PAIR).assign_timestamps_and_watermarks(strategy)
    windowed = (
        stream.process(OnEvery(), PAIR).key_by(lambda value: value[0]).window(FIVE).allowed_lateness(0)
        .side_output_late_data(late).reduce(lambda one, two: two)
    )  # fmt: skip
    # A bounded input has no watermark before its end, so that nothing is late: the side output is there and empty.
    assert collected(windowed.get_side_output(late)) == []
    assert sorted(collected(windowed)) == [("a", 2), ("a", 20)]


def test_connected_streams(env: Env) -> None:
    class Both(CoMapFunction):
        def map1(self, value: Any) -> Any:
            return f"one {value}"

        def map2(self, value: Any) -> Any:
            return None if value == 3 else value * 10

    class Sides(CoProcessFunction):
        def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
            return [(1, value)]

        def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
            return [[2, value]]

    class Join(KeyedCoProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

        def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
            self.seen.add(value[1])
            yield ctx.get_current_key(), sorted(self.seen)

        def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
            self.seen.add(value[0])
            yield ctx.get_current_key(), sorted(self.seen)

    one, two = env.from_collection(["a"]), env.from_collection([2, 3])
    assert sorted(map(str, collected(one.connect(two).map(Both())))) == ["20", "one a"]
    sides = one.connect(two).process(Sides(), Types.TUPLE([Types.INT(), Types.PICKLED_BYTE_ARRAY()]))
    assert sorted(collected(sides), key=str) == [(1, "a"), (2, 2), (2, 3)]
    left, right = env.from_collection([(1, "x")]), env.from_collection([("y", 1), ("z", 2)])
    joined = left.connect(right).key_by(lambda value: value[0], lambda value: value[1]).process(Join())
    found = collected(joined)
    assert max(found, key=lambda value: len(value[1])) == (1, ["x", "y"])
    assert (2, ["z"]) in found
    with pytest.raises(TypeError, match="Both streams"):
        one.key_by(len).connect(two).map(Both())
    with pytest.raises(TypeError, match="KeyedCoProcessFunction needs keyed streams"):
        one.connect(two).process(Join())
    keyed = one.key_by(len).connect(two.key_by(str)).process(Sides())
    assert sorted(collected(keyed), key=str) == [(1, "a"), [2, 2], [2, 3]]
