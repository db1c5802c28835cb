"""Programs of the whole API, cut in the middle and restored at another parallelism, give what they give uncut.

Watermarks rise with the records here, not by the clock, so that timers and windows fire on both sides of the cut.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from flowsql.common import Duration, Time, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import (
    AggregateFunction,
    CoFlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flowsql.datastream import data_stream as ds
from flowsql.datastream.plan import operators
from flowsql.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flowsql.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.stream_specs import AssignTimestampsSpec, WatermarkTick
from flowsql_runtime.cluster.local import LocalCluster

pytestmark = pytest.mark.usefixtures("each_backend")

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
#: (key, time): rising, a little out of order, with gaps.
DATA = [(f"k{(n * 7) % 11}", n * 3 + n % 5 * 2 + n // 30 * 40) for n in range(90)]
ODD = OutputTag("odd")
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Total(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class Everything(KeyedProcessFunction):
    """One state of each kind, one of them with time to live; timers every 50 ms, some of them taken back."""

    def open(self, runtime_context: RuntimeContext) -> None:
        lasting = ValueStateDescriptor("lasting", Types.INT())
        lasting.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.INT()))
        self.lasting = runtime_context.get_state(lasting)
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))
        self.most = runtime_context.get_reducing_state(ReducingStateDescriptor("most", max, Types.INT()))
        pair = Types.TUPLE([Types.INT(), Types.INT()])
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), pair))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        number = value[1]
        self.value.update((self.value.value() or 0) + number)
        self.lasting.update((self.lasting.value() or 0) + 1)
        self.list.add(number)
        self.map.put(number % 3, number)
        self.most.add(number % 17)
        self.mean.add(number)
        timers = ctx.timer_service()
        timers.register_event_time_timer(number // 50 * 50 + 50)
        timers.register_event_time_timer(number // 50 * 50 + 60)
        if number % 4 == 0:
            timers.delete_event_time_timer(number // 50 * 50 + 60)
        if number % 2:
            yield ODD, value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        seen = tuple(self.list), tuple(sorted(self.map.items())), self.most.get(), self.mean.get()
        yield timestamp, ctx.get_current_key(), self.value.value(), self.lasting.value(), seen
        self.list.clear()


class Numbered(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        return value, self.count.value()


class Elements(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        fired = context.global_state().get_state(ValueStateDescriptor("fired", Types.INT()))
        fired.update((fired.value() or 0) + 1)
        yield key, str(context.window()), list(elements), fired.value()


class Sides(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
        self.counts.put("left", (self.counts.get("left") or 0) + 1)
        ctx.timer_service().register_event_time_timer(10_000)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
        self.counts.put("right", (self.counts.get("right") or 0) + 1)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), sorted(self.counts.items())


class Counts(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.INT()))

    def flat_map1(self, value: Any) -> Iterator[Any]:
        self.left.update((self.left.value() or 0) + 1)
        yield "left", value[0], self.left.value()

    def flat_map2(self, value: Any) -> Iterator[Any]:
        yield "right", value


class Ruled(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.sum.update((self.sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(10_000)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), self.sum.value(), sorted(ctx.get_broadcast_state(RULES).items())


def stamped(env: StreamExecutionEnvironment, data: list[Any] = DATA) -> ds.DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(9)).with_timestamp_assigner(Stamp())
    # Beside the source: several assigners would take its elements in turn, and the order of a key would be nobody's.
    return env.from_collection(data, PAIR).assign_timestamps_and_watermarks(strategy).set_parallelism(1)


def keyed(env: StreamExecutionEnvironment, data: list[Any] = DATA) -> KeyedStream:
    return stamped(env, data).key_by(lambda value: value[0], Types.STRING())


def processed(env: StreamExecutionEnvironment) -> ds.DataStream:
    main = keyed(env).process(Everything())
    return main.union(main.get_side_output(ODD))


def folded(env: StreamExecutionEnvironment) -> ds.DataStream:
    stream = keyed(env)
    return stream.reduce(lambda one, two: (one[0], one[1] + two[1])).union(stream.max_by(1)).union(stream.sum(1))


def windowed(env: StreamExecutionEnvironment) -> ds.DataStream:
    stream = keyed(env)
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(40))
    late = OutputTag("late")
    listed = stream.window(tumbling).allowed_lateness(5).side_output_late_data(late).process(Elements())
    return listed.union(
        listed.get_side_output(late),
        stream.window(SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20))).aggregate(
            Total(), Elements()
        ),
        stream.window(EventTimeSessionWindows.with_gap(Time.milliseconds(25))).reduce(max, Elements()),
        stream.window(tumbling).trigger(PurgingTrigger.of(CountTrigger.of(2))).process(Elements()),
        stamped(env).window_all(tumbling).aggregate(Total()),
    )


def counted(env: StreamExecutionEnvironment) -> ds.DataStream:
    stream = keyed(env)
    return (
        stream.count_window(3)
        .process(Elements())
        .union(stream.count_window(4, 2).aggregate(Total()), stream.map(Numbered()))
    )


def connected(env: StreamExecutionEnvironment) -> ds.DataStream:
    left, right = keyed(env), keyed(env, DATA[::2])
    control = stamped(env, DATA[:20]).broadcast(RULES)
    return (
        left.connect(right)
        .process(Sides())
        .union(left.connect(right).flat_map(Counts()), left.connect(control).process(Ruled()))
    )


PROGRAMS: dict[str, Callable[[StreamExecutionEnvironment], ds.DataStream]] = {
    "state and timers": processed,
    "reductions": folded,
    "windows": windowed,
    "count windows and keyed maps": counted,
    "connected and broadcast": connected,
}


class Received:
    """The receiver behind a collect sink."""

    def __init__(self) -> None:
        self.values: list[str] = []

    def accept(self, batch: ChangelogBatch) -> None:
        self.values += map(repr, batch.columns[0].values)

    def finish(self) -> None:
        pass


def build(program: Callable[[StreamExecutionEnvironment], ds.DataStream], parallelism: int, into: Received) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.configuration.set("flowsql.source.batch-rows", "16")
    program(env)._sink("collect", operators.collect_sink(into), parallelism=1)
    graph = env.job_graph()
    return dataclasses.replace(graph, vertices=tuple(map(by_record, graph.vertices)))


def by_record(vertex: Any) -> Any:
    nodes = tuple(
        dataclasses.replace(node, spec=dataclasses.replace(node.spec, interval_ms=5, tick=WatermarkTick.RECORD))
        if isinstance(node.spec, AssignTimestampsSpec)
        else node
        for node in vertex.operators
    )
    return dataclasses.replace(vertex, operators=nodes)


def sources(graph: JobGraph) -> list[str]:
    return [node.uid for vertex in graph.vertices for node in vertex.operators if node.name == "Collection Source"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_cut_and_goes_on_elsewhere_gives_the_same(name: str, each_backend: str) -> None:
    program = PROGRAMS[name]
    whole = Received()
    LocalCluster().run(build(program, 1, whole))
    wanted = sorted(whole.values)
    assert len(wanted) > 20
    positions = itertools.cycle((7, 45, 80))
    pairs = list(itertools.product((1, 2, 3), repeat=2))
    for before, behind in pairs[1::3] if each_backend == "rocksdb" else pairs:
        received, position = Received(), next(positions)
        first = build(program, before, received)
        job = LocalCluster().submit(first, cut={(uid, 0): position for uid in sources(first)})
        job.wait(60)
        told = len(received.values)
        LocalCluster().run(build(program, behind, received), restored=job.snapshot)
        assert sorted(received.values) == wanted, (before, behind, position)
        assert told < len(wanted)


class Alarm(KeyedProcessFunction):
    """Asks to be called 50 ms after each element, by the clock."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 50)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield timestamp, ctx.get_current_key(), str(ctx.time_domain())


@pytest.mark.parametrize(("before", "behind"), list(itertools.product((1, 2, 3), repeat=2)))
def test_timers_of_the_clock_go_on_behind_the_cut(before: int, behind: int) -> None:
    """All keys came before the cut; their timers are due when the job goes on."""

    def program(env: StreamExecutionEnvironment) -> ds.DataStream:
        return keyed(env).process(Alarm())

    clock, received = ManualClock(100), Received()
    first = build(program, before, received)
    job = LocalCluster(clock).submit(first, cut={(uid, 0): 40 for uid in sources(first)})
    job.wait(60)
    assert received.values == []
    clock.advance(100)
    LocalCluster(clock).run(build(program, behind, received), restored=job.snapshot)
    keys = sorted({key for key, _ in DATA[:40]})
    assert sorted(received.values) == [repr((150, key, "TimeDomain.PROCESSING_TIME")) for key in keys]
