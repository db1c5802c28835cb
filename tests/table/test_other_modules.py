"""Small modules that programs import beside the two APIs: metrics and exceptions."""

from __future__ import annotations

import pytest

from flowsql.common import Types
from flowsql.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from flowsql.metrics import Counter, Distribution, Meter, Metric, MetricGroup
from flowsql.table import FunctionContext, ScalarFunction, TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import udf
from flowsql.util.exceptions import TableException


def kinds(group: MetricGroup) -> str:
    found = {
        "group": isinstance(group.add_group("g"), MetricGroup),
        "counter": isinstance(group.counter("c"), Counter),
        "meter": isinstance(group.meter("m"), Meter),
        "distribution": isinstance(group.distribution("d"), Distribution),
        "metric": isinstance(group.counter("e"), Metric),
        "no counter": not isinstance(group.meter("n"), Counter),
    }
    return ", ".join(name for name, holds in found.items() if holds)


ALL = "group, counter, meter, distribution, metric, no counter"


def test_metrics_of_table_functions_are_of_the_named_kinds() -> None:
    class Ask(ScalarFunction):
        def open(self, function_context: FunctionContext) -> None:
            self.kinds = kinds(function_context.get_metric_group())

        def eval(self, x: int) -> str:
            return self.kinds

    table = TableEnvironment.create().from_elements([(1,)], ["a"])
    assert table.select(udf(Ask(), result_type="STRING")(col("a"))).to_arrow().column(0).to_pylist() == [ALL]


def test_metrics_of_stream_functions_are_of_the_named_kinds() -> None:
    class Ask(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.kinds = kinds(runtime_context.get_metrics_group())

        def map(self, value: int) -> str:
            return self.kinds

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    assert env.from_collection([1], Types.INT()).map(Ask(), Types.STRING()).execute_and_collect(limit=1) == [ALL]


def test_errors_are_caught_under_pyflinks_name() -> None:
    environment = TableEnvironment.create()
    for statement in ("SELECT nope", "SELEC 1", "SELECT * FROM nowhere"):
        with pytest.raises(TableException):
            environment.execute_sql(statement)
