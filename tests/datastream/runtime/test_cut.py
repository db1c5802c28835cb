"""Jobs of DataStreams, run whole and cut in two at any parallelism: the same output. Every operator is cut."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from flowsql_core.graph import job as g
from flowsql_core.graph import stream_specs as ss
from flowsql_core.stream import broadcast_functions as b
from flowsql_core.stream import functions as f
from flowsql_core.stream import state as st
from flowsql_core.stream.output_tag import OutputTag
from flowsql_core.stream.time import Duration, Time
from flowsql_core.stream.watermark import TimestampAssigner, WatermarkStrategy
from flowsql_core.stream.window_assigners import EventTimeSessionWindows
from flowsql_runtime.stream.registry import CLASSES
from flowsql_runtime.testing.cut import run_cut, run_whole

from .streams import collect, edge, graph, vertex

pytestmark = pytest.mark.usefixtures("each_backend")

ROWS: Final = 120
ODD: Final = OutputTag("odd")


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class RunningSum(f.KeyedProcessFunction):
    """Sums a key; tells the sum 50 ms of event time after each element."""

    def open(self, runtime_context: f.RuntimeContext) -> None:
        self.sum = runtime_context.get_state(st.ValueStateDescriptor("sum"))
        self.seen = runtime_context.get_list_state(st.ListStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: f.KeyedProcessFunction.Context) -> Any:
        self.sum.update((self.sum.value() or 0) + value[1])
        self.seen.add(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() // 50 * 50 + 50)
        if value[1] % 2:
            yield ODD, value

    def on_timer(self, timestamp: int, ctx: f.KeyedProcessFunction.OnTimerContext) -> Any:
        yield timestamp, ctx.get_current_key(), self.sum.value(), tuple(self.seen)


class Sessions(f.ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, context.window().start, context.window().end, tuple(sorted(value[1] for value in elements))


class Pairs(f.KeyedCoProcessFunction):
    def open(self, runtime_context: f.RuntimeContext) -> None:
        self.counts = runtime_context.get_map_state(st.MapStateDescriptor("counts"))

    def process_element1(self, value: Any, ctx: f.KeyedCoProcessFunction.Context) -> Any:
        self.counts.put("left", (self.counts.get("left") or 0) + 1)
        ctx.timer_service().register_event_time_timer(10_000)

    def process_element2(self, value: Any, ctx: f.KeyedCoProcessFunction.Context) -> Any:
        self.counts.put("right", (self.counts.get("right") or 0) + 1)

    def on_timer(self, timestamp: int, ctx: f.KeyedCoProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), tuple(sorted(self.counts.items()))


RULES: Final = st.MapStateDescriptor("rules")


class Rules(b.BroadcastProcessFunction[Any, Any, Any]):
    """Tells at each rule how many there are by now, and passes elements on."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield "element", value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value, len(rules.keys()))
        yield "rules", len(rules.keys())


class Once(f.FilterFunction):
    """What the first subtask tells of the rules, and every element."""

    def open(self, runtime_context: f.RuntimeContext) -> None:
        self.first = runtime_context.get_index_of_this_subtask() == 0

    def filter(self, value: Any) -> bool:
        return self.first or value[0] == "element"


class KeyedRules(b.KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Counts the elements of a key; tells at the end how many there were, and all rules."""

    def open(self, runtime_context: f.RuntimeContext) -> None:
        self.count = runtime_context.get_state(st.ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10_000)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES)[value] = len(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.count.value(), sorted(ctx.get_broadcast_state(RULES).items())


class Both(f.CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "one", value

    def map2(self, value: Any) -> Any:
        return "two", value


def elements(shift: int = 0) -> list[Any]:
    """(key, time): rising, a little out of order, with gaps."""
    return [(f"k{(row * 7 + shift) % 11}", row * 3 + (row % 5) * 2 + row // 40 * 60) for row in range(ROWS)]


STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10)).with_timestamp_assigner(Stamp())
#: By record, so that watermarks do not depend on when a job is cut.
STAMPS = ss.AssignTimestampsSpec("strategy", interval_ms=5, tick=ss.WatermarkTick.RECORD)
RESOURCES: dict[str, Any] = {
    "in": elements(),
    "other": elements(3),
    "strategy": STRATEGY,
    "key": lambda value: value[0],
    "itself": lambda value: value,
    "sum": RunningSum(),
    "sessions": Sessions(),
    "assigner": EventTimeSessionWindows.with_gap(Time.milliseconds(12)),
    "pairs": Pairs(),
    "both": Both(),
    "rules": Rules(),
    "keyed rules": KeyedRules(),
    "same": lambda batch: batch,
}


def keyed(vertex_id: int, source: str = "in") -> g.JobVertex:
    """Source, timestamps and keys; parallelism 1, as sources of collections are."""
    return vertex(
        vertex_id,
        ss.CollectionSourceSpec(source),
        ss.BatchMapSpec("same"),
        STAMPS,
        ss.RowFunctionSpec("itself", ss.RowCall.MAP),
        ss.KeySelectSpec("key"),
    )


def process_job(parallelism: int) -> g.JobGraph:
    """Keyed sums, late sums on the main output, odd elements aside."""
    source = keyed(1)
    main = vertex(2, ss.KeyedFunctionSpec("sum", ss.KeyedCall.PROCESS), collect(), parallelism=parallelism)
    side = vertex(3, collect("odd"))
    aside = g.ExchangeEdge(2, 200, 3, 0, g.Partitioning(g.ShipStrategy.REBALANCE), tag=ODD.tag_id)
    return graph([source, main, side], [edge(source, main), aside], RESOURCES)


def window_job(parallelism: int) -> g.JobGraph:
    source = keyed(1)
    spec = ss.StreamWindowSpec("assigner", function="sessions", late_tag="late")
    main = vertex(2, spec, collect(), parallelism=parallelism)
    return graph([source, main], [edge(source, main)], RESOURCES)


def pairs_job(parallelism: int) -> g.JobGraph:
    left, right = keyed(1), keyed(3, "other")
    main = vertex(2, ss.KeyedCoFunctionSpec("pairs", ss.CoCall.PROCESS), collect(), parallelism=parallelism)
    return graph([left, right, main], [edge(left, main, 0), edge(right, main, 1)], RESOURCES)


def connected_job(parallelism: int) -> g.JobGraph:
    left, right = vertex(1, ss.CollectionSourceSpec("in")), vertex(3, ss.CollectionSourceSpec("other"))
    main = vertex(2, ss.CoFunctionSpec("both", ss.CoCall.MAP), collect(), parallelism=parallelism)
    shuffled = [edge(v, main, i, g.ShipStrategy.REBALANCE) for i, v in enumerate((left, right))]
    return graph([left, right, main], shuffled, RESOURCES)


def broadcast_job(parallelism: int) -> g.JobGraph:
    left, right = vertex(1, ss.CollectionSourceSpec("in")), vertex(3, ss.CollectionSourceSpec("other"))
    spec = ss.BroadcastFunctionSpec("rules", ("rules",))
    main = vertex(2, spec, ss.RowFunctionSpec("once", ss.RowCall.FILTER), collect(), parallelism=parallelism)
    edges = [edge(left, main, 0, g.ShipStrategy.REBALANCE), edge(right, main, 1, g.ShipStrategy.BROADCAST)]
    return graph([left, right, main], edges, {**RESOURCES, "once": Once()})


def keyed_broadcast_job(parallelism: int) -> g.JobGraph:
    left, right = keyed(1), vertex(3, ss.CollectionSourceSpec("other"), STAMPS)
    spec = ss.KeyedBroadcastFunctionSpec("keyed rules", ("rules",))
    main = vertex(2, spec, collect(), parallelism=parallelism)
    edges = [edge(left, main, 0), edge(right, main, 1, g.ShipStrategy.BROADCAST)]
    return graph([left, right, main], edges, RESOURCES)


JOBS: Final[dict[str, Callable[[int], g.JobGraph]]] = {
    "process": process_job,
    "windows": window_job,
    "pairs": pairs_job,
    "connected": connected_job,
    "broadcast": broadcast_job,
    "keyed broadcast": keyed_broadcast_job,
}
#: Operators of no job here: they keep nothing, emit nothing.
WITHOUT_STATE: Final = {ss.PrintObjectsSpec}

#: Cut in test_files.py and test_async.py of tests/datastream/api; the last is for batch mode, which takes no snapshots.
ELSEWHERE: Final = {ss.LineSourceSpec, ss.HybridSourceSpec, ss.AsyncFunctionSpec, ss.SortedInputsSpec}


def test_every_operator_of_the_registry_is_cut() -> None:
    """A new operator needs a job here."""
    specs = {type(node.spec) for make in JOBS.values() for v in make(1).vertices for node in v.operators}
    assert specs & set(CLASSES) == set(CLASSES) - WITHOUT_STATE - ELSEWHERE
    assert not any(CLASSES[spec].stateful for spec in WITHOUT_STATE)


def rows(found: dict[str, list[Any]]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, values)) for name, values in found.items()}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_is_cut_and_goes_on_elsewhere_gives_the_same(name: str, each_backend: str) -> None:
    make = JOBS[name]
    whole = rows(run_whole(make(1)))
    assert all(whole.values())
    assert rows(run_whole(make(3))) == whole
    positions = itertools.cycle((7, 60, 113))
    pairs = list(itertools.product((1, 2, 3, 4), repeat=2))
    for before, after in pairs[::3] if each_backend == "rocksdb" else pairs:
        cut = run_cut(make, (before, after), next(positions))
        found = {resource: cut.rows(resource) for resource in cut.before}
        assert rows(found) == whole, (before, after)


@pytest.mark.parametrize("position", [0, 1, 16, 61, ROWS])
def test_wherever_a_job_is_cut(position: int) -> None:
    whole = rows(run_whole(process_job(2)))
    cut = run_cut(process_job, (2, 3), position)
    assert rows({resource: cut.rows(resource) for resource in cut.before}) == whole


def test_order_of_a_key_is_kept_over_the_cut() -> None:
    whole = run_whole(process_job(1))["out"]
    cut = run_cut(process_job, (1, 1), 50)
    assert cut.rows() == whole
