"""A job of streams and tables, cut in the middle and restored at another parallelism, gives what the whole gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from flowsql.common import RowKind, Types
from flowsql.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from flowsql.datastream.plan import operators
from flowsql.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flowsql.table import StreamTableEnvironment
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.cluster.local import LocalCluster

pytestmark = pytest.mark.usefixtures("each_backend")

PAIR = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])
DATA = [(f"k{n % 7}", n) for n in range(120)]


class Received:
    """The receiver behind a collect sink."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def accept(self, batch: ChangelogBatch) -> None:
        self.values += list(batch.columns[0].values)

    def finish(self) -> None:
        pass


class Running(KeyedProcessFunction):
    """Numbers each value of its key, tells the last one, and how many keys there were, at the end of the input."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.INT(), Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.seen.put(value.n % 5, True)
        ctx.timer_service().register_event_time_timer(2**62)
        yield ctx.get_current_key(), count

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "end", ctx.get_current_key(), self.count.value(), sorted(self.seen.keys())


def build(parallelism: int, received: Received) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    stream = env.from_collection(DATA, PAIR)
    streams = stream.key_by(lambda row: row.name, Types.STRING()).process(Running())
    tables = StreamTableEnvironment.create(env)
    tables.create_temporary_view("t", stream)
    sums = tables.to_changelog_stream(tables.sql_query("SELECT name, SUM(n) AS s, COUNT(*) AS c FROM t GROUP BY name"))
    changes = sums.map(lambda row: (row.get_row_kind(), tuple(row)))
    streams.union(changes)._sink("collect", operators.collect_sink(received))
    return env.job_graph()


def told(values: list[Any]) -> Counter[Any]:
    """What streams told, each as often as it came, and what is left of the table."""
    found: Counter[Any] = Counter()
    for value in values:
        if not isinstance(value[0], RowKind):
            found[str(value)] += 1
        else:
            found[value[1]] += 1 if value[0] in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    return +found


@pytest.mark.parametrize(("before", "behind"), [(1, 3), (3, 2), (2, 1)])
@pytest.mark.parametrize("stop_at", [0, 50, 120])
def test_the_cut_changes_nothing(before: int, behind: int, stop_at: int) -> None:
    cluster = LocalCluster()
    whole = Received()
    cluster.run(build(1, whole))
    received = Received()
    first = build(before, received)
    (source,) = {node.uid for vertex in first.vertices for node in vertex.operators if node.name == "Collection Source"}
    job = cluster.submit(first, cut={(source, 0): stop_at})
    job.wait(60)
    # A source that has nothing left ends its time, too.
    assert any(value[0] == "end" for value in received.values) is (stop_at == len(DATA))
    cluster.run(build(behind, received), restored=job.snapshot)
    assert told(received.values) == told(whole.values)
    assert len(told(whole.values)) == 120 + 7 + 7
