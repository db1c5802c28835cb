"""State with a time to live: what functions see of it, and that what expired goes though nobody touches it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.graph.stream_specs import KeyedCall, KeyedFunctionSpec
from flowsql_core.stream import state as st
from flowsql_core.stream.functions import AggregateFunction, KeyedProcessFunction, RuntimeContext
from flowsql_core.stream.time import Duration, Time
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.testing.harness import OperatorHarness

from ...cold_state import COLD
from .streams import objects, operator, values_of

PROCESS = KeyedFunctionSpec("f", KeyedCall.PROCESS)
Build = Callable[[st.StateTtlConfig.Builder], st.StateTtlConfig.Builder]


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> float:
        return float(accumulator[0] / accumulator[1])

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


@pytest.mark.parametrize(("on_read", "second", "third"), [(False, 1, None), (True, 1, 1)])
def test_state_expires_by_the_clock(on_read: bool, second: int | None, third: int | None) -> None:
    class Remember(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            update = st.StateTtlConfig.UpdateType.OnReadAndWrite if on_read else None
            builder = st.StateTtlConfig.new_builder(Time.seconds(1))
            descriptor = st.ValueStateDescriptor("value")
            descriptor.enable_time_to_live((builder.set_update_type(update) if update else builder).build())
            self.state = runtime_context.get_state(descriptor)

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield self.state.value()
            if value is not None:
                self.state.update(value)

    harness = operator(PROCESS, f=Remember())
    harness.batch(objects([1], ["a"]))
    harness.advance(999)
    harness.batch(objects([None], ["a"]))
    harness.advance(2)
    moved = harness.restored(2)
    moved.batch(objects([None], ["a"]))
    assert values_of(moved.batches) == [None, second, third]


def test_elements_of_lists_and_maps_expire_one_by_one() -> None:
    class Remember(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            ttl = st.StateTtlConfig.new_builder(Time.milliseconds(10)).build()
            lists, maps = st.ListStateDescriptor("list"), st.MapStateDescriptor("map")
            total = st.ReducingStateDescriptor("total", lambda a, b: a + b)
            mean = st.AggregatingStateDescriptor("mean", Mean())
            for descriptor in (lists, maps, total, mean):
                descriptor.enable_time_to_live(ttl)
            self.list = runtime_context.get_list_state(lists)
            self.map = runtime_context.get_map_state(maps)
            self.total = runtime_context.get_reducing_state(total)
            self.mean = runtime_context.get_aggregating_state(mean)

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            self.list.add(value)
            self.map.put(value, -value)
            yield list(self.list.get()), sorted(self.map.items()), 1 in self.map, self.total.get(), self.mean.get()
            self.total.add(value)
            self.mean.add(value)

    harness = operator(PROCESS, f=Remember())
    for value, step in ((1, 6), (2, 6), (3, 20), (4, 0)):
        harness.batch(objects([value], ["a"]))
        harness.advance(step)
    assert values_of(harness.batches) == [
        ([1], [(1, -1)], True, None, None),
        ([1, 2], [(1, -1), (2, -2)], True, 1, 1.0),
        ([2, 3], [(2, -2), (3, -3)], False, 3, 1.5),
        ([4], [(4, -4)], False, None, None),
    ]


# -- what nobody touches


class Remember(KeyedProcessFunction):
    """One state of three kinds, each for 10 ms; None touches nothing, a word asks for what is there."""

    def __init__(self, build: Build = lambda builder: builder) -> None:
        self.ttl = build(st.StateTtlConfig.new_builder(Time.milliseconds(10))).build()

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptors: Any = [st.ValueStateDescriptor("v"), st.ListStateDescriptor("l"), st.MapStateDescriptor("m")]
        for descriptor in descriptors:
            descriptor.enable_time_to_live(self.ttl)
        self.value = runtime_context.get_state(descriptors[0])
        self.list = runtime_context.get_list_state(descriptors[1])
        self.map = runtime_context.get_map_state(descriptors[2])

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        if value == "ask":
            yield self.value.value(), list(self.list.get()), sorted(self.map.items())
        elif value is not None:
            self.value.update(value)
            self.list.add(value)
            self.map.put(value, value)


def held(harness: OperatorHarness[Any]) -> int:
    """Objects that the state of a harness holds, in memory and in RocksDB, expired ones too."""
    found = 0
    for one in harness.operators:
        stores = [store for store, _ in one.ctx.state._stores.values() if hasattr(store, "entries")]
        found += sum(len(list(store.entries.items())) for store in stores)
    return found


def in_rocksdb(harness: OperatorHarness[Any]) -> int:
    """Entries of the database of a harness: objects, and the moments when they expire."""
    backend = harness.operators[0].ctx.state
    assert isinstance(backend, RocksDBBackend)
    return sum(len(keys) for keys, _ in backend.database.scan(b"", b"\xff" * 8, 1000))


def cold(function: Any, **options: str) -> OperatorHarness[Any]:
    """A harness whose state is in RocksDB between two batches; options without their prefix."""
    given = {f"state.backend.rocksdb.compaction.filter.{key}": value for key, value in options.items()}
    return OperatorHarness(PROCESS, keys=((1,),), resources={"f": function}, parameters=COLD | given)


def test_expired_state_of_keys_that_never_come_again_is_removed() -> None:
    harness = operator(PROCESS, f=Remember())
    harness.batch(objects(range(100), range(100)))
    assert held(harness) == 300
    harness.advance(11)
    harness.batch(objects([0] * 100, ["a"] * 100))
    assert held(harness) == 3


@pytest.mark.parametrize(
    ("build", "left"),
    [
        # One key in each state is written to, and "a" is looked at.
        (lambda builder: builder.cleanup_incrementally(7, False), 3 * (101 - 7)),
        # A record without an access counts, too: 4 of them behind the access.
        (lambda builder: builder.cleanup_incrementally(7, True), 3 * (101 - 5 * 7)),
        (lambda builder: builder.disable_cleanup_in_background(), 3 * 101),
        (lambda builder: builder.disable_cleanup_in_background().cleanup_incrementally(1, False), 3 * 100),
        (lambda builder: builder.cleanup_in_rocksdb_compact_filter(1), 3 * (101 - 5)),
    ],
)
def test_strategies_say_how_many_keys_are_looked_at(build: Build, left: int) -> None:
    harness = operator(PROCESS, f=Remember(build))
    harness.batch(objects(range(100), range(100)))
    harness.advance(11)
    harness.batch(objects([1, None, None, None], ["a"] * 4))
    assert held(harness) == left


def test_rounds_over_the_state_begin_when_something_can_have_expired() -> None:
    """Keys expire one by one, in the order in which they were written to: each goes, though nobody touches it."""
    harness = operator(PROCESS, f=Remember())
    for number in range(30):
        harness.batch(objects([number] * 3, [number] * 3))
        harness.advance(1)
    for _ in range(20):
        harness.batch(objects([1] * 3, ["a"] * 3))
        harness.advance(1)
    assert held(harness) == 3


def test_a_clock_that_is_set_back_does_not_end_the_sweep() -> None:
    harness = operator(PROCESS, f=Remember())
    harness.advance(1_000_000)
    harness.batch(objects([1] * 3, ["a"] * 3))
    harness.advance(-1_000_000)
    harness.batch(objects(range(30), range(30)))
    harness.advance(11)
    harness.batch(objects([0] * 30, ["b"] * 30))
    assert held(harness) == 3 + 3  # "a" was touched far ahead


def test_a_cleanup_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="Number of incrementally cleaned up state entries should be positive"):
        st.StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(0, True)


def test_strategies_are_those_that_were_asked_for() -> None:
    kinds = st.StateTtlConfig.CleanupStrategies

    def built(build: Build = lambda builder: builder) -> st.StateTtlConfig.CleanupStrategies:
        return build(st.StateTtlConfig.new_builder(Time.seconds(1))).build().get_cleanup_strategies()

    default = built()
    assert default.is_cleanup_in_background()
    assert not default.in_full_snapshot()
    in_memory, on_disk = (
        default.get_incremental_cleanup_strategy(),
        default.get_rocksdb_compact_filter_cleanup_strategy(),
    )
    assert isinstance(in_memory, kinds.IncrementalCleanupStrategy)
    assert (in_memory.get_cleanup_size(), in_memory.run_cleanup_for_every_record()) == (5, False)
    assert isinstance(on_disk, kinds.RocksdbCompactFilterCleanupStrategy)
    assert on_disk.get_query_time_after_num_entries() == 1000
    assert on_disk.get_periodic_compaction_time() == Duration.of_days(30)
    none = built(lambda builder: builder.disable_cleanup_in_background().cleanup_full_snapshot())
    assert none.in_full_snapshot()
    assert none.get_incremental_cleanup_strategy() is none.get_rocksdb_compact_filter_cleanup_strategy() is None


# -- outside memory


def test_expired_state_leaves_rocksdb_though_its_keys_never_come_again() -> None:
    harness = cold(Remember())
    harness.batch(objects(range(100), range(100)))
    assert held(harness) == 300
    # Each stands there by its key and by the moment when it expires.
    assert in_rocksdb(harness) == 600
    harness.advance(9)
    harness.batch(objects([None], ["a"]))
    assert in_rocksdb(harness) == 600
    harness.advance(1)
    harness.batch(objects([None], ["a"]))
    assert in_rocksdb(harness) == 0
    harness.close()


@pytest.mark.parametrize("by_option", [False, True])
def test_so_many_are_removed_at_a_time(by_option: bool) -> None:
    if by_option:
        harness = cold(Remember(), **{"query-time-after-num-entries": "7"})
    else:
        asked = Remember(lambda builder: builder.cleanup_in_rocksdb_compact_filter(7))
        harness = cold(asked, **{"query-time-after-num-entries": "11"})
    harness.batch(objects(range(100), range(100)))
    harness.advance(11)
    for left in (93, 86, 79):
        assert in_rocksdb(harness) == 6 * left
        harness.watermark(1)
    harness.close()


def test_without_cleanup_they_stay_until_they_are_touched() -> None:
    function = Remember(lambda builder: builder.disable_cleanup_in_background().return_expired_if_not_cleaned_up())
    harness = cold(function)
    harness.batch(objects([5, 6], ["a", "b"]))
    harness.advance(1_000)
    harness.watermark(1)
    assert in_rocksdb(harness) == 6
    harness.batch(objects(["ask", "ask"], ["a", "a"]))
    assert values_of(harness.batches) == [(5, [5], [(5, 5)]), (None, [], [])]
    assert in_rocksdb(harness) == 3
    harness.close()


@pytest.mark.parametrize(
    ("strategy", "options", "seconds"),
    [
        (Duration.of_seconds(77), {}, 77),
        (Duration.of_seconds(77), {"periodic-compaction-time": "50 s"}, 50),
        (Duration.of_seconds(77), {"periodic-compaction-time": "90 s"}, 77),
        (Duration.of_seconds(0), {}, 0),
        (None, {"periodic-compaction-time": "90 s"}, 90),
        (None, {}, 30 * 86_400),
    ],
)
def test_files_are_rewritten_as_often_as_strategy_and_options_say(
    strategy: Duration | None, options: dict[str, str], seconds: int
) -> None:
    def build(builder: st.StateTtlConfig.Builder) -> st.StateTtlConfig.Builder:
        return builder if strategy is None else builder.cleanup_in_rocksdb_compact_filter(1, strategy)

    harness = cold(Remember(build), **options)
    harness.batch(objects([1], ["a"]))
    path = harness.operators[0].ctx.state.database.path
    assert f"periodic_compaction_seconds={seconds}\n" in max(Path(path).glob("OPTIONS-*")).read_text()
    harness.close()


@pytest.mark.parametrize("seed", range(4))
def test_state_in_rocksdb_expires_as_that_in_memory(seed: int) -> None:
    """Random writes, questions and times; some batches long enough for what is in memory to expire there."""
    draw = random.Random(seed)
    build: Build = lambda builder: builder.update_ttl_on_read_and_write() if seed % 2 else builder  # noqa: E731
    both = [operator(PROCESS, f=Remember(build)), cold(Remember(build))]
    for _ in range(80):
        count = draw.randrange(1, 6)
        values = [draw.choice(["ask", "ask", None, draw.randrange(4)]) for _ in range(count)]
        keys = [draw.randrange(12) for _ in range(count)]
        step = draw.choice([0, 1, 3, 8])
        for harness in both:
            harness.batch(objects(values, keys))
            harness.advance(step)
        if draw.random() < 0.05:
            parallelism = draw.choice([1, 2, 3])
            both = [harness.restored(parallelism) for harness in both]
    assert values_of(both[0].batches) == values_of(both[1].batches)
    assert any(value[0] is not None for value in values_of(both[0].batches))
    both[1].advance(11)
    both[1].watermark(1)
    assert held(both[1]) == 0
    both[1].close()
