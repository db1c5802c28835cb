"""Asynchronous functions: several calls at once, results in the order of the rows, retries, timeouts, failures."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table import TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import AsyncScalarFunction, udf
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.expr import InputRef
from flowsql_core.graph.python_specs import PythonCalcSpec
from flowsql_core.python_call import PythonFunction, python_call
from flowsql_core.types.logical import BIGINT, Column
from flowsql_core.udf import FunctionKind
from flowsql_runtime.testing.harness import OperatorHarness

MODES = pytest.mark.parametrize("mode", ["thread", "process"])


def environment(mode: str = "thread", **options: str) -> TableEnvironment:
    """``v``: a column of 1 to 5."""
    made = TableEnvironment.create()
    made.get_config().set("python.execution-mode", mode)
    for key, value in options.items():
        made.get_config().set("table.exec.async-scalar." + key.replace("_", "-"), value)
    made.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (1), (2), (3), (4), (5)) AS t(a)")
    return made


def answers(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with made.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


def failure(made: TableEnvironment, query: str) -> FlowSqlError:
    with pytest.raises(ExecutionError) as caught:
        answers(made, query)
    return caught.value


@pytest.fixture(autouse=True)
def _no_loop_is_left_behind() -> Any:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "flowsql-async-calls"]


class Meeting(AsyncScalarFunction):
    """Lets nobody go before ``guests`` calls go on at once; the last to come leaves first."""

    def __init__(self, guests: int) -> None:
        self.guests = guests

    def open(self, function_context: Any) -> None:
        self.here: list[asyncio.Event] = []

    async def eval(self, x: int) -> int:
        mine = asyncio.Event()
        self.here.append(mine)
        if len(self.here) == self.guests:
            self.here.pop().set()
        await mine.wait()
        if self.here:
            self.here.pop().set()
        return x * 10


@MODES
def test_calls_go_on_side_by_side_and_rows_keep_their_order(mode: str) -> None:
    made = environment(mode)
    made.create_temporary_function("meet", udf(Meeting(5)))
    assert answers(made, "SELECT a, meet(a) FROM v") == [(a, a * 10) for a in range(1, 6)]


class Crowd(AsyncScalarFunction):
    """How many calls there were at once when this one ended, this one and those before."""

    def open(self, function_context: Any) -> None:
        self.now = self.most = 0

    async def eval(self, x: int) -> int:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return self.most


@pytest.mark.parametrize("key", ["max_concurrent_operations", "buffer_capacity"])
def test_no_more_calls_at_once_than_the_option_says(key: str) -> None:
    made = environment(**{key: "2"})
    made.create_temporary_function("crowd", udf(Crowd()))
    assert max(answers(made, "SELECT crowd(a) FROM v")) == (2,)


async def shown(x: int | None) -> str | None:
    await asyncio.sleep(0)
    return None if x is None else f"<{x}>"


def test_expressions_conditions_nesting_and_the_table_api() -> None:
    made = environment()
    made.create_temporary_function("shown", udf(shown))
    made.create_temporary_function("long", udf(lambda s: len(s), result_type="INT"))
    assert answers(made, "SELECT UPPER(shown(a + 1)), long(shown(a)), shown(CAST(NULL AS INT)) FROM v WHERE a < 3") == [
        ("<2>", 3, None),
        ("<3>", 3, None),
    ]
    assert answers(made, "SELECT a FROM v WHERE shown(a) <> '<3>' AND shown(long(shown(a))) = '<3>' AND a > 1") == [
        (2,),
        (4,),
        (5,),
    ]
    # What is no coroutine counts as it is, as in PyFlink.
    made.create_temporary_function("plain", udf(Plain()))
    query = made.from_path("v").select(udf(shown)(col("a")), col("a")).limit(1)
    with query.execute().collect() as rows:
        assert [tuple(row) for row in rows] == [("<1>", 1)]
    assert answers(made, "SELECT plain(a) FROM v") == [(a,) for a in range(1, 6)]


class Plain(AsyncScalarFunction):
    """No coroutine."""

    def eval(self, x: int) -> int:  # type: ignore[override]
        return x


class Stubborn(AsyncScalarFunction):
    """Fails so many times for each row."""

    def __init__(self, times: int) -> None:
        self.times = times

    def open(self, function_context: Any) -> None:
        self.called: Counter[int] = Counter()

    async def eval(self, x: int) -> int:
        self.called[x] += 1
        if self.called[x] <= self.times:
            raise OSError(f"no {x}")
        return self.called[x]


@MODES
def test_a_call_that_fails_is_made_again(mode: str) -> None:
    made = environment(mode, retry_delay="1 ms")
    made.create_temporary_function("stubborn", udf(Stubborn(3)))
    assert answers(made, "SELECT a, stubborn(a) FROM v") == [(a, 4) for a in range(1, 6)]
    for key, value in (("max-attempts", "2"), ("retry-strategy", "NO_RETRY")):
        made = environment(mode, retry_delay="1 ms")
        made.create_temporary_function("stubborn", udf(Stubborn(3)))
        made.get_config().set(f"table.exec.async-scalar.{key}", value)
        error = failure(made, "SELECT a, stubborn(a) FROM v WHERE a = 4")
        assert error.message.startswith("OSError: no 4\nin the Python function 'stubborn', called with x = 4\n")
        assert "test_async.py:" in error.message
        assert error.code == "python-function-failed"
        assert error.at is not None
        if mode == "thread":
            assert isinstance(error.__cause__, OSError)


@MODES
def test_a_call_that_takes_too_long(mode: str) -> None:
    async def slow(x: int) -> int:
        if x == 3:
            await asyncio.Event().wait()
        return x

    made = environment(mode, timeout="60 ms")
    made.create_temporary_function("slow", udf(slow))
    assert failure(made, "SELECT a, slow(a) FROM v").message == (
        "Async function call has timed out: no answer within 60 ms (table.exec.async-scalar.timeout)\n"
        "in the Python function 'slow', called with x = 3"
    )
    # Retries and the pauses between them count, too.
    made = environment(mode, timeout="60 ms", retry_delay="1 h")
    made.create_temporary_function("stubborn", udf(Stubborn(1)))
    assert "has timed out: no answer within 60 ms" in failure(made, "SELECT stubborn(a) FROM v").message


@pytest.mark.parametrize("error", [TimeoutError("mine"), asyncio.CancelledError("mine"), SystemExit("mine")])
def test_whatever_a_function_raises_fails_the_job(error: BaseException) -> None:
    async def fail(x: int) -> int:
        raise error

    made = environment(retry_delay="1 ms")
    made.create_temporary_function("f", udf(fail))
    message = failure(made, "SELECT f(a) FROM v").message
    assert type(error).__name__ in message.splitlines()[0]
    assert "mine" in message.splitlines()[0]


@MODES
def test_wrong_results(mode: str) -> None:
    async def half(x: int) -> Any:
        return x if x < 3 else 1.5

    made = environment(mode)
    made.create_temporary_function("half", udf(half, result_type="INT"))
    error = failure(made, "SELECT a, half(a) FROM v")
    assert error.message == (
        "The Python function returned 1.5 (float), which is no INT\nin the Python function 'half', called with x = 3"
    )
    assert error.row is not None
    assert error.row.row == 2


@pytest.mark.parametrize("where", ["open", "close"])
def test_failures_of_open_and_close(where: str) -> None:
    class Fails(AsyncScalarFunction):
        def open(self, function_context: Any) -> None:
            if where == "open":
                raise OSError("no way")

        async def eval(self, x: int) -> int:
            return x

        def close(self) -> None:
            if where == "close":
                raise OSError("no way")

    made = environment()
    made.create_temporary_function("f", udf(Fails()))
    message = failure(made, "SELECT f(a) FROM v").message
    assert message.startswith(f"OSError: no way\nin {where}() of the Python function 'f'\n")


@pytest.mark.parametrize("option", ["max_concurrent_operations", "timeout", "max_attempts", "retry_delay"])
def test_options_that_make_no_sense(option: str) -> None:
    with pytest.raises(FlowSqlError, match="Could not parse value '0'"):
        environment(**{option: "0"})


class Gate(AsyncScalarFunction):
    """Waits until the test makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    async def eval(self, x: int) -> int:
        while not self.file.exists():
            await asyncio.sleep(0.001)
        return -x


def test_what_comes_behind_rows_waits_and_a_barrier_drains_them(tmp_path: Path) -> None:
    declared = udf(Gate(tmp_path / "open"))
    function = PythonFunction("gate", declared.key, FunctionKind.ASYNC.value)
    call = python_call(function, (InputRef(0, BIGINT),), BIGINT, None)
    spec = PythonCalcSpec((InputRef(0, BIGINT), call), (Column("a", BIGINT),))
    harness = OperatorHarness(spec, resources={declared.key: declared})
    # Mails run in the task's thread only.
    mails: deque[Any] = deque()
    harness.operators[0].ctx.submit = mails.append
    try:
        track = WatermarkTrack(np.array([1]), np.array([5]))
        harness.batch(ChangelogBatch.of([pa.array([1, 2])], track=track))
        harness.watermark(10)
        harness.batch(ChangelogBatch.of([pa.array([3])]))
        harness.watermark(20)
        assert (harness.rows, harness.watermarks) == ([], [])
        (tmp_path / "open").touch()
        (snapshot,) = harness.snapshot()
        assert not snapshot.lists
        assert [row[1:] for row in harness.rows] == [(1, -1), (2, -2), (3, -3)]
        assert harness.watermarks == [5, 10, 20]
        harness.end()
    finally:
        harness.close()
