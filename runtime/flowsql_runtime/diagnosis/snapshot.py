"""A job as it stands: the operators of its graph with what their subtasks count and tell. Data alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeVar

from flowsql_connectors.spi.counters import ROWS_SKIPPED
from flowsql_core.element import MIN_WATERMARK
from flowsql_core.graph.job import JobGraph, OperatorNode
from flowsql_core.record import record
from flowsql_runtime.metrics.registry import LATE_DROPPED, JobMetrics, OperatorMetrics
from flowsql_runtime.metrics.told import AtWork, answers

#: How long whoever asks waits for all tasks together; those that work are busy, and no answer is due from them.
PATIENCE_S = 0.3

T = TypeVar("T")


@record
class SubtaskNow:
    """One subtask of an operator. ``is_over``: its task has ended. ``told``: see ``metrics/told.py``."""

    number: int
    rows_in: int = 0
    rows_out: int = 0
    skipped: int = 0
    late: int = 0
    input_watermark_ms: int = MIN_WATERMARK
    output_watermark_ms: int = MIN_WATERMARK
    is_over: bool = False
    told: tuple[object, ...] = ()

    def tells(self, kind: type[T]) -> T | None:
        """What it tells of a kind."""
        return next((one for one in self.told if isinstance(one, kind)), None)


@record
class OperatorNow:
    """One operator with its subtasks."""

    node: OperatorNode
    subtasks: tuple[SubtaskNow, ...]

    @property
    def rows_in(self) -> int:
        """Rows that all subtasks took."""
        return sum(one.rows_in for one in self.subtasks)

    @property
    def rows_out(self) -> int:
        """Rows that all subtasks gave."""
        return sum(one.rows_out for one in self.subtasks)

    @property
    def skipped(self) -> int:
        """Rows that all subtasks left out, as they do not fit the table."""
        return sum(one.skipped for one in self.subtasks)

    @property
    def late(self) -> int:
        """Rows that all subtasks dropped as late."""
        return sum(one.late for one in self.subtasks)

    @property
    def is_busy(self) -> bool:
        """Whether some subtask is in the middle of a batch, or not open yet: rows may be about to come."""
        return any(not one.is_over and one.tells(AtWork) is None for one in self.subtasks)

    @property
    def is_source(self) -> bool:
        """Whether it has no input."""
        return not self.node.number_of_inputs

    @property
    def is_over(self) -> bool:
        """Whether all subtasks have ended."""
        return all(one.is_over for one in self.subtasks)


@record
class JobNow:
    """Operators by id, those that feed others before them.

    ``inputs``: by operator and number of its input, the operators that feed it. ``reads``: rows have been read since
    the job was looked at before.
    """

    operators: Mapping[int, OperatorNow]
    inputs: Mapping[int, Mapping[int, tuple[int, ...]]] = field(default_factory=dict)
    reads: bool = False

    def feeding(self, node_id: int, input_index: int | None = None) -> tuple[OperatorNow, ...]:
        """The operators that feed one, or one input of it."""
        by_input = self.inputs.get(node_id, {})
        found = [ids for index, ids in by_input.items() if input_index in (None, index)]
        return tuple(self.operators[one] for ids in found for one in ids)

    def before(self, node_id: int, input_index: int | None = None) -> JobNow:
        """The part of the job whose rows come to an operator, or to one input of it; without the operator."""
        kept: set[int] = set()
        left = [one.node.id for one in self.feeding(node_id, input_index)]
        while left:
            found = left.pop()
            if found not in kept:
                kept.add(found)
                left += [one.node.id for one in self.feeding(found)]
        operators = {key: one for key, one in self.operators.items() if key in kept}
        return JobNow(operators, self.inputs, self.reads)

    def sources(self) -> Iterator[OperatorNow]:
        """The operators that take nothing in."""
        return (one for one in self.operators.values() if one.is_source)

    @property
    def rows_read(self) -> int:
        """Rows that all sources gave."""
        return sum(one.rows_out for one in self.sources())


def job_now(graph: JobGraph, metrics: JobMetrics, rows_read_before: int | None = None) -> JobNow:
    """A running job as it stands; asks its tasks."""
    found: dict[int, list[tuple[OperatorMetrics, bool]]] = {}
    for task in list(metrics.tasks):
        for operator in task.operators:
            found.setdefault(operator.node_id, []).append((operator, bool(task.stopped_ns)))
    nodes = [node for vertex in graph.vertices for node in vertex.operators if node.id in found]
    asked = [operator.told if not over else {} for node in nodes for operator, over in found[node.id]]
    told = iter(answers(asked, PATIENCE_S))
    operators = {
        node.id: OperatorNow(node, tuple(_subtask(operator, over, next(told)) for operator, over in found[node.id]))
        for node in nodes
    }
    inputs: dict[int, dict[int, tuple[int, ...]]] = {}
    for source, target, index in _edges(graph):
        if source in operators and target in operators:
            by_input = inputs.setdefault(target, {})
            by_input[index] = (*by_input.get(index, ()), source)
    now = JobNow(operators, inputs)
    return JobNow(operators, inputs, rows_read_before is not None and now.rows_read > rows_read_before)


def _subtask(metrics: OperatorMetrics, is_over: bool, told: tuple[object, ...]) -> SubtaskNow:
    return SubtaskNow(
        metrics.subtask,
        metrics.records_in,
        metrics.records_out,
        metrics.counted(ROWS_SKIPPED),
        metrics.counted(LATE_DROPPED),
        metrics.input_watermark_ms,
        metrics.output_watermark_ms,
        is_over,
        told,
    )


def _edges(graph: JobGraph) -> Iterator[tuple[int, int, int]]:
    heads = {vertex.id: vertex.head.id for vertex in graph.vertices}
    for vertex in graph.vertices:
        for link in vertex.chain:
            yield link.source, link.target, link.input_index
    for edge in graph.edges:
        yield edge.source, heads[edge.target_vertex], edge.input_index
