"""Windows of keyed streams. Expected outputs are worked out from Flink's rules."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from flowsql_core.clock import ManualClock
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.stream_specs import StreamWindowSpec
from flowsql_core.stream import functions as f
from flowsql_core.stream import state as st
from flowsql_core.stream import triggers as t
from flowsql_core.stream import window_assigners as w
from flowsql_core.stream.time import Time
from flowsql_core.stream.window import SessionWindowTimeGapExtractor, TimeWindow, Trigger, TriggerResult
from flowsql_runtime.testing.harness import OperatorHarness

from .streams import objects, operator, side_values, stamped, values_of

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]


class Lists(f.ProcessWindowFunction[Any, Any, Any, Any]):
    """(key, window, elements)."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        window = context.window()
        yield key, str(window) if not isinstance(window, TimeWindow) else (window.start, window.end), list(elements)


class Sum(f.AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


def windows(
    assigner: Any,
    function: Any = None,
    parallelism: int = 1,
    clock: ManualClock | None = None,
    trigger: Any = None,
    aggregation: Any = None,
    lateness_ms: int = 0,
    late_tag: str | None = None,
) -> OperatorHarness[Any]:
    given = {"assigner": assigner, "function": function, "trigger": trigger, "aggregation": aggregation}
    resources = {name: value for name, value in given.items() if value is not None}
    spec = StreamWindowSpec(
        "assigner",
        None if trigger is None else "trigger",
        None if aggregation is None else "aggregation",
        None if function is None else "function",
        lateness_ms,
        late_tag,
    )
    return operator(spec, parallelism, clock, **resources)


def feed(harness: OperatorHarness[Any], *rows: tuple[str, int], track: Iterable[tuple[int, int]] = ()) -> None:
    """Rows of (key, timestamp); the timestamp is the element, too."""
    harness.batch(objects([at for _, at in rows], [k for k, _ in rows], [at for _, at in rows], list(track)))


TUMBLING = w.TumblingEventTimeWindows.of(Time.milliseconds(10))


# -- tumbling and sliding


def test_tumbling_windows_close_when_the_watermark_reaches_their_last_millisecond() -> None:
    harness = windows(TUMBLING, Lists())
    feed(harness, ("a", 1), ("b", 12), ("a", 9), ("a", 10))
    harness.watermark(8)
    assert not harness.batches
    harness.watermark(9)
    assert stamped(harness.batches) == [(9, ("a", (0, 10), [1, 9]))]
    harness.end()
    assert stamped(harness.batches)[1:] == [(19, ("b", (10, 20), [12])), (19, ("a", (10, 20), [10]))]


def test_windows_close_between_rows_where_the_watermark_passes() -> None:
    harness = windows(TUMBLING, Lists())
    feed(harness, ("a", 5), ("a", 19), ("a", 7), ("a", 11), track=[(2, 9)])
    harness.end()
    # 7 is late: it came behind watermark 9.
    assert values_of(harness.batches) == [("a", (0, 10), [5]), ("a", (10, 20), [19, 11])]
    assert harness.operators[0].ctx.metrics.values()["numLateRecordsDropped"] == 1


def test_offsets_and_negative_times() -> None:
    harness = windows(w.TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3)), Lists())
    feed(harness, ("a", -8), ("a", -7), ("a", 2), ("a", 3))
    harness.end()
    assert values_of(harness.batches) == [("a", (-17, -7), [-8]), ("a", (-7, 3), [-7, 2]), ("a", (3, 13), [3])]


def test_sliding_windows_hold_an_element_each() -> None:
    harness = windows(w.SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4)), aggregation=Sum())
    feed(harness, ("a", 1), ("a", 9))
    harness.end()
    # [-8,2) [-4,6) [0,10) hold 1; [0,10) [4,14) [8,18) hold 9.
    assert stamped(harness.batches) == [(1, 1), (5, 1), (9, 10), (13, 9), (17, 9)]


def test_windows_of_one_element_do_not_share_it() -> None:
    def grow(one: list[int], two: list[int]) -> list[int]:
        one.extend(two)
        return one

    harness = windows(w.SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)), aggregation=grow)
    harness.batch(objects([[7], [12]], ["a", "a"], [7, 12]))
    harness.end()
    assert values_of(harness.batches) == [[7], [7, 12], [12]]


@pytest.mark.parametrize(
    ("aggregation", "function", "expected"),
    [
        (lambda a, b: a + b, None, [(9, 10), (19, 12)]),
        (Sum(), None, [(9, 10), (19, 12)]),
        (lambda a, b: max(a, b), Lists(), [(9, ("a", (0, 10), [9])), (19, ("a", (10, 20), [12]))]),
        (Sum(), Lists(), [(9, ("a", (0, 10), [10])), (19, ("a", (10, 20), [12]))]),
    ],
)
def test_windows_fold_their_elements(aggregation: Any, function: Any, expected: list[Any]) -> None:
    harness = windows(TUMBLING, function, aggregation=aggregation)
    feed(harness, ("a", 1), ("a", 12), ("a", 9))
    harness.end()
    assert stamped(harness.batches) == expected


def test_a_window_function_gets_key_and_window() -> None:
    class Apply(f.WindowFunction[Any, Any, Any, Any]):
        def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
            return [(key, window.max_timestamp(), sum(inputs))]

    harness = windows(TUMBLING, Apply())
    feed(harness, ("a", 1), ("a", 9))
    harness.end()
    assert values_of(harness.batches) == [("a", 9, 10)]


def test_windows_of_a_whole_stream() -> None:
    class Apply(f.AllWindowFunction[Any, Any, Any]):
        def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
            yield window.start, list(inputs)

    class Process(f.ProcessAllWindowFunction[Any, Any, Any]):
        def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            yield context.window().start, list(elements)

    for function in (Apply(), Process()):
        with pytest.raises(ExecutionError, match="no window function of a keyed stream"):
            windows(TUMBLING, function)
        spec = StreamWindowSpec("assigner", function="function", whole_stream=True)
        harness = operator(spec, assigner=TUMBLING, function=function)
        harness.batch(objects([1, 2], [0, 0], [1, 2]))
        harness.end()
        assert values_of(harness.batches) == [(0, [1, 2])]


# -- late elements


def test_late_elements_go_to_their_side_output() -> None:
    harness = windows(TUMBLING, Lists(), late_tag="late")
    feed(harness, ("a", 5))
    harness.watermark(9)
    feed(harness, ("a", 6), ("a", 10))
    harness.end()
    assert values_of(harness.batches) == [("a", (0, 10), [5]), ("a", (10, 20), [10])]
    assert side_values(harness.output, "late") == [(6, 6)]


def test_within_the_allowed_lateness_a_late_element_fires_its_window_again() -> None:
    harness = windows(TUMBLING, Lists(), lateness_ms=5, late_tag="late")
    feed(harness, ("a", 5))
    harness.watermark(9)
    feed(harness, ("a", 6))
    harness.watermark(13)
    feed(harness, ("a", 7))
    harness.watermark(14)
    feed(harness, ("a", 8))
    harness.end()
    lists = [("a", (0, 10), [5]), ("a", (0, 10), [5, 6]), ("a", (0, 10), [5, 6, 7])]
    # Fired by the timer, then by each late element.
    assert stamped(harness.batches) == list(zip([9, 6, 7], lists, strict=True))
    assert side_values(harness.output, "late") == [(8, 8)]


# -- sessions


def test_sessions_grow_together() -> None:
    harness = windows(w.EventTimeSessionWindows.with_gap(Time.milliseconds(10)), Lists())
    feed(harness, ("a", 0), ("a", 25), ("b", 3), ("a", 13), ("a", 8), ("a", 40))
    harness.watermark(34)
    # 8 joins [0,10) and [13,23); [25,35) stays apart of [.., 23).
    assert stamped(harness.batches) == [
        (12, ("b", (3, 13), [3])),
        (22, ("a", (0, 23), [0, 13, 8])),
        (34, ("a", (25, 35), [25])),
    ]
    harness.end()
    assert stamped(harness.batches)[3:] == [(49, ("a", (40, 50), [40]))]


def test_sessions_that_touch_are_one() -> None:
    harness = windows(w.EventTimeSessionWindows.with_gap(Time.milliseconds(10)), aggregation=Sum(), function=Lists())
    feed(harness, ("a", 0), ("a", 10), ("a", 21))
    harness.end()
    assert values_of(harness.batches) == [("a", (0, 20), [10]), ("a", (21, 31), [21])]


def test_an_element_says_its_own_gap() -> None:
    class Gap(SessionWindowTimeGapExtractor):
        def extract(self, element: Any) -> int:
            return int(element % 10)

    harness = windows(w.EventTimeSessionWindows.with_dynamic_gap(Gap()), Lists())
    feed(harness, ("a", 1), ("a", 9), ("a", 15), ("a", 22))
    harness.end()
    # [1,2) [9,18) with [15,20), [22,24)
    assert values_of(harness.batches) == [("a", (1, 2), [1]), ("a", (9, 20), [9, 15]), ("a", (22, 24), [22])]


def test_a_session_late_behind_the_watermark_is_dropped_unless_it_joins_one_that_is_open() -> None:
    harness = windows(w.EventTimeSessionWindows.with_gap(Time.milliseconds(10)), Lists(), late_tag="late")
    feed(harness, ("a", 20))
    harness.watermark(25)
    feed(harness, ("a", 5), ("a", 12))
    harness.end()
    # [5,15) ended before 25; [12,22) joins [20,30).
    assert side_values(harness.output, "late") == [(5, 5)]
    assert values_of(harness.batches) == [("a", (12, 30), [20, 12])]


def test_merging_windows_have_no_state_of_their_own() -> None:
    class Asks(f.ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
            context.window_state().get_state(st.ValueStateDescriptor("s"))
            yield 1

    harness = windows(w.EventTimeSessionWindows.with_gap(Time.milliseconds(10)), Asks())
    feed(harness, ("a", 0))
    with pytest.raises(ExecutionError, match="Per-window state is not allowed"):
        harness.end()


def test_a_trigger_that_cannot_merge_is_refused_for_sessions() -> None:
    with pytest.raises(ExecutionError, match="does not support merging"):
        windows(w.EventTimeSessionWindows.with_gap(Time.milliseconds(10)), Lists(), trigger=t.NeverTrigger())


# -- the clock


def test_windows_of_the_clock() -> None:
    clock = ManualClock(1)
    harness = windows(w.TumblingProcessingTimeWindows.of(Time.milliseconds(10)), Lists(), clock=clock)
    feed(harness, ("a", 100), ("a", 200))
    harness.advance(7)
    feed(harness, ("a", 300))
    assert not harness.batches
    harness.advance(1)
    assert stamped(harness.batches) == [(9, ("a", (0, 10), [100, 200, 300]))]
    feed(harness, ("a", 400))
    harness.end()
    # Windows of the clock that are open at the end of the input are dropped.
    assert len(values_of(harness.batches)) == 1


def test_sliding_windows_of_the_clock() -> None:
    harness = windows(
        w.SlidingProcessingTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)), Lists(), clock=ManualClock(7)
    )
    feed(harness, ("a", 1))
    harness.advance(10)
    assert values_of(harness.batches) == [("a", (0, 10), [1]), ("a", (5, 15), [1])]


def test_sessions_of_the_clock() -> None:
    class Gap(SessionWindowTimeGapExtractor):
        def extract(self, element: Any) -> int:
            return 10

    for assigner in (
        w.ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10)),
        w.ProcessingTimeSessionWindows.with_dynamic_gap(Gap()),
    ):
        harness = windows(assigner, Lists())
        feed(harness, ("a", 1))
        harness.advance(6)
        feed(harness, ("a", 2))
        harness.advance(8)
        assert not harness.batches
        harness.advance(1)
        assert values_of(harness.batches) == [("a", (0, 16), [1, 2])]


def test_windows_of_the_clock_may_fire_by_the_watermark() -> None:
    assigner = w.TumblingProcessingTimeWindows.of(Time.milliseconds(10))
    harness = windows(assigner, Lists(), trigger=t.EventTimeTrigger.create(), clock=ManualClock(3))
    feed(harness, ("a", 1))
    harness.watermark(9)
    feed(harness, ("a", 2))
    assert [elements for _, _, elements in values_of(harness.batches)] == [[1], [1, 2]]


# -- counts, global windows, triggers


def test_count_windows_fire_when_they_are_full() -> None:
    harness = windows(w.CountTumblingWindowAssigner.of(2), Lists())
    feed(harness, ("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7))
    harness.end()
    assert stamped(harness.batches) == [
        (3, ("a", "CountWindow(id=0)", [1, 3])),
        (5, ("b", "CountWindow(id=0)", [2, 5])),
        (6, ("a", "CountWindow(id=1)", [4, 6])),
    ]


def test_sliding_count_windows() -> None:
    harness = windows(w.CountSlidingWindowAssigner.of(3, 2), Lists())
    feed(harness, *(("a", number) for number in range(8)))
    harness.end()
    assert [elements for _, _, elements in values_of(harness.batches)] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


def test_full_count_windows_leave_nothing_behind() -> None:
    harness = windows(w.CountTumblingWindowAssigner.of(2), Lists())
    feed(harness, *(("a", number) for number in range(100)))
    tables = harness.operators[0].ctx.state.snapshot()
    assert {name for name, table in tables.items() if table.num_rows} == {"key.tumble-count-assigner"}


@pytest.mark.parametrize(("purging", "expected"), [(False, [[0, 1], [0, 1, 2, 3]]), (True, [[0, 1], [2, 3]])])
def test_global_windows_fire_by_their_trigger(purging: bool, expected: list[Any]) -> None:
    trigger: Any = t.PurgingTrigger.of(t.CountTrigger.of(2)) if purging else t.CountTrigger.of(2)
    harness = windows(w.GlobalWindows.create(), Lists(), trigger=trigger)
    feed(harness, *(("a", number) for number in range(5)))
    harness.end()
    assert [elements for _, _, elements in values_of(harness.batches)] == expected


def test_global_windows_never_fire_by_themselves() -> None:
    harness = windows(w.GlobalWindows.create(), Lists())
    feed(harness, ("a", 1))
    harness.end()
    assert not harness.batches


def test_a_continuous_trigger_fires_every_interval_and_at_the_end() -> None:
    trigger = t.ContinuousEventTimeTrigger.of(Time.milliseconds(4))
    harness = windows(TUMBLING, Lists(), trigger=trigger)
    feed(harness, ("a", 1))
    harness.watermark(4)
    feed(harness, ("a", 5))
    harness.watermark(8)
    harness.watermark(20)
    lists = [elements for _, _, elements in values_of(harness.batches)]
    assert lists == [[1], [1, 5], [1, 5]]


def test_a_continuous_trigger_of_the_clock() -> None:
    trigger = t.ContinuousProcessingTimeTrigger.of(Time.milliseconds(4))
    harness = windows(w.GlobalWindows.create(), Lists(), trigger=trigger, clock=ManualClock(1))
    feed(harness, ("a", 1))
    harness.advance(3)
    feed(harness, ("a", 2))
    harness.advance(4)
    assert [elements for _, _, elements in values_of(harness.batches)] == [[1], [1, 2]]


def test_counts_of_sessions_merge_with_them() -> None:
    assigner = w.EventTimeSessionWindows.with_gap(Time.milliseconds(10))
    harness = windows(assigner, Lists(), trigger=t.CountTrigger.of(3))
    feed(harness, ("a", 0), ("a", 15), ("a", 8))
    harness.end()
    assert values_of(harness.batches) == [("a", (0, 25), [0, 15, 8])]


class EveryOther(Trigger[Any, Any]):
    """A trigger of a program: fires and purges at every other element, with its own state."""

    def __init__(self) -> None:
        self.odd = st.ValueStateDescriptor("odd")

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        state = ctx.get_partitioned_state(self.odd)
        if state.value():
            state.clear()
            return TriggerResult.FIRE_AND_PURGE
        state.update(True)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.odd).clear()


def test_a_trigger_of_a_program_has_state_per_window() -> None:
    harness = windows(TUMBLING, Lists(), trigger=EveryOther())
    feed(harness, ("a", 1), ("a", 11), ("b", 2), ("a", 3), ("b", 4), ("a", 5))
    harness.end()
    assert [elements for _, _, elements in values_of(harness.batches)] == [[1, 3], [2, 4]]
    tables = harness.operators[0].ctx.state.snapshot()
    assert not any(table.num_rows for table in tables.values()), "everything was cleaned up"


# -- state of window functions, clean-up


class Remembers(f.ProcessWindowFunction[Any, Any, Any, Any]):
    """Counts its firings, by window and over all; ``clear`` removes what belongs to the window."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        own = context.window_state().get_state(st.ValueStateDescriptor("fired"))
        all_ = context.global_state().get_state(st.ValueStateDescriptor("fired"))
        for state in (own, all_):
            state.update((state.value() or 0) + 1)
        yield context.window().start, own.value(), all_.value(), context.current_watermark()

    def clear(self, context: Any) -> None:
        context.window_state().get_state(st.ValueStateDescriptor("fired")).clear()


def test_a_window_function_has_state_of_window_and_key() -> None:
    harness = windows(TUMBLING, Remembers(), lateness_ms=10)
    feed(harness, ("a", 1), ("a", 11))
    harness.watermark(12)
    feed(harness, ("a", 2))
    harness.watermark(30)
    assert values_of(harness.batches) == [(0, 1, 1, 12), (0, 2, 2, 12), (10, 1, 3, 30)]
    tables = harness.operators[0].ctx.state.snapshot()
    assert {name for name, table in tables.items() if table.num_rows} == {"key.fired"}


# -- the cut


class OwnGap(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return int(element) % 5 + 1


CASES: dict[str, dict[str, Any]] = {
    "tumbling": {"assigner": TUMBLING, "function": Lists(), "lateness_ms": 7, "late_tag": "late"},
    "sliding sums": {
        "assigner": w.SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(10)),
        "aggregation": Sum(),
    },
    "sessions": {"assigner": w.EventTimeSessionWindows.with_gap(Time.milliseconds(4)), "function": Lists()},
    "session sums": {
        "assigner": w.EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
        "function": Lists(),
        "aggregation": Sum(),
    },
    "counts": {"assigner": w.CountTumblingWindowAssigner.of(4), "function": Lists()},
    "global": {"assigner": w.GlobalWindows.create(), "trigger": t.CountTrigger.of(3), "aggregation": Sum()},
    "continuous": {
        "assigner": TUMBLING,
        "function": Lists(),
        "trigger": t.ContinuousEventTimeTrigger.of(Time.milliseconds(3)),
    },
    "window state": {"assigner": TUMBLING, "function": Remembers(), "lateness_ms": 7},
    "sliding counts": {"assigner": w.CountSlidingWindowAssigner.of(5, 2), "function": Lists()},
    "reduced": {"assigner": TUMBLING, "aggregation": max, "function": Lists()},
    "own gaps": {"assigner": w.EventTimeSessionWindows.with_dynamic_gap(OwnGap()), "function": Lists()},
    "counted sessions": {
        "assigner": w.EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
        "function": Lists(),
        "trigger": t.CountTrigger.of(3),
    },
    "purged": {"assigner": TUMBLING, "function": Lists(), "trigger": t.PurgingTrigger.of(t.CountTrigger.of(2))},
}


@pytest.mark.parametrize("name", CASES)
def test_windows_survive_the_cut_at_any_parallelism(name: str) -> None:
    draw = random.Random(name)
    rows = [(f"k{draw.randrange(6)}", row // 2 + draw.randrange(8)) for row in range(120)]

    def run(harness: OperatorHarness[Any], part: list[tuple[str, int]], first: int) -> None:
        for start in range(0, len(part), 10):
            feed(harness, *part[start : start + 10])
            harness.watermark((first + start + 10) // 2 - 3)

    def found(harness: OperatorHarness[Any]) -> tuple[list[str], list[str]]:
        late = side_values(harness.output, "late")
        return sorted(map(repr, stamped(harness.batches))), sorted(map(repr, late))

    case = CASES[name]
    whole = windows(**case)
    run(whole, rows, 0)
    whole.end()
    assert whole.batches
    for before, after in itertools.product((1, 2, 3), repeat=2):
        cut = windows(**case, parallelism=before)
        run(cut, rows[:60], 0)
        moved = cut.restored(after)
        run(moved, rows[60:], 60)
        moved.end()
        assert found(moved) == found(whole), (before, after)


@pytest.mark.parametrize(
    "assigner",
    [
        w.TumblingProcessingTimeWindows.of(Time.milliseconds(10)),
        w.SlidingProcessingTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)),
        w.ProcessingTimeSessionWindows.with_gap(Time.milliseconds(6)),
    ],
    ids=["tumbling", "sliding", "sessions"],
)
def test_windows_of_the_clock_survive_the_cut(assigner: Any) -> None:
    rows = [(f"k{number % 7}", number) for number in range(40)]

    def run(harness: OperatorHarness[Any], part: list[tuple[str, int]]) -> None:
        for start in range(0, len(part), 5):
            feed(harness, *part[start : start + 5])
            harness.advance(3)

    whole = windows(assigner, Lists())
    run(whole, rows)
    whole.advance(100)
    wanted = sorted(map(repr, values_of(whole.batches)))
    assert len(wanted) > 10
    for before, after in itertools.product((1, 2, 3), repeat=2):
        cut = windows(assigner, Lists(), before)
        run(cut, rows[:20])
        moved = cut.restored(after)
        run(moved, rows[20:])
        moved.advance(100)
        assert sorted(map(repr, values_of(moved.batches))) == wanted, (before, after)


def test_a_window_needs_timestamps() -> None:
    harness = windows(TUMBLING, Lists())
    with pytest.raises(ExecutionError, match="Record has no timestamp"):
        harness.batch(objects([1], ["a"]))
