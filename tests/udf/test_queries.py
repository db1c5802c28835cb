"""Functions in every place of a query, row-wise, over pandas and over Arrow, in the task and in a process."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flowsql.common import Row
from flowsql.table import TableEnvironment
from flowsql.table.udf import ScalarFunction, udf
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.errors import BindError, FlowSqlError, NotSupportedYetError, PlanError
from flowsql_core.expr import InputRef
from flowsql_core.graph.python_specs import PythonCalcSpec
from flowsql_core.python_call import PythonFunction, python_call
from flowsql_core.types.logical import BIGINT, Column
from flowsql_runtime.testing.harness import OperatorHarness

MODES = ("thread", "process")


def environment(mode: str = "thread", **options: str) -> TableEnvironment:
    made = TableEnvironment.create()
    made.get_config().set("python.execution-mode", mode)
    for key, value in options.items():
        made.get_config().set(key.replace("__", "-").replace("_", "."), value)
    made.execute_sql(
        "CREATE TEMPORARY VIEW people AS SELECT * FROM (VALUES "
        "(1, 'ann', 10.50, TIMESTAMP '2024-01-01 00:00:01'), (2, 'bob', 20.25, TIMESTAMP '2024-01-01 00:00:02'), "
        "(3, CAST(NULL AS STRING), 0.00, TIMESTAMP '2024-01-01 00:00:11')) AS t(id, name, money, ts)"
    )
    return made


def answers(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with made.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


def shout(text: str | None) -> str | None:
    return None if text is None else text.upper() + "!"


def test_every_place_of_a_query() -> None:
    made = environment()
    made.create_temporary_function("shout", udf(shout))
    made.create_temporary_function("plus", udf(lambda a, b: a + b, result_type="INT"))
    query = """
        SELECT p.id, shout(p.name), CHAR_LENGTH(shout(p.name)), plus(plus(p.id, q.id), 1)
        FROM people AS p JOIN people AS q ON plus(p.id, 1) = q.id AND plus(p.id, q.id) < 4
        WHERE plus(p.id, CAST(p.money AS INT)) > 10"""
    assert answers(made, query) == [(1, "ANN!", 4, 4)]
    grouped = "SELECT plus(id, 1) AS k, COUNT(*) FROM people GROUP BY plus(id, 1) HAVING SUM(plus(id, 0)) > 1"
    assert answers(made, grouped) == [(3, 1), (4, 1)]


class Counter(ScalarFunction):
    """How often it was called; starts at what it was made with."""

    def __init__(self, start: int) -> None:
        self.calls = [start]

    def is_deterministic(self) -> bool:
        return False

    def eval(self, x: int) -> int:
        self.calls[0] += 1
        return self.calls[0]


@pytest.mark.parametrize("mode", MODES)
def test_each_call_of_a_query_has_an_object_of_its_own(mode: str) -> None:
    made = environment(mode)
    counter = Counter(100)
    made.create_temporary_function("n", udf(counter, result_type="INT"))
    query = "SELECT n(id), n(id), n(id + 1) + n(n(id)) FROM people"
    assert answers(made, query) == [(100 + k, 100 + k, 200 + 2 * k) for k in (1, 2, 3)]
    # The program's own object stays as it was, also for the next job.
    assert answers(made, query) == [(100 + k, 100 + k, 200 + 2 * k) for k in (1, 2, 3)]
    assert counter.calls == [100]


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_function_gives_its_first_result_before_its_last(mode: str, tmp_path: Path) -> None:
    """The second call ends only once the first row has arrived."""
    told = tmp_path / "told"

    def wait(x: int) -> int:
        import time

        until = time.monotonic() + 20
        while x == 2 and not told.exists():
            assert time.monotonic() < until
            time.sleep(0.001)
        return x

    made = environment(mode)
    made.create_temporary_function("wait", udf(wait, result_type="INT"))
    with made.execute_sql("SELECT wait(id) FROM people").collect() as rows:
        assert tuple(next(rows)) == (1,)
        told.touch()
        assert [tuple(row) for row in rows] == [(2,), (3,)]


def test_rows_of_a_slow_function_go_on_slice_by_slice() -> None:
    """40 ms a call: two rows fill a slice of 100 ms; quick calls take more and more rows at once."""
    clock = ManualClock()

    def slow(x: int) -> int:
        clock.advance(40 if x < 6 else 0)
        return 10 * x

    call = python_call(PythonFunction("f", "f", "general"), (InputRef(0, BIGINT),), BIGINT, None)
    spec = PythonCalcSpec((call,), (Column("a", BIGINT),))
    resources = {"f": udf(slow, result_type="BIGINT")}
    harness = OperatorHarness(spec, clock=clock, resources=resources)
    track = WatermarkTrack(np.array([3, 20], np.int32), np.array([7, 9]))
    harness.batch(ChangelogBatch.of([pa.array(range(20))], track=track))
    assert [batch.num_rows for batch in harness.batches] == [1, 1, 1, 1, 1, 1, 1, 2, 4, 7]
    assert [row[1] for row in harness.rows] == [10 * x for x in range(20)]
    assert harness.watermarks == [7, 9]


def test_windows_over_functions() -> None:
    made = environment()
    made.create_temporary_function("plus", udf(lambda a, b: a + b, result_type="INT"))
    made.execute_sql(
        "CREATE TEMPORARY TABLE t (a INT, ts TIMESTAMP(3), b AS plus(a, 100), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '1', 'fields.a.kind' = 'sequence', "
        "'fields.a.start' = '1', 'fields.a.end' = '1')"
    )
    query = (
        "SELECT SUM(plus(b, 0)), MAX(a) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) "
        "GROUP BY window_start, window_end"
    )
    assert answers(made, query) == [(101, 1)]


def test_changes_keep_their_kinds() -> None:
    made = environment()
    made.create_temporary_function("plus", udf(lambda a, b: a + b, result_type="BIGINT"))
    query = "SELECT k, plus(c, 10) FROM (SELECT MOD(id, 2) AS k, COUNT(*) AS c FROM people GROUP BY MOD(id, 2))"
    with made.execute_sql(query).collect() as rows:
        found = [(row.get_row_kind().short_string(), *row) for row in rows]
    assert found == [("+I", 1, 11), ("+I", 0, 11), ("-U", 1, 11), ("+U", 1, 12)]


def test_rows_lists_and_maps_go_in_and_out() -> None:
    made = environment()
    made.create_temporary_function(
        "pack",
        udf(lambda i, n: Row(i, {"n": n}, [i, None]), result_type="ROW<id INT, m MAP<STRING, STRING>, l ARRAY<INT>>"),
    )
    made.create_temporary_function("unpack", udf(lambda row: f"{row[0]} {row[1]} {row[2]}", result_type="STRING"))
    query = "SELECT pack(id, name).l[1], unpack(pack(id, name)), pack(id, name).m['n'] FROM people WHERE id < 3"
    assert answers(made, query) == [(1, "1 {'n': 'ann'} [1, None]", "ann"), (2, "2 {'n': 'bob'} [2, None]", "bob")]


@pytest.mark.parametrize("mode", MODES)
def test_pandas_functions(mode: str) -> None:
    made = environment(mode)
    made.create_temporary_function("sizes", udf(lambda s: s.str.len(), result_type="INT", func_type="pandas"))
    made.create_temporary_function("times", udf(lambda s, n: s * n, result_type="DECIMAL(10, 2)", func_type="pandas"))
    made.create_temporary_function(
        "later", udf(lambda t: t + pd.Timedelta(days=1), result_type="TIMESTAMP(3)", func_type="pandas")
    )
    made.create_temporary_function(
        "pair", udf(lambda i, n: pd.DataFrame({"x": i, "y": n}), result_type="ROW<i INT, n STRING>", func_type="pandas")
    )
    query = "SELECT sizes(name), times(money, 2), later(ts), pair(id, name), times(times(money, 2), 3) FROM people"
    found = answers(made, query)
    assert [row[:3] for row in found[:2]] == [
        (3, pytest.approx(21), datetime.datetime(2024, 1, 2, 0, 0, 1)),
        (3, pytest.approx(40.5), datetime.datetime(2024, 1, 2, 0, 0, 2)),
    ]
    assert [str(row[1]) for row in found] == ["21.00", "40.50", "0.00"]
    assert [tuple(row[3]) for row in found] == [(1, "ann"), (2, "bob"), (3, None)]
    assert found[2][0] is None
    assert [str(row[4]) for row in found] == ["63.00", "121.50", "0.00"]


def test_pandas_functions_get_batches_of_the_configured_size() -> None:
    sizes: list[int] = []
    made = TableEnvironment.create()
    made.get_config().set("python.fn-execution.arrow.batch.size", "30")
    made.create_temporary_function(
        "note", udf(lambda s: sizes.append(len(s)) or s, result_type="BIGINT", func_type="pandas")
    )
    made.execute_sql(
        "CREATE TEMPORARY TABLE n (a BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '100', "
        "'rows-per-second' = '1000000', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '100')"
    )
    assert sorted(answers(made, "SELECT note(a) FROM n")) == [(i,) for i in range(1, 101)]
    assert sum(sizes) == 100
    assert max(sizes) == 30


@pytest.mark.parametrize("mode", MODES)
def test_arrow_functions(mode: str) -> None:
    made = environment(mode)
    made.create_temporary_function("up", udf(pc.utf8_upper, result_type="STRING", func_type="arrow"))
    made.create_temporary_function(
        "halves", udf(lambda a, b: pc.divide(pc.cast(a, pa.float64()), b), result_type="DOUBLE", func_type="arrow")
    )
    made.create_temporary_function(
        "chunks", udf(lambda a: pa.chunked_array([a.slice(0, 1), a.slice(1)]), result_type="BIGINT", func_type="arrow")
    )
    query = "SELECT up(up(name)), halves(id, 2), chunks(id) FROM people"
    assert answers(made, query) == [("ANN", 0.5, 1), ("BOB", 1.0, 2), (None, 1.5, 3)]


def test_kinds_of_functions_feed_each_other() -> None:
    made = environment()
    made.create_temporary_function("row_wise", udf(lambda x: x + 1, result_type="BIGINT"))
    made.create_temporary_function("series", udf(lambda s: s * 2, result_type="BIGINT", func_type="pandas"))
    made.create_temporary_function("arrow", udf(lambda a: pc.negate(a), result_type="BIGINT", func_type="arrow"))
    query = "SELECT arrow(series(row_wise(id))), row_wise(arrow(id)), series(id) FROM people"
    assert answers(made, query) == [(-4, 0, 2), (-6, -1, 4), (-8, -2, 6)]


def test_a_wrong_batch_is_an_error() -> None:
    made = environment()
    for name, function, text in [
        (
            "short",
            lambda s: s.head(1),
            "The result length '1' of Pandas UDF 'short' is not equal to the input length '3'",
        ),
        ("plain", lambda s: 5, "The result type must be pandas.Series or pandas.DataFrame, got int"),
        ("texts", lambda s: s.astype(str), "returned no column of BIGINT: a result of "),
        ("halves", lambda s: s / 2, "returned no column of BIGINT: a result of float64"),
    ]:
        made.create_temporary_function(name, udf(function, result_type="BIGINT", func_type="pandas"))
        with pytest.raises(FlowSqlError) as caught:
            answers(made, f"SELECT {name}(id) FROM people")
        assert text in str(caught.value)
    made.create_temporary_function("nothing", udf(lambda a: 5, result_type="BIGINT", func_type="arrow"))
    with pytest.raises(FlowSqlError, match="Array expected, got int"):
        answers(made, "SELECT nothing(id) FROM people")


def test_a_function_that_needs_no_column() -> None:
    made = environment()
    made.create_temporary_function("five", udf(lambda: 5, result_type="INT"))
    made.create_temporary_function("echo", udf(lambda x: x, result_type="INT"))
    assert answers(made, "SELECT five(), echo(7), echo(five()) FROM people") == [(5, 7, 5)] * 3
    assert answers(made, "SELECT five() FROM people WHERE echo(1) = 2") == []


# From SQL


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "my_functions.py").write_text(
        "from flowsql.table.udf import ScalarFunction, udf\n"
        "def hinted(x: int) -> int:\n    return x + 1\n"
        "@udf(result_type='STRING')\ndef declared(x):\n    return f'<{x}>'\n"
        "class Twice(ScalarFunction):\n    def eval(self, x: int) -> int:\n        return 2 * x\n"
        "class Space:\n    inner = declared\n"
        "def untyped(x):\n    return x\n"
        "number = 5\n"
    )
    sys.path.insert(0, str(tmp_path))
    yield "my_functions"
    sys.path.remove(str(tmp_path))
    sys.modules.pop("my_functions", None)


@pytest.mark.parametrize("mode", MODES)
def test_functions_of_a_module(mode: str, module: str) -> None:
    made = environment(mode)
    for name, path in [("a", "hinted"), ("b", "declared"), ("c", "Twice"), ("d", "Space.inner")]:
        made.execute_sql(f"CREATE FUNCTION {name} AS '{module}.{path}' LANGUAGE PYTHON")
    assert answers(made, "SELECT a(id), b(id), c(id), d(name) FROM people WHERE id = 1") == [(2, "<1>", 2, "<ann>")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nowhere.f", "No module named 'nowhere'"),
        ("{module}.missing", "has no attribute 'missing'"),
        ("{module}.untyped", "result type of the Python function 'untyped' is not known"),
        ("{module}.number", "no Python function"),
    ],
)
def test_functions_that_cannot_be_loaded_say_why_at_their_call(module: str, path: str, text: str) -> None:
    made = environment()
    made.execute_sql(f"CREATE TEMPORARY SYSTEM FUNCTION f AS '{path.format(module=module)}' LANGUAGE PYTHON")
    with pytest.raises(BindError) as caught:
        answers(made, "SELECT id, f(id) FROM people")
    assert text in str(caught.value)
    assert caught.value.at is not None
    assert caught.value.at.start == 11


@pytest.mark.parametrize("mode", MODES)
def test_functions_whose_text_stands_in_sql(mode: str) -> None:
    made = environment(mode)
    made.execute_sql(
        """CREATE TEMPORARY FUNCTION initials AS $$
            import re

            PATTERN = re.compile(r'\\b\\w')

            def helper(text):
                return ''.join(PATTERN.findall(text))

            def initials(text: str) -> str:
                return None if text is None else helper(text).upper()
        $$ LANGUAGE PYTHON"""
    )
    made.execute_sql(
        """CREATE TEMPORARY FUNCTION declared AS $$
            from flowsql.table.udf import ScalarFunction, udf

            @udf(result_type='INT')
            def any_name(x):
                return x * 10
        $$ LANGUAGE PYTHON"""
    )
    assert answers(made, "SELECT initials(name || ' smith'), declared(id) FROM people WHERE id < 3") == [
        ("AS", 10),
        ("BS", 20),
    ]
    made.execute_sql("DROP TEMPORARY FUNCTION declared")
    with pytest.raises(BindError, match="No match found"):
        answers(made, "SELECT declared(id) FROM people")


@pytest.mark.parametrize("last", ["f = udf(F(), result_type='INT')", "other = udf(F(), result_type='INT')", ""])
def test_a_text_may_hold_a_class_beside_its_function(last: str) -> None:
    made = environment()
    made.execute_sql(
        "CREATE TEMPORARY FUNCTION f AS $$\nfrom flowsql.table.udf import ScalarFunction, udf\n"
        f"class F(ScalarFunction):\n    def eval(self, x: int) -> int: return x + 1\n{last}\n$$ LANGUAGE PYTHON"
    )
    assert answers(made, "SELECT F(id), f(id) FROM people WHERE id = 1") == [(2, 2)]


def test_a_text_with_two_functions_needs_one_of_the_name() -> None:
    made = environment()
    made.execute_sql("CREATE TEMPORARY FUNCTION f AS $$\ndef a(): ...\ndef b(): ...\n$$ LANGUAGE PYTHON")
    with pytest.raises(BindError, match="The text of the function 'f' defines a, b"):
        answers(made, "SELECT f() FROM people")


def test_plans_of_named_functions_are_stored(tmp_path: Path, module: str) -> None:
    made = environment()
    made.execute_sql(f"CREATE FUNCTION a AS '{module}.hinted' LANGUAGE PYTHON")
    made.execute_sql("CREATE FUNCTION b AS $$\ndef b(x: int) -> int:\n    return -x\n$$ LANGUAGE PYTHON")
    made.execute_sql(
        f"CREATE TABLE out_ (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
        f"'path' = '{tmp_path / 'out'}')"
    )
    made.execute_sql(f"COMPILE PLAN '{tmp_path / 'plan.json'}' FOR INSERT INTO out_ SELECT a(id), b(id) FROM people")
    other = TableEnvironment.create()
    other.execute_sql(f"EXECUTE PLAN '{tmp_path / 'plan.json'}'").wait()
    assert sorted(answers(made, "SELECT * FROM out_")) == [(2, -1), (3, -2), (4, -3)]
    made.create_temporary_function("c", udf(lambda x: x, result_type="BIGINT"))
    with pytest.raises(NotSupportedYetError, match="COMPILE PLAN"):
        made.execute_sql(f"COMPILE PLAN '{tmp_path / 'p'}' FOR INSERT INTO out_ SELECT a(id), c(id) FROM people")


def test_places_where_no_function_can_stand() -> None:
    made = environment()
    made.create_temporary_function("same", udf(lambda x: x, result_type="TIMESTAMP(3)"))
    made.create_temporary_function("truth", udf(lambda a, b: True, result_type="BOOLEAN"))
    made.execute_sql(
        "CREATE TEMPORARY TABLE w (ts TIMESTAMP(3), WATERMARK FOR ts AS same(ts)) WITH ('connector' = 'datagen')"
    )
    with pytest.raises(NotSupportedYetError, match="in the expression of a WATERMARK"):
        answers(made, "SELECT ts FROM w")
    with pytest.raises(PlanError, match="Only inner join condition"):
        answers(made, "SELECT p.id FROM people p LEFT JOIN people q ON p.id = q.id AND truth(p.id, q.id)")
    with pytest.raises(BindError, match="is not an aggregate function"):
        answers(made, "SELECT truth(id, id) FILTER (WHERE TRUE) FROM people")


def test_a_join_by_time_asks_no_function() -> None:
    """An operator that evaluates conditions itself has no way to call one: said by name, not found out at run time."""
    made = environment()
    made.create_temporary_function("same", udf(lambda x: x, result_type="INT"))
    for name in ("l", "r"):
        made.execute_sql(
            f"CREATE TEMPORARY TABLE {name} (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
            "WITH ('connector' = 'datagen')"
        )
    query = "SELECT l.a FROM l JOIN r ON l.ts BETWEEN r.ts - INTERVAL '1' SECOND AND r.ts AND same(l.a) > r.a"
    with pytest.raises(NotSupportedYetError, match=r"the Python function same in IntervalJoin"):
        answers(made, query)
