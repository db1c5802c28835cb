from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.errors import ExecutionError, InternalError
from flowsql_core.graph.specs import ExtensionSpec
from flowsql_core.types.logical import BIGINT
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import Operator, SourceOperator, SourceStatus
from flowsql_runtime.task.memory import MemoryBudget, OperatorMemory

from ..graphs import Collected, collect, graph, schema, vertex

ONE = schema(n=BIGINT)


class Once(SourceOperator[Any]):
    """One batch with one column of a Python list."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self._done = False

    def emit_next(self) -> SourceStatus:
        if self._done:
            return SourceStatus.END
        self._done = True
        self.output.collect(
            ChangelogBatch.of(
                [PyObjectColumn(np.array([[1]], dtype=object).reshape(1)), pa.array([1])], np.zeros(1, np.uint8)
            )
        )
        return SourceStatus.MORE

    def wake_when_available(self, wake: Any) -> None:
        wake()


class Writing(Operator[Any]):
    """Breaks the rule: writes into what it got."""

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        batch.columns[0].values[0] = "changed"
        self.output.collect(batch)


def run(configuration: dict[str, str]) -> list[object]:
    """A source with two chained consumers, of which the first writes into its input."""
    left, right = Collected(), Collected()
    source, writer = ExtensionSpec("source", "source"), ExtensionSpec("plain", "writing")
    line = vertex(1, source, writer, collect(ONE, "left"), collect(ONE, "right"), output=ONE)
    links = (*line.chain[:2], type(line.chain[0])(line.operators[0].id, line.operators[3].id))
    found = type(line)(line.id, line.name, line.operators, links, 1)
    LocalCluster().run(
        graph([found], configuration=configuration, source=Once, writing=Writing, left=left, right=right)
    )
    return [left.batches[0].columns[0].values[0], right.batches[0].columns[0].values[0]]


def test_without_object_reuse_a_sibling_does_not_see_a_write() -> None:
    assert run({}) == ["changed", 1]


def test_with_object_reuse_objects_are_shared() -> None:
    assert run({"pipeline.object-reuse": "true"}) == ["changed", "changed"]


def test_debug_mode_makes_such_a_write_an_error() -> None:
    with pytest.raises(InternalError, match="read-only"):
        run({"pipeline.object-reuse": "true", "flowsql.debug": "true"})


def test_memory_is_refused_politely_and_given_back() -> None:
    budget = MemoryBudget(100)
    first, second = OperatorMemory(budget, "Join"), OperatorMemory(budget, "Sort")
    first.reserve(60)
    second.resize(40)
    with pytest.raises(ExecutionError) as raised:
        first.reserve(1)
    for part in ("'Join'", "60 bytes", "1 more", "flowsql.memory"):
        assert part in raised.value.message
    assert raised.value.operator == "Join"
    second.resize(10)
    first.reserve(1)
    assert budget.reserved_bytes == 71
    first.close()
    second.close()
    assert budget.reserved_bytes == 0
