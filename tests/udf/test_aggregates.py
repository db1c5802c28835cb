"""Python aggregates: life, errors, places; their operator against a model. What they answer PyFlink has said
(``tests/table/programs/aggregates.txt``)."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table import TableEnvironment
from flowsql.table.expressions import call, col
from flowsql.table.udf import AggregateFunction, TableAggregateFunction, udaf, udf, udtaf
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.element import MAX_WATERMARK
from flowsql_core.errors import BindError, ExecutionError, NotSupportedYetError, PlanError
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.python_specs import PythonGroupAggregateSpec
from flowsql_core.python_call import PYTHON, PythonFunction, aggregate_options
from flowsql_core.row import DELETE, INSERT
from flowsql_core.types.logical import BIGINT, Column
from flowsql_runtime.testing.harness import OperatorHarness


class Sum(AggregateFunction):
    """A sum that is told from others by what it starts with; ``life`` says what happened to it."""

    life: ClassVar[list[str]] = []

    def __init__(self, start: int = 0) -> None:
        self.start = start

    def open(self, function_context: Any) -> None:
        self.life.append(f"open {function_context.get_index_of_this_subtask()}")
        self.rows = function_context.get_metric_group().counter("rows")

    def close(self) -> None:
        self.life.append("close")

    def create_accumulator(self) -> Any:
        return [self.start]

    def accumulate(self, accumulator: Any, value: Any) -> None:
        self.rows.inc()
        accumulator[0] += value

    def retract(self, accumulator: Any, value: Any) -> None:
        accumulator[0] -= value

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]

    def get_result_type(self) -> Any:
        return "BIGINT"

    def get_accumulator_type(self) -> Any:
        return "ARRAY<BIGINT>"


def environment(**options: str) -> TableEnvironment:
    made = TableEnvironment.create()
    for key, value in options.items():
        made.get_config().set(key.replace("__", "-").replace("_", "."), value)
    made.execute_sql(
        "CREATE TEMPORARY VIEW numbers AS SELECT * FROM "
        "(VALUES (1, 10), (2, 20), (1, 5), (2, CAST(NULL AS INT))) AS t(k, n)"
    )
    made.create_temporary_system_function("total", udaf(Sum()))
    return made


def answers(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with made.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


def test_functions_are_opened_and_closed_once_a_subtask() -> None:
    made = environment()
    Sum.life.clear()
    query = "SELECT k, total(n) FROM numbers WHERE n IS NOT NULL GROUP BY k"
    assert sorted(answers(made, query)) == [(1, 15), (2, 20)]
    assert Sum.life == ["open 0", "close"]
    with pytest.raises(ExecutionError) as caught:
        answers(made, "SELECT k, total(n) FROM numbers GROUP BY k")
    text = str(caught.value)
    assert text.startswith("TypeError: unsupported operand type(s) for +=: 'int' and 'NoneType'")
    assert "accumulate() of the Python function 'total', called with value = None" in text
    assert Sum.life[-1] == "close"


def test_functions_stand_in_modules_and_texts() -> None:
    made = environment()
    made.execute_sql(f"CREATE TEMPORARY FUNCTION by_path AS '{__name__}.Sum' LANGUAGE PYTHON")
    made.execute_sql(
        "CREATE TEMPORARY FUNCTION longest AS $$\n"
        "from flowsql.table.udf import AggregateFunction, udaf\n\n"
        "class Longest(AggregateFunction):\n"
        "    def create_accumulator(self): return ['']\n"
        "    def accumulate(self, kept, text): kept[0] = max(kept[0], text, key=len)\n"
        "    def get_value(self, kept): return kept[0]\n\n"
        "longest = udaf(Longest(), result_type='STRING', accumulator_type='ARRAY<STRING>')\n"
        "$$ LANGUAGE PYTHON"
    )
    query = "SELECT by_path(k), longest(CAST(n AS STRING)) FROM numbers WHERE n > 5"
    assert answers(made, query) == [(3, "10")]
    made.create_temporary_function("own", Sum(100))  # type: ignore[arg-type]
    assert answers(made, "SELECT own(k) FROM numbers") == [(106,)]


def test_names_and_places() -> None:
    made = environment()
    total = udaf(Sum())
    table = made.sql_query("SELECT k, n FROM numbers WHERE n IS NOT NULL")
    grouped = table.group_by(col("k")).select(total(col("n")), col("n").max, total(col("n")) + 1)
    assert grouped.get_schema().get_field_names() == ["EXPR$0", "EXPR$1", "_c2"]
    assert sorted(map(tuple, grouped.execute().collect())) == [(15, 10, 16), (20, 20, 21)]
    assert [tuple(row) for row in table.select(call("total", col("k")).alias("t")).execute().collect()] == [(4,)]
    assert answers(made, "SELECT k FROM numbers GROUP BY k HAVING total(k) > 2") == [(2,)]
    made.create_temporary_system_function("mean", udaf(lambda v: v.mean(), result_type="DOUBLE", func_type="pandas"))
    made.create_temporary_system_function("own", udf(lambda k: k, result_type="INT"))
    for query, message in [
        ("SELECT total(k) OVER (ORDER BY k) FROM numbers", "Non-Pandas Python UDAFs are not supported in stream mode"),
        (
            "SELECT mean(k) OVER (ORDER BY k) FROM numbers",
            "must be defined on a time attribute",
        ),
        ("SELECT mean(DISTINCT k) OVER (ORDER BY k) FROM numbers", "mean(DISTINCT"),
        ("SELECT own(k) OVER (ORDER BY k) FROM numbers", "OVER must be applied to aggregate function"),
        ("SELECT k FROM numbers WHERE total(k) > 1", "Aggregate expression is illegal in WHERE clause"),
        ("SELECT total(total(k)) FROM numbers", "Aggregate expressions cannot be nested"),
        ("SELECT total(k, k) FROM numbers", "Invalid function call"),
        ("SELECT total() FROM numbers", "Invalid function call"),
        ("SELECT * FROM numbers, LATERAL TABLE(total(k))", "'total' is an aggregate function"),
        ("SELECT total(k) WITHIN GROUP (ORDER BY n) FROM numbers", "must not contain a WITHIN GROUP clause"),
    ]:
        with pytest.raises((BindError, PlanError, NotSupportedYetError), match=message.replace("(", r"\(")):
            made.explain_sql(query)


def test_what_streaming_does_not_have() -> None:
    made = environment()
    made.create_temporary_system_function("mean", udaf(lambda v: v.mean(), result_type="DOUBLE", func_type="pandas"))
    with pytest.raises(PlanError, match="Pandas UDAFs are not supported in streaming mode currently"):
        made.explain_sql("SELECT k, mean(n) FROM numbers GROUP BY k")
    with pytest.raises(PlanError, match="DISTINCT of a Python aggregate function takes no values of type ROW"):
        made.explain_sql("SELECT total(DISTINCT ROW(k, n)) FROM numbers")


class Both(TableAggregateFunction):
    """Two rows a group, with what it summed."""

    def create_accumulator(self) -> Any:
        return [0]

    def accumulate(self, accumulator: Any, value: Any) -> None:
        accumulator[0] += value

    def emit_value(self, accumulator: Any) -> Any:
        yield "plus", accumulator[0]
        yield "minus", -accumulator[0]


def test_table_aggregates_stand_in_flat_aggregate_only() -> None:
    made = environment()
    both = udtaf(Both(), result_type="ROW<sign STRING, n BIGINT>", accumulator_type="ARRAY<BIGINT>")
    table = made.sql_query("SELECT k, n FROM numbers WHERE n IS NOT NULL")
    rows = table.group_by(col("k")).flat_aggregate(both(col("n"))).select(col("k"), col("n"))
    assert [tuple(row) for row in rows.execute().collect()] == [(1, 15), (1, -15), (2, 20), (2, -20)]
    assert re.search(r"PythonGroupTableAggregate\(.* Both\$\d+\(.*\) AS \(sign, n\)\]\)", rows.explain())
    # Keys alone: as many rows as the function makes.
    keys = table.group_by(col("k")).flat_aggregate(both(col("n"))).select(col("k"))
    assert [tuple(row) for row in keys.execute().collect()] == [(1,), (1,), (2,), (2,)]
    clash = table.group_by(col("k")).flat_aggregate(both(col("n")).alias("k", "m"))
    assert [tuple(row) for row in clash.select(col("m")).execute().collect()] == [(15,), (-15,), (20,), (-20,)]
    given = made.from_elements([(1, 2)], ["k", "n"]).group_by(col("k")).flat_aggregate(both(col("n")))
    ways = [line.rpartition(".")[2].split() for line in given.select(col("k"), col("n")).lineage().splitlines()[1:]]
    assert ways == [["k", "IDENTITY"], ["n", "AGGREGATION"], ["k", "GROUP_BY"]]
    with pytest.raises(BindError, match="'Both' is a table aggregate function: it can be called only in"):
        table.select(both(col("n")))
    with pytest.raises(BindError, match="is a table aggregate function"):
        table.aggregate(both(col("n")))
    with pytest.raises(BindError, match="has 2 columns, whereas alias list has 3 columns"):
        table.flat_aggregate(both(col("n")).alias("a", "b", "c"))
    with pytest.raises(RuntimeError, match="Method get_result_type is not implemented"):
        udtaf(Both())
    with pytest.raises(ValueError, match="func_type must be 'general'"):
        udtaf(Both(), func_type="pandas")


def moments() -> TableEnvironment:
    made = environment()
    made.execute_sql(
        "CREATE TABLE moments (v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
    )
    return made


def test_batch_mode_is_refused_and_windows_of_table_functions_are_groups() -> None:
    batch = environment(execution_runtime__mode="batch")
    with pytest.raises(NotSupportedYetError, match=r"the Python aggregate function total in batch mode"):
        batch.explain_sql("SELECT total(n) FROM numbers")
    # Over the table function of a window Flink updates the group of each window.
    plan = moments().explain_sql(
        "SELECT window_start, total(v) FROM TABLE(TUMBLE(TABLE moments, DESCRIPTOR(ts), INTERVAL '1' SECOND)) "
        "GROUP BY window_start, window_end"
    )
    assert "PythonGroupAggregate(groupBy=[window_start, window_end], select=[window_start, window_end, total(v)" in plan


# Against a model, with an operator of its own


def _spec(ttl_ms: int = 0, distinct: bool = False, before: bool = True) -> PythonGroupAggregateSpec:
    function = PythonFunction("total", "total", "general")
    value = InputRef(1, BIGINT)
    calls = (
        AggregateCall(PYTHON, (value,), BIGINT, "t", distinct, options=aggregate_options(function)),
        AggregateCall("COUNT", (value,), BIGINT.as_nullable(False), "c"),
    )
    schema = (Column("k", BIGINT), Column("n", BIGINT))
    output = (schema[0], Column("t", BIGINT), Column("c", BIGINT.as_nullable(False)))
    return PythonGroupAggregateSpec((0,), calls, schema, output, True, before, ttl_ms)


def _harness(spec: PythonGroupAggregateSpec, **options: Any) -> OperatorHarness[PythonGroupAggregateSpec]:
    parameters = {key.replace("_", "."): str(value) for key, value in options.pop("parameters", {}).items()}
    return OperatorHarness(spec, resources={"total": udaf(Sum())}, parameters=parameters, **options)


def _batch(rows: list[tuple[int, int | None, int]], track: WatermarkTrack | None = None) -> ChangelogBatch:
    """Rows (key, value, sign)."""
    keys, values, signs = zip(*rows, strict=True)
    kinds = np.array([DELETE if sign < 0 else INSERT for sign in signs], np.uint8)
    columns = (pa.array(keys, pa.int64()), pa.array(values, pa.int64()))
    return ChangelogBatch(columns, len(rows), kinds, None, track)


def test_a_bundle_ends_when_it_is_full_and_when_its_time_is_over() -> None:
    made = _harness(_spec(), parameters={"python_fn-execution_bundle_size": 3})
    made.batch(_batch([(1, 1, 1), (1, 2, 1)], WatermarkTrack(np.array([1], np.int32), np.array([50]))))
    assert (made.rows, made.watermarks) == ([], [])
    made.batch(_batch([(2, 5, 1), (1, 4, 1)], WatermarkTrack(np.array([1, 2], np.int32), np.array([60, 70]))))
    assert made.rows == [("+I", 1, 3, 2), ("+I", 2, 5, 1)]
    assert made.watermarks == [60]
    made.advance(999)
    assert len(made.rows) == 2
    made.advance(1)
    assert made.rows[2:] == [("-U", 1, 3, 2), ("+U", 1, 7, 3)]
    assert made.watermarks == [60, 70]
    made.watermark(80)
    assert made.watermarks == [60, 70, 80]
    made.batch(_batch([(1, 7, -1)]))
    made.watermark(90)
    assert made.watermarks[-1] == 80
    made.end()
    assert made.watermarks[-2:] == [90, MAX_WATERMARK]
    assert made.rows[4:] == [("-U", 1, 7, 3), ("+U", 1, 0, 2)]
    made.close()


def test_groups_that_are_idle_start_over() -> None:
    made = _harness(_spec(ttl_ms=1000), parameters={"python_fn-execution_bundle_size": 1})
    made.batch(_batch([(1, 5, 1)]))
    made.advance(900)
    made.batch(_batch([(1, 0, 1)]))
    # Equal results are emitted where state expires, as in Flink.
    assert made.rows == [("+I", 1, 5, 1), ("-U", 1, 5, 1), ("+U", 1, 5, 2)]
    made.advance(1001)
    made.batch(_batch([(1, 2, 1)]))
    assert made.rows[3:] == [("+I", 1, 2, 1)]
    made.close()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("distinct", [False, True])
def test_random_rows_against_a_model(distinct: bool, backend: str) -> None:
    """Rows come and go, cut at changing parallelism: the table is that of the rows that are left."""
    draw = random.Random(7)
    left: list[tuple[int, int]] = []
    parameters = {"python_fn-execution_bundle_size": 7, "state_backend_type": backend}
    made = _harness(_spec(distinct=distinct), parameters=parameters, keys=((0,),), parallelism=2)
    for parallelism in (3, 1, 4, 2):
        for _ in range(12):
            rows = []
            for _ in range(draw.randrange(1, 9)):
                if left and draw.random() < 0.45:
                    rows.append((*left.pop(draw.randrange(len(left))), -1))
                else:
                    left.append((draw.randrange(5), draw.randrange(4)))
                    rows.append((*left[-1], 1))
            made.batch(_batch(rows))
        made = made.restored(parallelism)
    made.end()
    wanted = {}
    for key in {key for key, _ in left}:
        values = [value for own, value in left if own == key]
        wanted[key] = (sum(set(values) if distinct else values), len(values))
    table: Counter[tuple[Any, ...]] = Counter()
    for kind, *row in made.rows:
        table[tuple(row)] += 1 if kind in ("+I", "+U") else -1
    assert not -table
    assert sorted((+table).elements()) == sorted((key, *result) for key, result in wanted.items())
    made.close()
