"""Taps: what is taken of batches, what is left out, and that it costs nothing when nobody looks."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.errors import BindError
from flowsql_core.graph.job import JobGraph
from flowsql_core.row import RowKind
from flowsql_core.span import Source
from flowsql_runtime.metrics.registry import OperatorMetrics
from flowsql_runtime.sampling.edges import edges_named, edges_of, edges_of_table
from flowsql_runtime.sampling.tap import BURST_NS, JobTaps, Tap
from flowsql_runtime.task.chain import OperatorOutput

ADD, UB, UA, DEL = map(int, (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE))


def batch(rows: int, kinds: list[int] | None = None) -> ChangelogBatch:
    return ChangelogBatch.of([pa.array(range(rows))], None if kinds is None else np.array(kinds, np.uint8))


def values(tap: Tap) -> list[int]:
    return [value for found in tap.read(0).batches for value in found.columns[0].to_pylist()]


@pytest.mark.parametrize(
    ("offered", "per_batch", "waiting", "taken"),
    [
        ([5], 10, 100, [0, 1, 2, 3, 4]),
        ([5, 0, 2], 3, 100, [0, 1, 2, 0, 1]),
        ([5, 5, 5], 3, 4, [0, 1, 2, 0]),
        ([3], 3, 0, []),
    ],
)
def test_rows_are_bounded(offered: list[int], per_batch: int, waiting: int, taken: list[int]) -> None:
    tap = Tap(per_batch, waiting)
    for rows in offered:
        tap.offer(batch(rows))
    found = tap.read(0)
    assert [value for one in found.batches for value in one.columns[0].to_pylist()] == taken
    assert (found.passed, found.taken) == (sum(offered), len(taken))
    # There is room again.
    tap.offer(batch(1))
    assert len(values(tap)) == min(1, waiting)


@pytest.mark.parametrize(
    ("kinds", "per_batch", "taken"),
    [([UB, UA, UB, UA], 3, 2), ([UB, UA, UB, UA], 2, 2), ([UB, UA], 1, 1), ([DEL, UB], 2, 2), ([ADD, ADD, DEL], 2, 2)],
)
def test_both_halves_of_an_update_come_or_none(kinds: list[int], per_batch: int, taken: int) -> None:
    tap = Tap(per_batch)
    tap.offer(batch(len(kinds), kinds))
    (found,) = tap.read(0).batches
    assert found.kinds is not None
    assert found.kinds.tolist() == kinds[:taken]


def test_what_is_taken_does_not_hold_the_batch_in_memory() -> None:
    tap = Tap(2)
    tap.offer(batch(1_000_000))
    (found,) = tap.read(0).batches
    assert found.columns[0].get_total_buffer_size() < 1000


def test_a_tap_takes_little_of_the_tasks_time() -> None:
    tap = Tap()
    tap.offer(batch(2))
    assert len(values(tap)) == 2
    tap._spent_ns += 1000 * BURST_NS
    tap.offer(batch(2))
    found = tap.read(0)
    assert (found.batches, found.passed, found.taken) == ((), 4, 2)


def test_rows_that_cannot_be_copied_harm_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def __len__(self) -> int:
            return 3

    tap = Tap()
    tap.offer(ChangelogBatch((Broken(),), 3))  # type: ignore[arg-type]
    found = tap.read(0)
    assert (found.batches, found.passed, found.taken) == ((), 3, 0)
    assert "rows could not be sampled" in caplog.text
    tap.offer(batch(1))
    assert values(tap) == [0]


def test_several_tasks_offer_at_the_same_time() -> None:
    tap = Tap(1, 10_000_000)
    tap._spent_ns = -(10**15)
    tasks = [threading.Thread(target=lambda: [tap.offer(batch(2)) for _ in range(500)]) for _ in range(4)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    found = tap.read(0)
    assert (found.passed, found.taken, len(found.batches)) == (4000, 2000, 2000)


def test_a_reader_waits_for_rows() -> None:
    tap = Tap()
    threading.Timer(0.05, tap.offer, (batch(1),)).start()
    assert len(tap.read(20).batches) == 1


class Counted:
    """A target; whether it was given rows, and in which order."""

    def __init__(self) -> None:
        self.rows = 0

    def collect(self, found: ChangelogBatch) -> None:
        self.rows += found.num_rows


def test_an_output_asks_nobody_when_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[int] = []
    monkeypatch.setattr(Tap, "offer", lambda self, found: offered.append(found.num_rows))
    taps, main, side = JobTaps(), Counted(), Counted()
    outputs: list[Any] = [OperatorOutput(OperatorMetrics("op", n, 7), [main], {"late": [side]}, taps) for n in range(2)]  # type: ignore[list-item]
    for output in outputs:
        output.collect(batch(3))
        output.collect_side("late", batch(2))
    assert offered == []
    tap = Tap()
    taps.add((7, None), tap)
    taps.add((7, "late"), tap)
    for output in outputs:
        output.collect(batch(3))
        output.collect_side("late", batch(2))
    assert offered == [3, 2, 3, 2]
    taps.remove((7, None), tap)
    taps.remove((7, "late"), tap)
    assert taps.open() == {}
    for output in outputs:
        output.collect(batch(3))
        output.collect_side("late", batch(2))
    assert offered == [3, 2, 3, 2]
    assert (main.rows, side.rows) == (18, 12)
    assert taps.has((7, None))
    assert not taps.has((8, None))


def test_objects_of_python() -> None:
    tap = Tap()
    tap.offer(ChangelogBatch.of([PyObjectColumn(np.array([(1, "a"), (2, "b")], dtype=object)[:, 0])]))
    assert values(tap) == [1, 2]


# -- names


@pytest.fixture(scope="module")
def graph() -> JobGraph:
    environment = TableEnvironment.create()
    for statement in (
        "CREATE TABLE clicks (n BIGINT, t STRING) WITH ('connector' = 'datagen')",
        "CREATE TABLE `Other` (n BIGINT) WITH ('connector' = 'datagen')",
        "CREATE TABLE counts (n BIGINT, c BIGINT) WITH ('connector' = 'blackhole')",
        "CREATE TABLE twice (n BIGINT) WITH ('connector' = 'blackhole')",
    ):
        environment.execute_sql(statement)
    source = Source(
        "EXECUTE STATEMENT SET BEGIN "
        "INSERT INTO counts SELECT c.n, COUNT(*) FROM clicks AS c JOIN `Other` AS o ON c.n = o.n GROUP BY c.n;"
        "INSERT INTO twice SELECT n FROM `Other`; INSERT INTO twice SELECT CHAR_LENGTH(t) FROM clicks; END;",
        "<test>",
    )
    (statement,) = environment.statements(source)
    return environment.job_of(statement, source)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("GroupAgg", "GroupAggregate("),
        ("groupaggregate-", "GroupAggregate("),
        ("Join", "Join("),
        ("other", "Source: Other["),
        ("source: clicks", "Source: clicks["),
    ],
)
def test_an_operator_is_named(graph: JobGraph, text: str, name: str) -> None:
    (edge,) = edges_named(graph, text)
    assert edge.name.startswith(name)
    assert (
        edges_named(graph, str(edge.node)) == edges_named(graph, edge.uid) == edges_named(graph, edge.name) == (edge,)
    )


def test_a_sink_is_named_for_what_comes_to_it(graph: JobGraph) -> None:
    (edge,) = edges_named(graph, "counts")
    assert [column.name for column in edge.columns] == ["n", "c"]
    assert edge.ways[0][0] == "chain"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not an operator"),
        ("77", "is not an operator"),
        ("Grup", "is not an operator"),
        ("Calc", "fits several operators"),
        ("twice", "fits several operators"),
    ],
)
def test_what_names_no_operator_or_several(graph: JobGraph, text: str, told: str) -> None:
    with pytest.raises(BindError, match=told) as failed:
        edges_named(graph, text)
    assert failed.value.hint is not None
    assert failed.value.hint.startswith("one of ")


def test_every_edge_has_a_receiver_and_columns(graph: JobGraph) -> None:
    edges = edges_of(graph)
    writers = {node.id for vertex in graph.vertices for node in vertex.operators if not node.name.startswith("Sink")}
    assert {edge.node for edge in edges} == writers
    assert all(edge.ways and edge.columns for edge in edges)
    assert {way.partition("[")[0] for edge in edges for way, _ in edge.ways} >= {"chain", "HASH"}


def test_a_side_output_is_named_by_its_tag(graph: JobGraph) -> None:
    first = graph.vertices[0]
    source, link = first.operators[0], first.chain[0]
    sided = replace(first, chain=(*first.chain, replace(link, tag="late")))
    made = replace(graph, vertices=(sided, *graph.vertices[1:]))
    (main,) = edges_named(made, str(source.id))
    assert main.tag is None
    (side,) = edges_named(made, f"{source.uid}:late")
    assert side.place == (source.id, "late")
    assert side.title.endswith(f"(side output {source.id}:late)")
    with pytest.raises(BindError, match="is not an operator"):
        edges_named(made, f"{source.id}:early")


def test_tables(graph: JobGraph) -> None:
    for text in ("Other", "default_database.other", "default_catalog.default_database.`Other`"):
        (edge,) = edges_of_table(graph, text)
        assert edge.name.startswith("Source: Other[")
    assert [column.name for column in edges_of_table(graph, "counts")[0].columns] == ["n", "c"]
    with pytest.raises(BindError, match="neither reads nor writes a table 'nothing'") as failed:
        edges_of_table(graph, "nothing")
    assert failed.value.hint is not None
    assert "default_catalog.default_database.clicks" in failed.value.hint
    with pytest.raises(BindError, match="neither reads nor writes"):
        edges_of_table(graph, "elsewhere.clicks")
