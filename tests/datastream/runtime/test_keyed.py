"""Functions of keyed streams: every kind of state, timers of both domains, what they may emit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from flowsql_core.clock import ManualClock
from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.stream_specs import KeyedCall, KeyedFunctionSpec
from flowsql_core.stream import state as st
from flowsql_core.stream.functions import (
    AggregateFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
)
from flowsql_core.stream.output_tag import OutputTag
from flowsql_core.stream.timer import TimeDomain

from .streams import NO_TIME, in_order, objects, operator, side_values, stamped, values_of

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(3)]

PROCESS = KeyedFunctionSpec("f", KeyedCall.PROCESS)
#: Parallelism before and after a cut.
PAIRS = list(itertools.product((1, 2, 3), repeat=2))


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> float:
        return float(accumulator[0] / accumulator[1])

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Largest(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return max(value1, value2)


class AllKinds(KeyedProcessFunction):
    """Keeps one state of each kind; 0 clears all of them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(st.ValueStateDescriptor("value"))
        self.list = runtime_context.get_list_state(st.ListStateDescriptor("list"))
        self.map = runtime_context.get_map_state(st.MapStateDescriptor("map"))
        self.largest = runtime_context.get_reducing_state(st.ReducingStateDescriptor("largest", Largest()))
        self.mean = runtime_context.get_aggregating_state(st.AggregatingStateDescriptor("mean", Mean()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        states: list[Any] = [self.value, self.list, self.map, self.largest, self.mean]
        if value == 0:
            for state in states:
                state.clear()
        else:
            self.value.update((self.value.value() or 0) + value)
            self.list.add(value)
            self.map.put(value, self.map.get(value) or 0)
            self.map[value] += 1
            self.largest.add(value)
            self.mean.add(value)
        yield (
            ctx.get_current_key(),
            self.value.value(),
            tuple(self.list),
            tuple(sorted(self.map.items())),
            self.map.is_empty(),
            self.largest.get(),
            self.mean.get(),
        )


def test_every_kind_of_state_belongs_to_its_key() -> None:
    harness = operator(PROCESS, f=AllKinds())
    harness.batch(objects([3, 5, 3, 0, 7], keys=["a", "b", "a", "a", "a"]))
    assert values_of(harness.batches) == [
        ("a", 3, (3,), ((3, 1),), False, 3, 3.0),
        ("b", 5, (5,), ((5, 1),), False, 5, 5.0),
        ("a", 6, (3, 3), ((3, 2),), False, 3, 3.0),
        ("a", None, (), (), True, None, None),
        ("a", 7, (7,), ((7, 1),), False, 7, 7.0),
    ]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_state_of_every_kind_moves_to_another_parallelism(before: int, after: int) -> None:
    keys = [f"key {number % 9}" for number in range(60)]
    numbers = [number % 5 for number in range(60)]
    whole = operator(PROCESS, f=AllKinds())
    whole.batch(objects(numbers, keys))
    cut = operator(PROCESS, before, f=AllKinds())
    cut.batch(objects(numbers[:31], keys[:31]))
    moved = cut.restored(after)
    moved.batch(objects(numbers[31:], keys[31:]))
    assert sorted(map(repr, values_of(moved.batches))) == sorted(map(repr, values_of(whole.batches)))


def test_map_state_has_the_ways_of_a_dict() -> None:
    class Ways(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.map = runtime_context.get_map_state(st.MapStateDescriptor("map"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            found = self.map
            found.put_all({"x": 1, "y": 2})
            yield "x" in found, found.contains("z"), found.get("z"), sorted(found), sorted(found.values())
            for key in found.keys():  # noqa: SIM118 - removing while it is read is allowed
                found.remove(key)
            yield found.is_empty(), list(found.items())
            found["w"] = 5
            del found["w"], found["never there"]
            yield found.is_empty()

    harness = operator(PROCESS, f=Ways())
    harness.batch(objects([0], [1]))
    assert values_of(harness.batches) == [(True, False, None, ["x", "y"], [1, 2]), (True, []), True]


def test_list_state_is_replaced_and_extended() -> None:
    class Lists(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.list = runtime_context.get_list_state(st.ListStateDescriptor("list"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            self.list.update([1, 2])
            self.list.add_all([3, 4])
            before = self.list.get()
            self.list.add(5)
            yield list(before), list(self.list.get())
            self.list.update([])
            yield list(self.list)

    harness = operator(PROCESS, f=Lists())
    harness.batch(objects([0], [1]))
    assert values_of(harness.batches) == [([1, 2, 3, 4], [1, 2, 3, 4, 5]), []]


# -- keys


def test_keys_of_one_value_and_different_types_are_different_keys() -> None:
    class Count(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(st.ValueStateDescriptor("count"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            return [(repr(ctx.get_current_key()), self.count.value())]

    keys = [1, True, 1.0, "1", b"1", None, (1, "x"), (1.0, "x"), [1], Decimal("1.0"), Decimal("1.00"), (1, "x"), None]
    harness = operator(PROCESS, f=Count())
    harness.batch(objects(keys, keys))
    counts = [count for _, count in values_of(harness.batches)]
    assert counts == [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2]


# -- what a function may return


@pytest.mark.parametrize(
    ("result", "emitted"),
    [
        (lambda value: None, []),
        (lambda value: [], []),
        (lambda value: [value, value], [7, 7]),
        (lambda value: (value,), [7]),
        (lambda value: iter([value]), [7]),
        (lambda value: {value: 1}, [7]),
        (lambda value: (number for number in range(3)), [0, 1, 2]),
    ],
)
def test_any_iterable_or_none_may_be_returned(result: Callable[[Any], Any], emitted: list[Any]) -> None:
    class Returns(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            return result(value)

    harness = operator(PROCESS, f=Returns())
    harness.batch(objects([7], [7]))
    assert values_of(harness.batches) == emitted


def test_results_have_the_timestamp_of_their_element() -> None:
    class Twice(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield ctx.timestamp()
            yield value

    harness = operator(PROCESS, f=Twice())
    harness.batch(objects(["x", "y"], ["a", "a"], [100, NO_TIME]))
    assert stamped(harness.batches) == [(100, 100), (100, "x"), (None, NO_TIME), (None, "y")]


def test_side_outputs_leave_under_their_tag() -> None:
    odd = OutputTag("odd")

    class Split(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield (odd, value) if value % 2 else value

    harness = operator(PROCESS, f=Split())
    harness.batch(objects([1, 2, 3, 4], ["a"] * 4, [10, 20, 30, 40], track=[(2, 25)]))
    assert stamped(harness.batches) == [(20, 2), (40, 4)]
    assert side_values(harness.output, "odd") == [(10, 1), (30, 3)]
    assert in_order(harness.output.side["odd"]) == [1, "wm 25", 3]


# -- timers


class Timers(KeyedProcessFunction):
    """Registers the timers that each element lists and says when they fire."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        service = ctx.timer_service()
        for kind, time in value:
            match kind:
                case "event":
                    service.register_event_time_timer(time)
                case "processing":
                    service.register_processing_time_timer(time)
                case "no event":
                    service.delete_event_time_timer(time)
                case "no processing":
                    service.delete_processing_time_timer(time)
        return ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        service = ctx.timer_service()
        now = service.current_watermark()
        if ctx.time_domain() is TimeDomain.PROCESSING_TIME:
            now = service.current_processing_time()
        yield timestamp, ctx.get_current_key(), ctx.time_domain().name[0], now, ctx.timestamp()


def test_event_timers_fire_by_time_once_each_where_the_watermark_passes() -> None:
    harness = operator(PROCESS, f=Timers())
    wishes = [
        [("event", 30), ("event", 10), ("event", 10)],
        [("event", 20), ("event", 25), ("no event", 25), ("no event", 99)],
        [("event", 10)],
    ]
    harness.batch(objects(wishes, ["a", "b", "a"]))
    assert not harness.batches
    harness.watermark(9)
    assert not harness.batches
    harness.watermark(29)
    assert stamped(harness.batches) == [(10, (10, "a", "E", 29, 10)), (20, (20, "b", "E", 29, 20))]
    harness.end()
    assert values_of(harness.batches)[2:] == [(30, "a", "E", MAX_WATERMARK, 30)]
    assert harness.watermarks == [9, 29, MAX_WATERMARK]


def test_timers_fire_between_the_rows_where_the_watermark_passes() -> None:
    class Trace(Timers):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_event_time_timer(value)
            return [("row", value, ctx.timer_service().current_watermark())]

    harness = operator(PROCESS, f=Trace())
    harness.batch(objects([10, 20, 30, 5], ["a"] * 4, track=[(1, 9), (2, 10), (3, 20), (4, 21)]))
    assert values_of(harness.batches) == [
        ("row", 10, MIN_WATERMARK),
        ("row", 20, 9),
        (10, "a", "E", 10, 10),
        ("row", 30, 10),
        (20, "a", "E", 20, 20),
        ("row", 5, 20),
        # Registered behind the watermark: it fires with the next one.
        (5, "a", "E", 21, 5),
    ]
    marks = [entry for entry in enumerate(in_order(harness.output.elements)) if isinstance(entry[1], str)]
    assert marks == [(1, "wm 9"), (4, "wm 10"), (7, "wm 20"), (10, "wm 21")]


def test_a_timer_may_register_the_next_one() -> None:
    class Chain(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_event_time_timer(value)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            if timestamp < 40:
                ctx.timer_service().register_event_time_timer(timestamp + 10)
            yield timestamp

    harness = operator(PROCESS, f=Chain())
    harness.batch(objects([10], ["a"]))
    harness.watermark(25)
    assert values_of(harness.batches) == [10, 20]
    harness.watermark(100)
    assert values_of(harness.batches) == [10, 20, 30, 40]


def test_processing_timers_fire_when_the_clock_passes_and_not_at_the_end_of_the_input() -> None:
    harness = operator(PROCESS, f=Timers())
    harness.batch(objects([[("processing", 50), ("processing", 20), ("processing", 20)]], ["a"]))
    harness.batch(objects([[("processing", 20), ("processing", 30), ("no processing", 30)]], ["b"]))
    harness.advance(19)
    assert not harness.batches
    harness.advance(20)
    assert stamped(harness.batches) == [(20, (20, "a", "P", 39, 20)), (20, (20, "b", "P", 39, 20))]
    harness.end()
    assert len(values_of(harness.batches)) == 2


def test_a_processing_timer_for_the_past_fires_at_the_next_look() -> None:
    class Again(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().register_processing_time_timer(5)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time())
            yield timestamp

    harness = operator(PROCESS, clock=ManualClock(100), f=Again())
    harness.batch(objects([0], ["a"]))
    harness.advance(0)
    harness.advance(0)
    harness.advance(7)
    assert values_of(harness.batches) == [5, 100, 100]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_timers_of_both_domains_move_to_another_parallelism(before: int, after: int) -> None:
    keys = [f"key {number}" for number in range(20)]
    wishes = [[("event", 10 + n), ("processing", 100 + n), ("event", 50), ("no event", 50)] for n in range(20)]
    cut = operator(PROCESS, before, f=Timers())
    cut.batch(objects(wishes, keys))
    cut.watermark(14)
    moved = cut.restored(after)
    moved.watermark(1000)
    moved.advance(110)
    found = values_of(moved.batches)
    expected = [(10 + n, key, "E", 14 if n < 5 else 1000, 10 + n) for n, key in enumerate(keys)]
    expected += [(100 + n, key, "P", 110, 100 + n) for n, key in enumerate(keys) if n <= 10]
    assert sorted(found) == sorted(expected)


def test_deleted_timers_do_not_pile_up() -> None:
    class Postpone(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            ctx.timer_service().delete_event_time_timer(value - 1)
            ctx.timer_service().register_event_time_timer(value)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
            yield timestamp

    harness = operator(PROCESS, f=Postpone())
    harness.batch(objects(range(1000), ["a"] * 1000))
    (running,) = harness.operators
    assert running.time.event.nbytes < 100_000  # type: ignore[attr-defined]
    harness.end()
    assert values_of(harness.batches) == [999]


# -- map, flat_map, filter, reduce


def test_a_map_function_of_a_keyed_stream_has_state() -> None:
    class Number(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(st.ValueStateDescriptor("count"))

        def map(self, value: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            return value, self.count.value()

    harness = operator(KeyedFunctionSpec("f", KeyedCall.MAP), f=Number())
    harness.batch(objects(["x", "y", "z"], ["a", "b", "a"], [1, 2, 3]))
    assert stamped(harness.batches) == [(1, ("x", 1)), (2, ("y", 1)), (3, ("z", 2))]


@pytest.mark.parametrize(
    ("call", "function", "emitted"),
    [
        (KeyedCall.MAP, lambda value: value + 1, [2, 3, 4]),
        (KeyedCall.FLAT_MAP, lambda value: range(value), [0, 0, 1, 0, 1, 2]),
        (KeyedCall.FILTER, lambda value: value != 2, [1, 3]),
        (KeyedCall.REDUCE, lambda one, two: one * 10 + two, [1, 2, 13]),
    ],
)
def test_plain_callables_are_functions_too(call: KeyedCall, function: Any, emitted: list[Any]) -> None:
    harness = operator(KeyedFunctionSpec("f", call), f=function)
    harness.batch(objects([1, 2, 3], ["a", "b", "a"]))
    assert values_of(harness.batches) == emitted


def test_reduce_in_batch_mode_emits_the_last_result_of_each_key() -> None:
    harness = operator(KeyedFunctionSpec("f", KeyedCall.REDUCE, final_only=True), f=Largest())
    harness.batch(objects([1, 5, 3], ["a", "b", "a"]))
    assert not harness.batches
    harness.end()
    assert values_of(harness.batches) == [3, 5]


@pytest.mark.parametrize("call", [KeyedCall.MAP, KeyedCall.REDUCE])
def test_what_a_function_changes_later_does_not_show(call: KeyedCall) -> None:
    class Collects(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen: list[Any] = []

        def map(self, value: Any) -> Any:
            self.seen.append(value)
            return self.seen

    def grow(one: list[Any], two: list[Any]) -> list[Any]:
        one.extend(two)
        return one

    function = Collects() if call is KeyedCall.MAP else grow
    given: list[Any] = [1, 2, 3] if call is KeyedCall.MAP else [[1], [2], [3]]
    harness = operator(KeyedFunctionSpec("f", call), f=function)
    harness.batch(objects(given, ["a"] * 3))
    assert values_of(harness.batches) == [[1], [1, 2], [1, 2, 3]]


# -- failures


def test_a_failure_shows_the_exception_the_place_the_element_and_the_key() -> None:
    class Divide(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield 1 / value

    harness = operator(PROCESS, f=Divide())
    with pytest.raises(ExecutionError) as caught:
        harness.batch(objects([1, 0], ["a", "b"]))
    error = caught.value.in_operator("Divide")
    lines = error.render().splitlines()
    assert lines[0] == "ZeroDivisionError: division by zero"
    assert "Divide.process_element" in lines[1]
    assert lines[2].strip().startswith("File ")
    assert lines[2].endswith("in process_element: yield 1 / value")
    assert lines[3:] == ["element: 0", "key: 'b'", "in operator Divide"]
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_failing_timer_names_its_time_and_key() -> None:
    class Fails(Timers):
        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
            raise KeyError("gone")

    harness = operator(PROCESS, f=Fails())
    harness.batch(objects([[("event", 5)]], ["a"]))
    with pytest.raises(ExecutionError, match="KeyError: 'gone'") as caught:
        harness.watermark(5)
    assert "on_timer" in caught.value.details[0]
    assert caught.value.details[-2:] == ("element: 5", "key: 'a'")


def test_state_written_in_open_is_refused() -> None:
    class Early(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(st.ValueStateDescriptor("s")).update(1)

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            return None

    with pytest.raises(ExecutionError, match="written in open"):
        operator(PROCESS, f=Early())


def test_a_name_belongs_to_one_kind_of_state() -> None:
    class Twice(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(st.ValueStateDescriptor("s"))
            runtime_context.get_list_state(st.ListStateDescriptor("s"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            return None

    with pytest.raises(ExecutionError, match="ValueStateDescriptor and as ListStateDescriptor"):
        operator(PROCESS, f=Twice())


def test_each_subtask_works_with_a_copy_of_the_function() -> None:
    class Remembers(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.subtask = runtime_context.get_index_of_this_subtask()
            self.name = runtime_context.get_task_name_with_subtasks()

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield self.subtask, self.name

    given = Remembers()
    harness = operator(PROCESS, 2, f=given)
    harness.batch(objects(range(20), range(20)))
    assert set(values_of(harness.batches)) == {(0, "KeyedFunctionSpec (1/2)#0"), (1, "KeyedFunctionSpec (2/2)#0")}
    assert not hasattr(given, "subtask")


def test_metrics_of_a_function_are_metrics_of_its_operator() -> None:
    class Counts(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            group = runtime_context.get_metrics_group().add_group("mine").add_group("kind", "x")
            self.counter = group.counter("seen")
            self.meter = group.meter("rate")
            group.gauge("twice", lambda: 2 * self.counter.get_count())
            self.sizes = group.distribution("sizes")

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            self.counter.inc(3)
            self.counter.dec()
            self.meter.mark_event(5)
            self.sizes.update(value)

    harness = operator(PROCESS, f=Counts())
    harness.batch(objects([4, 6], ["a", "b"]))
    metrics = harness.operators[0].ctx.metrics
    found = metrics.values()
    names = ("seen", "rate", "twice")
    assert [found[f"mine.kind.x.{name}"] for name in names] == [4, 10, 8]
    assert metrics.histograms()["mine.kind.x.sizes"].statistics()["max"] == 6


def test_state_that_cannot_be_saved_says_which(each_backend: str) -> None:
    class Keeps(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.state = runtime_context.get_state(st.ValueStateDescriptor("stream"))

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            self.state.update(value)

    harness = operator(PROCESS, f=Keeps())
    harness.batch(objects([lambda: 5], ["a"]))
    assert harness.snapshot()[0].tables()["key.stream"].num_rows == 1
    harness = operator(PROCESS, f=Keeps())
    given = objects([5, (number for number in range(3))], ["b", "a"])

    def keep_and_save() -> None:
        harness.batch(given)
        assert each_backend == "hashmap", "it is refused where it leaves memory"
        harness.snapshot()

    about = "the state 'stream' cannot be saved: a value of type generator under a key of type str"
    with pytest.raises(ExecutionError, match=about):
        keep_and_save()
