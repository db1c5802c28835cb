"""Functions without keys, of one stream and of two, timestamps and watermarks, the source, print."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from flowsql_core.clock import ManualClock
from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK, WatermarkStatus
from flowsql_core.errors import ExecutionError
from flowsql_core.graph import stream_specs as ss
from flowsql_core.stream import functions as f
from flowsql_core.stream.output_tag import OutputTag
from flowsql_core.stream.state import ValueStateDescriptor
from flowsql_core.stream.time import Duration
from flowsql_core.stream.timer import TimeDomain
from flowsql_core.stream.watermark import TimestampAssigner, WatermarkStrategy

from .streams import NO_TIME, in_order, objects, operator, side_values, stamped, values_of

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(3)]

MAP = ss.RowFunctionSpec("f", ss.RowCall.MAP)
FLAT_MAP = ss.RowFunctionSpec("f", ss.RowCall.FLAT_MAP)
FILTER = ss.RowFunctionSpec("f", ss.RowCall.FILTER)
PROCESS = ss.RowFunctionSpec("f", ss.RowCall.PROCESS)


# -- one stream


def test_map_flat_map_and_filter_keep_timestamps_and_watermarks() -> None:
    class Double(f.MapFunction):
        def map(self, value: Any) -> Any:
            return 2 * value

    class Repeat(f.FlatMapFunction):
        def flat_map(self, value: Any) -> Any:
            return [value] * value

    class Odd(f.FilterFunction):
        def filter(self, value: Any) -> bool:
            return bool(value % 2)

    cases: list[tuple[Any, Any, list[Any], list[Any]]] = [
        (MAP, Double(), [(10, 2), (20, 4), (30, 6)], [2, "wm 5", 4, 6, "wm 25"]),
        (
            FLAT_MAP,
            Repeat(),
            [(10, 1), (20, 2), (20, 2), (30, 3), (30, 3), (30, 3)],
            [1, "wm 5", 2, 2, 3, 3, 3, "wm 25"],
        ),
        (FILTER, Odd(), [(10, 1), (30, 3)], [1, "wm 5", 3, "wm 25"]),
    ]
    for spec, function, expected, order in cases:
        harness = operator(spec, f=function)
        harness.batch(objects([1, 2, 3], times=[10, 20, 30], track=[(1, 5), (3, 25)]))
        assert stamped(harness.batches) == expected
        assert in_order(harness.output.elements) == order


@pytest.mark.parametrize(
    ("spec", "function", "emitted"),
    [
        (MAP, str, ["1", "2"]),
        (MAP, lambda value: None, [None, None]),
        (FLAT_MAP, lambda value: None, []),
        (FLAT_MAP, lambda value: (value for _ in range(2)), [1, 1, 2, 2]),
        (FILTER, lambda value: value - 1, [2]),
    ],
)
def test_plain_callables(spec: Any, function: Any, emitted: list[Any]) -> None:
    harness = operator(spec, f=function)
    harness.batch(objects([1, 2]))
    assert values_of(harness.batches) == emitted


def test_tuples_and_lists_stay_what_they_are() -> None:
    given = [(1, 2), (3, 4), [5], [6, 7], (), {"x": 1}, "ab", b"c"]
    harness = operator(MAP, f=lambda value: value)
    harness.batch(objects(given))
    assert values_of(harness.batches) == given


def test_a_process_function_knows_time_and_has_no_timers() -> None:
    class Time(f.ProcessFunction):
        def process_element(self, value: Any, ctx: f.ProcessFunction.Context) -> Iterator[Any]:
            service = ctx.timer_service()
            yield value, ctx.timestamp(), service.current_watermark(), service.current_processing_time()

    harness = operator(PROCESS, clock=ManualClock(77), f=Time())
    harness.batch(objects(["x", "y", "z"], times=[1, 2, NO_TIME], track=[(1, 0), (3, 2)]))
    harness.batch(objects(["w"]))
    assert values_of(harness.batches) == [
        ("x", 1, MIN_WATERMARK, 77),
        ("y", 2, 0, 77),
        ("z", NO_TIME, 0, 77),
        ("w", NO_TIME, 2, 77),
    ]

    class Timer(f.ProcessFunction):
        def process_element(self, value: Any, ctx: f.ProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(5)

    harness = operator(PROCESS, f=Timer())
    with pytest.raises(ExecutionError, match="only supported on a keyed stream"):
        harness.batch(objects([1]))


def test_state_needs_keys() -> None:
    class Asks(f.MapFunction):
        def open(self, runtime_context: f.RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("s"))

        def map(self, value: Any) -> Any:
            return value

    with pytest.raises(ExecutionError, match="stream without keys"):
        operator(MAP, f=Asks())


def test_one_element_may_become_very_many() -> None:
    harness = operator(FLAT_MAP, f=range)
    harness.batch(objects([40_000, 1], times=[7, 8]))
    assert [batch.num_rows for batch in harness.batches] == [16_384, 16_384, 7_232, 1]
    assert stamped(harness.batches)[-2:] == [(7, 39_999), (8, 0)]


def test_functions_are_opened_and_closed_once() -> None:
    calls: list[str] = []

    class Life(f.MapFunction):
        def open(self, runtime_context: f.RuntimeContext) -> None:
            calls.append(runtime_context.get_job_parameter("colour", "none"))

        def map(self, value: Any) -> Any:
            return value

        def close(self) -> None:
            calls.append("close")

        def __deepcopy__(self, memo: Any) -> Life:
            return Life()

    from flowsql_runtime.testing.harness import OperatorHarness

    harness = OperatorHarness(
        MAP, parameters={"pipeline.global-job-parameters": "colour:red,size:3"}, resources={"f": Life()}
    )
    harness.batch(objects([1]))
    harness.close()
    harness.close()
    assert calls == ["red", "close"]


def test_a_failing_map_shows_its_element() -> None:
    harness = operator(MAP, f=lambda value: value["missing"])
    with pytest.raises(ExecutionError, match="KeyError: 'missing'") as caught:
        harness.batch(objects([{"missing": 1}, {"there": 1}]))
    assert caught.value.details[-1] == "element: {'there': 1}"
    assert "<lambda>" in caught.value.details[0]


def test_a_function_may_hold_a_module() -> None:
    class Holds(f.MapFunction):
        def __init__(self) -> None:
            self.tools = itertools
            self.seen: list[Any] = []

        def map(self, value: Any) -> Any:
            self.seen.append(value)
            return list(self.tools.accumulate(self.seen))

    given = Holds()
    harness = operator(MAP, f=given)
    harness.batch(objects([1, 2]))
    assert values_of(harness.batches) == [[1], [1, 3]]
    assert given.seen == []


def test_a_function_that_cannot_be_copied_is_refused_with_a_reason() -> None:
    class Holds(f.MapFunction):
        def __init__(self) -> None:
            self.stream: Any = (number for number in range(3))

        def map(self, value: Any) -> Any:
            return value

    with pytest.raises(ExecutionError, match="cannot be copied for a subtask"):
        operator(MAP, f=Holds())


# -- two streams


def test_co_functions_know_where_an_element_came_from() -> None:
    class Names(f.CoMapFunction):
        def map1(self, value: Any) -> Any:
            return f"one {value}"

        def map2(self, value: Any) -> Any:
            return None if value == 0 else f"two {value}"

    class Repeats(f.CoFlatMapFunction):
        def flat_map1(self, value: Any) -> Any:
            return [value, value]

        def flat_map2(self, value: Any) -> Any:
            return None

    odd = OutputTag("odd")

    class Process(f.CoProcessFunction):
        def process_element1(self, value: Any, ctx: f.CoProcessFunction.Context) -> Any:
            yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

        def process_element2(self, value: Any, ctx: f.CoProcessFunction.Context) -> Any:
            yield odd, value

    for keyed in (False, True):
        kind: Any = ss.KeyedCoFunctionSpec if keyed else ss.CoFunctionSpec
        keys = ["a", "a"] if keyed else None

        def run(function: Any, call: ss.CoCall, kind: Any = kind, keys: Any = keys) -> tuple[list[Any], list[Any]]:
            harness = operator(kind("f", call), f=function)
            harness.batch(objects([1, 2], keys, times=[10, 20], track=[(2, 15)]), 0)
            harness.batch(objects([0, 3], keys, times=[30, 40], track=[(1, 5), (2, 12)]), 1)
            assert harness.watermarks == [5, 12]
            return stamped(harness.batches), side_values(harness.output, "odd")

        assert run(Names(), ss.CoCall.MAP)[0] == [(10, "one 1"), (20, "one 2"), (40, "two 3")]
        assert run(Repeats(), ss.CoCall.FLAT_MAP)[0] == [(10, 1), (10, 1), (20, 2), (20, 2)]
        if not keyed:
            main, side = run(Process(), ss.CoCall.PROCESS)
            assert main == [(10, (1, 10, MIN_WATERMARK)), (20, (2, 20, MIN_WATERMARK))]
            assert side == [(30, 0), (40, 3)]


class Match(f.KeyedCoProcessFunction):
    """Pairs a left element with the next right one of its key; gives up after 10 ms of event time."""

    def open(self, runtime_context: f.RuntimeContext) -> None:
        self.left = runtime_context.get_state(ValueStateDescriptor("left"))

    def process_element1(self, value: Any, ctx: f.KeyedCoProcessFunction.Context) -> Any:
        self.left.update(value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def process_element2(self, value: Any, ctx: f.KeyedCoProcessFunction.Context) -> Any:
        if self.left.value() is not None:
            yield ctx.get_current_key(), self.left.value(), value
            self.left.clear()

    def on_timer(self, timestamp: int, ctx: f.KeyedCoProcessFunction.OnTimerContext) -> Any:
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        if self.left.value() is not None:
            yield ctx.get_current_key(), self.left.value(), None
            self.left.clear()


@pytest.mark.parametrize(("before", "after"), [(1, 1), *itertools.permutations((1, 2, 3), 2)])
def test_two_keyed_streams_share_state_and_timers_over_a_cut(before: int, after: int) -> None:
    spec = ss.KeyedCoFunctionSpec("f", ss.CoCall.PROCESS)
    keys = [f"k{number}" for number in range(8)]
    harness = operator(spec, before, f=Match())
    harness.batch(objects([f"left {key}" for key in keys], keys, [5 + number for number in range(8)]), 0)
    harness.batch(objects(["x"], ["k0"], [1]), 1)
    harness.watermark(16, 0)
    harness.watermark(16, 1)
    moved = harness.restored(after)
    moved.batch(objects(["y", "z"], ["k1", "k3"], [2, 3]), 1)
    moved.end()
    expected = [("k0", "left k0", "x"), ("k1", "left k1", None), ("k3", "left k3", "z")]
    expected += [(f"k{number}", f"left k{number}", None) for number in (2, 4, 5, 6, 7)]
    assert sorted(map(str, values_of(moved.batches))) == sorted(map(str, expected))


# -- timestamps and watermarks


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(Itself())
BY_RECORD = ss.AssignTimestampsSpec("w", interval_ms=10, tick=ss.WatermarkTick.RECORD)
BY_CLOCK = ss.AssignTimestampsSpec("w", interval_ms=10)


def test_watermarks_by_record_rise_by_more_than_the_interval() -> None:
    harness = operator(BY_RECORD, w=BOUNDED)
    harness.batch(objects([100, 108, 111, 105, 140]))
    harness.end()
    assert stamped(harness.batches) == [(value, value) for value in (100, 108, 111, 105, 140)]
    # 94 after the first; 105 needs 111; 134 after 140.
    order = [100, "wm 94", 108, 111, "wm 105", 105, 140, "wm 134", f"wm {MAX_WATERMARK}"]
    assert in_order(harness.output.elements) == order


def test_watermarks_by_the_clock_leave_every_interval() -> None:
    harness = operator(BY_CLOCK, w=BOUNDED)
    harness.batch(objects([100, 108]))
    assert harness.watermarks == []
    harness.advance(10)
    harness.advance(10)
    assert harness.watermarks == [102]
    harness.batch(objects([90, 120]))
    harness.advance(10)
    harness.end()
    assert harness.watermarks == [102, 114, MAX_WATERMARK]


def test_an_interval_of_zero_leaves_the_watermark_to_the_end() -> None:
    harness = operator(ss.AssignTimestampsSpec("w", interval_ms=0), w=BOUNDED.with_idleness(Duration.of_millis(1)))
    harness.batch(objects([100, 100_000]))
    harness.advance(1_000)
    harness.end()
    assert harness.watermarks == [MAX_WATERMARK]
    assert not [element for element in harness.output.elements if isinstance(element, WatermarkStatus)]


def test_each_split_of_a_source_has_its_watermark() -> None:
    harness = operator(BY_CLOCK, w=BOUNDED)
    progress = harness.operators[0].ctx.progress
    progress.unfinished |= {"a", "b"}

    def read(split: str, *values: int) -> None:
        progress.current = split
        harness.batch(objects(values))
        progress.current = None
        harness.advance(10)

    read("a", 100, 200)
    assert harness.watermarks == []  # nothing is known of b yet
    read("b", 50)
    assert harness.watermarks == [44]
    read("a", 300)
    progress.unfinished.discard("b")
    harness.advance(10)
    assert harness.watermarks == [44, 294]
    progress.unfinished.discard("a")
    harness.advance(10)
    harness.end()
    assert harness.watermarks == [44, 294, MAX_WATERMARK]


def test_watermarks_without_assigner_follow_the_timestamps_that_records_have() -> None:
    harness = operator(BY_RECORD, w=WatermarkStrategy.for_monotonous_timestamps())
    harness.batch(objects(["x", "y"], times=[50, NO_TIME], track=[(1, 1000)]))
    assert stamped(harness.batches) == [(50, "x"), (None, "y")]
    assert harness.watermarks == [49]


def test_no_watermarks_strategy_gives_timestamps_only() -> None:
    harness = operator(BY_RECORD, w=WatermarkStrategy.no_watermarks().with_timestamp_assigner(Itself()))
    harness.batch(objects([50, 500]))
    assert stamped(harness.batches) == [(50, 50), (500, 500)]
    assert harness.watermarks == []


def test_a_silent_subtask_becomes_idle_and_a_higher_watermark_ends_that() -> None:
    harness = operator(BY_CLOCK, w=BOUNDED.with_idleness(Duration.of_millis(30)))

    def told() -> list[bool]:
        return [element.active for element in harness.output.elements if isinstance(element, WatermarkStatus)]

    harness.batch(objects([100]))
    # The first tick takes note of the row, the second one begins the silence, which is too long 40 ms later.
    for _ in range(5):
        harness.advance(10)
    assert (told(), harness.watermarks) == ([], [94])
    harness.advance(10)
    assert told() == [False]
    harness.batch(objects([90]))
    harness.advance(10)
    assert told() == [False]  # it lifted no watermark
    harness.batch(objects([200]))
    assert told() == [False]
    harness.advance(10)
    assert (told(), harness.watermarks) == ([False, True], [94, 194])


def test_a_subtask_without_any_row_becomes_idle() -> None:
    harness = operator(BY_CLOCK, w=WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(5)))
    harness.advance(10)
    harness.advance(10)
    found = [element.active for element in harness.output.elements if isinstance(element, WatermarkStatus)]
    assert found == [False]


def test_a_cut_assigner_goes_on_where_it_was() -> None:
    harness = operator(BY_RECORD, w=BOUNDED)
    harness.batch(objects([100, 200]))
    moved = harness.restored(1)
    moved.batch(objects([150, 204, 211]))
    assert [level for level, _ in itertools.groupby(moved.watermarks)] == [94, 194, 205]


# -- print


@pytest.mark.parametrize(
    ("identifier", "parallelism", "prefixes"),
    [("", 1, {""}), ("id", 1, {"id> "}), ("", 2, {"1> ", "2> "}), ("id", 2, {"id:1> ", "id:2> "})],
)
def test_print_writes_lines_with_identifier_and_subtask(
    capsys: pytest.CaptureFixture[str], identifier: str, parallelism: int, prefixes: set[str]
) -> None:
    harness = operator(ss.PrintObjectsSpec(identifier, text="t"), parallelism, t=lambda value: f"<{value}>")
    harness.batch(objects(range(20), range(20)))
    lines = capsys.readouterr().out.splitlines()
    assert {line.partition("<")[0] for line in lines} == prefixes
    assert sorted(int(line.partition("<")[2][:-1]) for line in lines) == list(range(20))


def test_print_to_error(capsys: pytest.CaptureFixture[str]) -> None:
    operator(ss.PrintObjectsSpec(to_error=True)).batch(objects([(1, "x")]))
    assert capsys.readouterr().err == "(1, 'x')\n"
