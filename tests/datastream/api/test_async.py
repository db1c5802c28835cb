"""Asynchronous I/O: order, timeouts, retries, capacity, failures, and what was in flight at a cut."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Configuration, Time, Types, WatermarkStrategy
from flowsql.common.watermark_strategy import TimestampAssigner
from flowsql.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, StreamExecutionEnvironment
from flowsql.datastream import async_retry_predicates as predicates
from flowsql.datastream.async_retry_strategies import ExponentialBackoffDelayRetryStrategy, FixedDelayRetryStrategy
from flowsql.datastream.connectors.file_system import FileSource, StreamFormat
from flowsql.datastream.functions import ProcessFunction, RuntimeContext
from flowsql_core.clock import ManualClock
from flowsql_core.element import MAX_WATERMARK, WatermarkStatus
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.stream_specs import AsyncFunctionSpec
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.testing.harness import OperatorHarness

from ..runtime.streams import in_order, objects, values_of

SOON = Time.seconds(60)


class World:
    """What functions and test share; functions are copied, the world is not."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.waiting: dict[Any, asyncio.Future[Any]] = {}
        self.changed = threading.Condition()

    def __deepcopy__(self, memo: object) -> World:
        return self

    def answer(self, value: Any, results: Any) -> None:
        """End the call for a value, which may still have to begin."""
        with self.changed:
            assert self.changed.wait_for(lambda: value in self.waiting, 20)
            future = self.waiting.pop(value)

        def end() -> None:
            if isinstance(results, Exception):
                future.set_exception(results)
            else:
                future.set_result(results)

        future.get_loop().call_soon_threadsafe(end)


class Asks(AsyncFunction[Any, Any]):
    """Each call ends when the test says so."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def async_invoke(self, value: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self.world.changed:
            self.world.calls.append(value)
            self.world.waiting[value] = future
            self.world.changed.notify_all()
        return await future

    def timeout(self, value: Any) -> Any:
        return [f"{value} took too long"]


class Driven:
    """An operator in the test's thread; mails run when the test says so."""

    def __init__(
        self, world: World, spec: AsyncFunctionSpec, retry: Any = None, clock: ManualClock | None = None
    ) -> None:
        self.world = world
        self.mails: list[Callable[[], None]] = []
        self.told = threading.Semaphore(0)
        resources = {"f": Asks(world), "retry": retry}
        self.harness = OperatorHarness(spec, clock=clock, resources=resources)
        self.adopt()

    def adopt(self) -> None:
        (operator,) = self.harness.operators
        operator.ctx.submit = self.post

    def post(self, mail: Callable[[], None]) -> None:
        self.mails.append(mail)
        self.told.release()

    def answer(self, value: Any, results: Any) -> None:
        """End a call and take note of it."""
        self.world.answer(value, results)
        assert self.told.acquire(timeout=20)
        while self.mails:
            self.mails.pop(0)()

    @property
    def seen(self) -> list[Any]:
        return in_order(self.harness.output.elements)


def spec(ordered: bool, timeout_ms: int = 0, capacity: int = 10, retry: bool = False) -> AsyncFunctionSpec:
    return AsyncFunctionSpec("f", ordered, timeout_ms, capacity, "retry" if retry else None)


@pytest.fixture
def world() -> World:
    return World()


def test_ordered_results_wait_for_those_before_them(world: World) -> None:
    driven = Driven(world, spec(ordered=True))
    driven.harness.batch(objects([1, 2, 3], times=[10, 20, 30], track=[(2, 15)]))
    driven.answer(2, ["b"])
    driven.answer(3, [])
    assert driven.seen == []
    driven.answer(1, ["a1", "a2"])
    assert driven.seen == ["a1", "a2", "b", "wm 15"]
    driven.harness.close()


def test_unordered_results_leave_as_they_come_between_watermarks(world: World) -> None:
    driven = Driven(world, spec(ordered=False))
    driven.harness.batch(objects([1, 2, 3, 4], times=[10, 20, 30, 40], track=[(2, 15), (4, 35)]))
    driven.harness.idle()
    driven.answer(4, ["d"])
    driven.answer(2, ["b"])
    assert driven.seen == ["b"]
    driven.answer(1, ["a"])
    assert driven.seen == ["b", "a", "wm 15", "d"]
    assert not [item for item in driven.harness.output.elements if isinstance(item, WatermarkStatus)]
    driven.answer(3, ["c"])
    driven.harness.end()
    assert driven.seen == ["b", "a", "wm 15", "d", "c", "wm 35", f"wm {MAX_WATERMARK}"]
    assert [item.active for item in driven.harness.output.elements if isinstance(item, WatermarkStatus)] == [False]
    driven.harness.close()


@pytest.mark.parametrize("ordered", [True, False])
def test_no_more_than_the_capacity_is_in_flight(env: StreamExecutionEnvironment, ordered: bool) -> None:
    running, most = 0, 0

    class Counts(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            await asyncio.sleep(0.001 * (value % 3))
            running -= 1
            return [value, -value]

    wait = AsyncDataStream.ordered_wait if ordered else AsyncDataStream.unordered_wait
    stream = wait(env.from_collection(list(range(60))), Counts(), SOON, 5, Types.INT())
    with stream.execute_and_collect() as found:
        values = list(found)
    expected = [result for value in range(60) for result in (value, -value)]
    assert values == expected if ordered else sorted(values) == sorted(expected)
    assert 1 < most <= 5


def test_elements_that_take_too_long(world: World) -> None:
    clock = ManualClock(1_000)
    driven = Driven(world, spec(ordered=True, timeout_ms=100), clock=clock)
    driven.harness.batch(objects([1, 2]))
    driven.harness.advance(60)
    driven.harness.batch(objects([3]))
    driven.answer(2, ["b"])
    driven.harness.advance(39)
    assert driven.seen == []
    driven.harness.advance(1)
    assert driven.seen == ["1 took too long", "b"]
    driven.answer(1, ["too late"])
    driven.answer(3, ["c"])
    driven.harness.advance(1_000)
    assert driven.seen == ["1 took too long", "b", "c"]
    driven.harness.close()


def test_a_timeout_that_nobody_handles_fails_the_job(env: StreamExecutionEnvironment) -> None:
    class Never(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            await asyncio.Event().wait()
            return []

    AsyncDataStream.unordered_wait(env.from_collection([7]), Never(), Time.milliseconds(5)).print()
    with pytest.raises(ExecutionError, match="TimeoutError: Async function call has timed out for input: 7"):
        env.execute()


def test_calls_are_tried_again_after_errors_and_empty_results(world: World) -> None:
    clock = ManualClock(0)
    strategy = FixedDelayRetryStrategy(2, 50, predicates.empty_result_predicate, predicates.has_exception_predicate)
    driven = Driven(world, spec(ordered=True, timeout_ms=10_000, retry=True), strategy, clock)
    driven.harness.batch(objects(["x"]))
    driven.answer("x", [])
    driven.harness.advance(49)
    assert world.calls == ["x"]
    driven.harness.advance(1)
    driven.answer("x", ValueError("try again"))
    driven.harness.advance(50)
    driven.answer("x", [])
    assert driven.harness.operators[0].ctx.timers.next_processing_ms is not None  # of the timeout, no further call
    assert (world.calls, values_of(driven.harness.batches)) == (["x"] * 3, [])
    driven.harness.end()
    driven.harness.close()


def test_an_error_after_the_last_attempt_fails_the_job(world: World) -> None:
    clock = ManualClock(0)
    driven = Driven(world, spec(ordered=True, timeout_ms=10_000, retry=True), _tries_once(), clock)
    driven.harness.batch(objects(["x"]))
    driven.answer("x", KeyError("first"))
    driven.harness.advance(50)
    with pytest.raises(ExecutionError, match="KeyError: 'second'"):
        driven.answer("x", KeyError("second"))
    driven.harness.close()


def _tries_once() -> AsyncRetryStrategy[Any]:
    return AsyncRetryStrategy.fixed_delay(1, 50, None, predicates.has_exception_predicate)


def test_the_timeout_is_that_of_all_attempts_together(world: World) -> None:
    clock = ManualClock(0)
    driven = Driven(world, spec(ordered=True, timeout_ms=70, retry=True), _tries_once(), clock)
    driven.harness.batch(objects(["x", "y"]))
    driven.answer("x", ValueError("try again"))
    driven.harness.advance(50)
    driven.harness.advance(20)
    assert driven.seen == ["x took too long", "y took too long"]
    driven.harness.close()


def test_delays_that_grow() -> None:
    strategy = ExponentialBackoffDelayRetryStrategy(5, 100, 1_000, 2.5, None, None)
    assert [strategy.get_backoff_time_millis(attempt) for attempt in range(1, 6)] == [100, 250, 625, 1_000, 1_000]
    assert [strategy.can_retry(attempt) for attempt in (1, 5, 6)] == [True, True, False]
    assert not AsyncRetryStrategy.no_restart().can_retry(1)
    with pytest.raises(ValueError, match="max_attempts should be greater than zero"):
        AsyncRetryStrategy.exponential_backoff(0, 1, 1, 1.0, None, None)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (None, "RuntimeError: The result of AsyncFunction cannot be none, please check the methods"),
        (5, "RuntimeError: The result of AsyncFunction should be of list type, please check the methods"),
        (["x"], "TypeError: 'x' of type str is not a value of Integer"),
        (ValueError("no"), "ValueError: no"),
    ],
)
def test_what_goes_wrong_names_the_element(env: StreamExecutionEnvironment, results: Any, message: str) -> None:
    class Fails(AsyncFunction[int, Any]):
        async def async_invoke(self, value: int) -> Any:
            if isinstance(results, Exception):
                raise results
            return results

    AsyncDataStream.ordered_wait(env.from_collection([7]), Fails(), SOON, output_type=Types.INT()).print()
    with pytest.raises(ExecutionError) as raised:
        env.execute()
    assert raised.value.message.startswith(message)
    assert raised.value.operator == "async wait operator"
    assert "element: 7" in raised.value.details
    assert not [thread for thread in threading.enumerate() if thread.name == "flowsql-async-io"]


def test_functions_are_opened_and_closed_and_calls_are_cancelled(env: StreamExecutionEnvironment) -> None:
    told: list[Any] = []

    class Life(AsyncFunction[int, int]):
        def open(self, runtime_context: RuntimeContext) -> None:
            told.append(runtime_context.get_task_name())

        def close(self) -> None:
            told.append("close")

        async def async_invoke(self, value: int) -> list[int]:
            if value == 2:
                raise ValueError("two")
            try:
                await asyncio.Event().wait()
            finally:
                told.append("cancelled")
            return []

    AsyncDataStream.unordered_wait(env.from_collection([1, 2]), Life(), SOON).print()
    with pytest.raises(ExecutionError, match="two"):
        env.execute()
    assert told == ["Collection Source -> async wait operator -> Print to Std. Out", "cancelled", "close"]


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


def test_results_bear_the_times_of_their_elements(env: StreamExecutionEnvironment) -> None:
    class Twice(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            return [value, value]

    class Times(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value, ctx.timestamp()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    stream = env.from_collection([3, 5]).assign_timestamps_and_watermarks(strategy)
    with AsyncDataStream.ordered_wait(stream, Twice(), SOON).process(Times()).execute_and_collect() as found:
        assert list(found) == [(3, 3), (3, 3), (5, 5), (5, 5)]


@pytest.mark.parametrize("ordered", [True, False])
def test_what_is_in_flight_is_called_for_again_after_a_restore(world: World, ordered: bool) -> None:
    driven = Driven(world, spec(ordered))
    driven.harness.batch(objects([1, 2, 3], times=[10, 20, 30], track=[(1, 5), (3, 25)]))
    driven.answer(2, ["lost"])
    driven.answer(1, ["a"])
    before = ["a", "wm 5", "lost"]
    assert driven.seen == before
    driven.harness.batch(objects([4, 5], times=[40, 50]))
    driven.answer(5, ["not out yet"])
    world.waiting.clear()
    driven.harness = driven.harness.restored(1)
    driven.adopt()
    driven.harness.watermark(25)
    for value, result in ((5, "e"), (3, "c"), (4, "d")):
        driven.answer(value, [result])
    behind = driven.seen[len(before) :]
    assert (behind if ordered else [*sorted(behind[:-1]), behind[-1]]) == ["c", "d", "e", "wm 25"]
    assert world.calls[:5] == [1, 2, 3, 4, 5]
    assert sorted(world.calls[5:]) == [3, 4, 5]
    driven.harness.close()


@pytest.mark.parametrize(("before", "behind"), [(1, 1), (1, 3), (3, 2), (2, 3)])
def test_a_cut_job_loses_and_doubles_nothing(before: int, behind: int) -> None:
    """At the cut, calls hang; in the next run they end."""
    world, seen = World(), []

    class Hangs(AsyncFunction[int, int]):
        def __init__(self, hangs: bool) -> None:
            self.hangs = hangs

        async def async_invoke(self, value: int) -> list[int]:
            if self.hangs and value % 4:
                await asyncio.Event().wait()
            return [value]

        def __deepcopy__(self, memo: object) -> Hangs:
            return self

    def graph(parallelism: int, hangs: bool) -> Any:
        env = StreamExecutionEnvironment.get_execution_environment()
        source = env.from_collection(list(range(60))).uid("source").rebalance()
        calls = AsyncDataStream.unordered_wait(source, Hangs(hangs), SOON).uid("calls").set_parallelism(parallelism)
        calls.map(seen.append).set_parallelism(parallelism).print()
        return env.job_graph()

    job = LocalCluster().submit(graph(before, hangs=True), cut={("source", 0): 40})
    job.wait(60)
    assert not [value for value in seen if value % 4]
    LocalCluster().run(graph(behind, hangs=False), restored=job.snapshot)
    assert sorted(seen) == list(range(60))
    assert world.calls == []


def test_a_job_that_fails_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """Lines of packed files, several calls in flight, two failures: nothing is lost, nothing comes twice."""
    rows, calls, failures = 1_200, 0, 0
    for number in range(3):
        lines = "".join(f"{row}\n" for row in range(number * 400, number * 400 + 400))
        (tmp_path / f"{number}.gz").write_bytes(gzip.compress(lines.encode()))

    class Fails(AsyncFunction[str, int]):
        async def async_invoke(self, value: str) -> list[int]:
            nonlocal calls, failures
            calls += 1
            await asyncio.sleep(0.001)
            if failures < 2 and calls > 500 * (failures + 1):
                failures += 1
                raise ValueError("trouble")
            return [int(value)]

    configuration = Configuration()
    options = {
        "execution.checkpointing.interval": "10 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0 ms",
        "restart-strategy.fixed-delay.attempts": "2",
        "parallelism.default": "2",
    }
    for key, value in options.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "files")
    with AsyncDataStream.unordered_wait(stream, Fails(), SOON, 20).execute_and_collect() as found:
        assert sorted(found) == list(range(rows))
    assert failures == 2


def test_what_is_no_asynchronous_function_is_refused(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1])

    class Plain(AsyncFunction[int, int]):
        def async_invoke(self, value: int) -> Any:
            return [value]

    class Good(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            return [value]

    with pytest.raises(TypeError, match="should be declared as 'async def'"):
        AsyncDataStream.ordered_wait(stream, Plain(), SOON)
    with pytest.raises(TypeError, match="The input must be an AsyncFunction"):
        AsyncDataStream.ordered_wait(stream, lambda value: value, SOON)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Timeout should be configured when do async with retry"):
        AsyncDataStream.unordered_wait_with_retry(stream, Good(), Time.milliseconds(0), _tries_once())
    with pytest.raises(ValueError, match="the capacity is at least 1"):
        AsyncDataStream.unordered_wait(stream, Good(), SOON, 0)
