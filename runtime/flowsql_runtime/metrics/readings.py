"""A job's counters at one moment, as data that can leave the process, and what they come to a second between two.

Shares of time are Flink's: ``idleTimeMsPerSecond`` is the part of a second in which a task waits for input,
``backPressuredTimeMsPerSecond`` that in which it waits for room at its receivers, ``busyTimeMsPerSecond`` the rest.
Reporters and servers of metrics read the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final, Self

from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.record import record
from flowsql_runtime.metrics.registry import TaskMetrics

if TYPE_CHECKING:
    from flowsql_runtime.cluster.job import Job

_SECOND_NS: Final = 1_000_000_000


@record
class OperatorReading:
    """Counters of an operator in one subtask, and the watermarks that came to it and left it."""

    node: int
    records_in: int
    records_out: int
    input_watermark_ms: int
    output_watermark_ms: int
    state_bytes: int | None = None


@record
class TaskReading:
    """One subtask of a vertex; nanoseconds. ``began_ns``: tells attempts apart."""

    vertex: int
    subtask: int
    began_ns: int
    alive_ns: int
    idle_ns: int
    back_pressured_ns: int
    is_over: bool
    operators: tuple[OperatorReading, ...]

    @property
    def key(self) -> tuple[int, int, int]:
        """One attempt of one subtask."""
        return self.vertex, self.subtask, self.began_ns


@record
class OperatorName:
    """An operator of the plan. ``is_source``: it has no input; ``is_sink``: nothing follows it."""

    id: int
    uid: str
    name: str
    is_source: bool
    is_sink: bool


@record
class VertexName:
    """Operators that run in one task, and in how many subtasks."""

    id: int
    name: str
    parallelism: int
    operators: tuple[OperatorName, ...]


@record
class JobReading:
    """A job at one moment. ``now_ms``: its clock, epoch milliseconds. ``checkpoints``: by Flink's names."""

    now_ms: int
    vertices: tuple[VertexName, ...]
    tasks: tuple[TaskReading, ...]
    checkpoints: Mapping[str, int | str]

    def to_json(self) -> dict[str, Any]:
        """As objects of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """What :meth:`to_json` gave; fields that a later version adds are left out."""
        vertices = tuple(
            VertexName(**{**_known(VertexName, one), "operators": _all(OperatorName, one["operators"])})
            for one in values["vertices"]
        )
        tasks = tuple(
            TaskReading(**{**_known(TaskReading, one), "operators": _all(OperatorReading, one["operators"])})
            for one in values["tasks"]
        )
        return cls(values["now_ms"], vertices, tasks, values["checkpoints"])


def _known(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: values[field.name] for field in fields(kind) if field.name in values}


def _all(kind: type[Any], values: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
    return tuple(kind(**_known(kind, one)) for one in values)


def reading_of(job: Job) -> JobReading:
    """A job as it stands; any thread. Jobs on Spark have no tasks here."""
    metrics = job.metrics
    vertex_of = {node.id: vertex.id for vertex in job.graph.vertices for node in vertex.operators}
    feeding = {link.source for vertex in job.graph.vertices for link in vertex.chain}
    feeding |= {edge.source for edge in job.graph.edges}
    vertices = tuple(
        VertexName(
            vertex.id,
            vertex.name,
            vertex.parallelism,
            tuple(
                OperatorName(node.id, node.uid, node.name, not node.number_of_inputs, node.id not in feeding)
                for node in vertex.operators
            ),
        )
        for vertex in job.graph.vertices
    )
    found = [task for task in list(metrics.tasks) if task.operators and task.operators[0].node_id in vertex_of]
    tasks = tuple(_task(task, vertex_of[task.operators[0].node_id]) for task in found)
    return JobReading(time.time_ns() // 1_000_000, vertices, tasks, metrics.checkpoints.values())


def _task(task: TaskMetrics, vertex: int) -> TaskReading:
    # Rows first: those that come meanwhile belong to the next reading.
    operators = tuple(
        OperatorReading(
            one.node_id,
            one.records_in,
            one.records_out,
            one.input_watermark_ms,
            one.output_watermark_ms,
            one.state_bytes,
        )
        for one in list(task.operators)
    )
    alive_ns, idle_ns, back_pressured_ns = task.times_ns()
    return TaskReading(
        vertex, task.subtask, task.started_ns, alive_ns, idle_ns, back_pressured_ns, bool(task.stopped_ns), operators
    )


@record
class OperatorRates:
    """An operator over all of its subtasks. Watermarks are the lowest; None: there is none. ``state_bytes``: of all."""

    operator: OperatorName
    records_in: int
    records_out: int
    in_per_second: float
    out_per_second: float
    input_watermark_ms: int | None
    output_watermark_ms: int | None
    state_bytes: int | None

    @property
    def watermark_ms(self) -> int | None:
        """How far event time has come to it; of what makes watermarks, how far it has gone."""
        return self.output_watermark_ms if self.input_watermark_ms is None else self.input_watermark_ms

    def values(self, now_ms: int) -> dict[str, int | float | None]:
        """By Flink's names."""
        return {
            "numRecordsIn": self.records_in,
            "numRecordsOut": self.records_out,
            "numRecordsInPerSecond": round(self.in_per_second, 3),
            "numRecordsOutPerSecond": round(self.out_per_second, 3),
            "currentInputWatermark": self.input_watermark_ms,
            "currentOutputWatermark": self.output_watermark_ms,
            "watermarkLag": self.lag_ms(now_ms),
            "stateBytes": self.state_bytes,
        }

    def lag_ms(self, now_ms: int) -> int | None:
        """How far the watermark is behind the clock; None without one, and at the end of time."""
        if self.watermark_ms is None or self.watermark_ms >= MAX_WATERMARK:
            return None
        return now_ms - self.watermark_ms


@record
class Shares:
    """What a task did with its time, milliseconds of each second; together a thousand."""

    busy: float
    idle: float
    back_pressured: float

    def values(self) -> dict[str, float]:
        """By Flink's names."""
        return {
            "busyTimeMsPerSecond": round(self.busy, 1),
            "idleTimeMsPerSecond": round(self.idle, 1),
            "backPressuredTimeMsPerSecond": round(self.back_pressured, 1),
        }


@record
class VertexRates:
    """A vertex with its operators. ``shares``: of each subtask that runs, by its number."""

    vertex: VertexName
    shares: Mapping[int, Shares]
    operators: tuple[OperatorRates, ...]

    @property
    def mean(self) -> Shares | None:
        """The average over subtasks; None where none runs."""
        found = list(self.shares.values())
        if not found:
            return None
        busy, idle, blocked = (
            sum(getattr(one, name) for one in found) / len(found) for name in ("busy", "idle", "back_pressured")
        )
        return Shares(busy, idle, blocked)

    @property
    def state_bytes(self) -> int | None:
        """Memory that the state of its operators takes; None: they keep none."""
        return total_bytes(self.operators)


def total_bytes(operators: Iterable[OperatorRates]) -> int | None:
    """Memory of the state of some operators; None: they keep none."""
    found = [one.state_bytes for one in operators if one.state_bytes is not None]
    return sum(found) if found else None


def rates_between(before: JobReading | None, after: JobReading) -> tuple[VertexRates, ...]:
    """What a job did between two readings; without the first one, and of tasks that began later, since they began."""
    earlier = {} if before is None else {task.key: task for task in before.tasks}
    by_vertex: dict[int, list[tuple[TaskReading | None, TaskReading]]] = {}
    for task in after.tasks:
        by_vertex.setdefault(task.vertex, []).append((earlier.get(task.key), task))
    return tuple(_vertex(vertex, by_vertex.get(vertex.id, ())) for vertex in after.vertices)


def _vertex(vertex: VertexName, tasks: Sequence[tuple[TaskReading | None, TaskReading]]) -> VertexRates:
    shares = {
        after.subtask: _shares(before, after) for before, after in tasks if after.alive_ns and not _still(before, after)
    }
    return VertexRates(vertex, shares, tuple(_operator(one, tasks) for one in vertex.operators))


def _still(before: TaskReading | None, after: TaskReading) -> bool:
    """Whether the task had ended before the first reading."""
    return after.is_over and before is not None and before.is_over


def _shares(before: TaskReading | None, after: TaskReading) -> Shares:
    alive = after.alive_ns - (0 if before is None else before.alive_ns)
    idle = after.idle_ns - (0 if before is None else before.idle_ns)
    blocked = after.back_pressured_ns - (0 if before is None else before.back_pressured_ns)
    whole = max(1, alive)
    return Shares(1000 * max(0, alive - idle - blocked) / whole, 1000 * idle / whole, 1000 * blocked / whole)


def _operator(name: OperatorName, tasks: Sequence[tuple[TaskReading | None, TaskReading]]) -> OperatorRates:
    records_in = records_out = 0
    in_per_second = out_per_second = 0.0
    arrived: list[int] = []
    left: list[int] = []
    states: list[int] = []
    for before, after in tasks:
        one = next((found for found in after.operators if found.node == name.id), None)
        if one is None:
            continue
        old = None if before is None else next((found for found in before.operators if found.node == name.id), None)
        seconds = max(1, after.alive_ns - (0 if before is None else before.alive_ns)) / _SECOND_NS
        records_in += one.records_in
        records_out += one.records_out
        if not _still(before, after):
            in_per_second += (one.records_in - (0 if old is None else old.records_in)) / seconds
            out_per_second += (one.records_out - (0 if old is None else old.records_out)) / seconds
        arrived.append(one.input_watermark_ms)
        left.append(one.output_watermark_ms)
        if one.state_bytes is not None:
            states.append(one.state_bytes)
    return OperatorRates(
        name,
        records_in,
        records_out,
        in_per_second,
        out_per_second,
        _lowest(arrived),
        _lowest(left),
        sum(states) if states else None,
    )


def _lowest(levels_ms: Sequence[int]) -> int | None:
    found = min(levels_ms, default=MIN_WATERMARK)
    return None if found <= MIN_WATERMARK else found
