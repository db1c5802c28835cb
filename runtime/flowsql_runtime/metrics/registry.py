"""Metrics of operators and tasks: plain integers that the owning thread adds to, read by anyone at any time.

Names are Flink's (``numRecordsIn`` ...). An update is one attribute addition per batch; rates and shares are computed
by the reader.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from flowsql_core.element import MIN_WATERMARK
from flowsql_core.graph.expectation import ExpectationCounts
from flowsql_runtime.metrics.checkpoints import CheckpointMetrics
from flowsql_runtime.metrics.told import Answer
from flowsql_runtime.metrics.waiting import WaitClock

Number = int | float
#: Rows that came behind the watermark that closed what they belong to (Flink's name).
LATE_DROPPED: Final = "numLateRecordsDropped"
#: Rows that sinks took (Flink's name).
RECORDS_SENT: Final = "numRecordsSend"


class Counter:
    """A number that grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, by: int = 1) -> None:
        """Add ``by``."""
        self.value += by


class Histogram:
    """The distribution of the last ``size`` values, by Flink's names (``p99``, ``stddev`` ...)."""

    __slots__ = ("_values", "count")

    def __init__(self, size: int) -> None:
        self._values: deque[int] = deque(maxlen=size)
        #: All values that ever came, forgotten ones included.
        self.count = 0

    def update(self, value: int) -> None:
        """Note a value (owning thread)."""
        self._values.append(value)
        self.count += 1

    def statistics(self) -> dict[str, Number]:
        """``count``, ``min``, ``max``, ``mean``, ``stddev`` and quantiles of what is kept (any thread)."""
        values = sorted(self._values.copy())
        if not values:
            return {"count": self.count}
        mean = sum(values) / len(values)
        spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1) if len(values) > 1 else 0.0
        found: dict[str, Number] = {
            "count": self.count,
            "min": values[0],
            "max": values[-1],
            "mean": mean,
            "stddev": math.sqrt(spread),
        }
        found.update((name, _quantile(values, share)) for name, share in QUANTILES)
        return found


#: Statistics of a histogram that are quantiles.
QUANTILES: Final = (
    ("median", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p98", 0.98),
    ("p99", 0.99),
    ("p999", 0.999),
)


def _quantile(values: list[int], share: float) -> float:
    """Of sorted values, interpolated at ``share * (n + 1)`` as Commons Math does, which Flink uses."""
    at = share * (len(values) + 1)
    below = int(at)
    if below < 1:
        return values[0]
    if below >= len(values):
        return values[-1]
    return values[below - 1] + (at - below) * (values[below] - values[below - 1])


class OperatorMetrics:
    """Metrics of one operator in one subtask. Written by its task only."""

    __slots__ = (
        "_counters",
        "_gauges",
        "_histograms",
        "accumulators",
        "expectations",
        "input_watermark_ms",
        "name",
        "node_id",
        "output_watermark_ms",
        "records_in",
        "records_out",
        "state_bytes",
        "subtask",
        "told",
        "where",
    )

    def __init__(self, name: str, subtask: int = 0, node_id: int = -1) -> None:
        self.name = name
        self.subtask = subtask
        #: The operator in the job graph.
        self.node_id = node_id
        self.records_in = 0
        self.records_out = 0
        self.input_watermark_ms = MIN_WATERMARK
        self.output_watermark_ms = MIN_WATERMARK
        #: Memory that its keyed state takes, as of a few inputs ago; None: it keeps none.
        self.state_bytes: int | None = None
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Callable[[], Number]] = {}
        self._histograms: dict[str, Histogram] = {}
        #: Job-wide sums that the program asks for when the job ended.
        self.accumulators: dict[str, int] = {}
        #: Counts of expectations of the table that is written behind this operator.
        self.expectations: list[ExpectationCounts] = []
        #: By counter of what was left out, the place of the first one.
        self.where: dict[str, Callable[[], str]] = {}
        #: How to ask the operator for what it keeps back and why, by kind (``told.py``).
        self.told: dict[type, Callable[[], Answer]] = {}

    def counter(self, name: str) -> Counter:
        """The counter under a name, made on first use (keep it: this is a dictionary lookup)."""
        return self._counters.setdefault(name, Counter())

    def count(self, name: str, by: int = 1) -> None:
        """Add to the counter under a name."""
        self.counter(name).value += by

    def lose(self, name: str, by: int, where: Callable[[], str]) -> None:
        """Add to the counter of what was left out; ``where`` tells the place of the first one, if somebody asks."""
        self.where.setdefault(name, where)
        self.count(name, by)

    def counted(self, name: str) -> int:
        """What a counter stands at; 0 where there is none."""
        found = self._counters.get(name)
        return 0 if found is None else found.value

    def gauge(self, name: str, read: Callable[[], Number]) -> None:
        """A value that is computed when somebody looks; ``read`` runs in the looker's thread."""
        self._gauges[name] = read

    def histogram(self, name: str, size: int) -> Histogram:
        """The histogram under a name, made on first use with room for ``size`` values."""
        return self._histograms.setdefault(name, Histogram(size))

    def histograms(self) -> dict[str, Histogram]:
        """All histograms by name."""
        return dict(self._histograms)

    def accumulate(self, name: str, by: int) -> None:
        """Add to a job-wide sum (``Job.accumulators``)."""
        self.accumulators[name] = self.accumulators.get(name, 0) + by

    def expectation(self, table: str, name: str) -> ExpectationCounts:
        """New counts of an expectation of a table; metrics ``expectation.<name>.passed``, ``.dropped``, ``.warned``."""
        self.expectations.append(ExpectationCounts(table, name))
        return self.expectations[-1]

    def values(self) -> dict[str, Number]:
        """All metrics by name, now."""
        found: dict[str, Number] = {
            "numRecordsIn": self.records_in,
            "numRecordsOut": self.records_out,
            "currentInputWatermark": self.input_watermark_ms,
            "currentOutputWatermark": self.output_watermark_ms,
        }
        if self.state_bytes is not None:
            found["stateBytes"] = self.state_bytes
        found.update((name, counter.value) for name, counter in list(self._counters.items()))
        found.update((name, read()) for name, read in list(self._gauges.items()))
        for counts in self.expectations:
            head = f"expectation.{counts.name}"
            found |= {
                f"{head}.passed": counts.passed,
                f"{head}.dropped": counts.dropped,
                f"{head}.warned": counts.warned,
            }
        return found


class TaskMetrics:
    """Metrics of one subtask: exchange volumes and where its time went."""

    __slots__ = (
        "back_pressured",
        "buffers_in",
        "buffers_out",
        "bytes_in",
        "bytes_out",
        "idle",
        "name",
        "operators",
        "started_ns",
        "stopped_ns",
        "subtask",
    )

    def __init__(self, name: str, subtask: int) -> None:
        self.name = name
        self.subtask = subtask
        self.operators: list[OperatorMetrics] = []
        self.buffers_in = 0
        self.buffers_out = 0
        self.bytes_in = 0
        self.bytes_out = 0
        #: Waits for input, and for room at the receivers.
        self.idle = WaitClock()
        self.back_pressured = WaitClock()
        self.started_ns = 0
        self.stopped_ns = 0

    def start(self) -> None:
        """The task begins to run."""
        self.started_ns = time.perf_counter_ns()

    def stop(self) -> None:
        """The task ended; shares stand still from here."""
        self.stopped_ns = time.perf_counter_ns()

    def times_ns(self) -> tuple[int, int, int]:
        """How long the task has been running, has been idle and has been back-pressured; waits under way included."""
        if not self.started_ns:
            return 0, 0, 0
        now_ns = self.stopped_ns or time.perf_counter_ns()
        return now_ns - self.started_ns, self.idle.until_ns(now_ns), self.back_pressured.until_ns(now_ns)

    def values(self) -> dict[str, Number]:
        """All metrics by name, now; the ``...MsPerSecond`` ones are averages over the task's life."""
        alive, idle, blocked = self.times_ns()
        busy = max(0, alive - idle - blocked) if self.started_ns else 0
        alive = max(1, alive)
        return {
            "numBuffersIn": self.buffers_in,
            "numBuffersOut": self.buffers_out,
            "numBytesIn": self.bytes_in,
            "numBytesOut": self.bytes_out,
            "idleTimeMsPerSecond": 1000 * idle / alive,
            "backPressuredTimeMsPerSecond": 1000 * blocked / alive,
            "busyTimeMsPerSecond": 1000 * busy / alive,
        }


class JobMetrics:
    """All tasks of a job."""

    def __init__(self) -> None:
        self.tasks: list[TaskMetrics] = []
        self.checkpoints = CheckpointMetrics()

    def operators(self) -> Iterator[OperatorMetrics]:
        """Every operator of every subtask."""
        for task in self.tasks:
            yield from task.operators

    def total(self, metric: str, operator: str | None = None) -> Number:
        """Sum of a metric over all operators, or over the subtasks of those called ``operator``."""
        return sum(
            found.values().get(metric, 0) for found in self.operators() if operator is None or found.name == operator
        )

    def any_lost(self) -> bool:
        """Whether some operator left something out."""
        return any(found.where or found.counted(LATE_DROPPED) for found in self.operators())

    def task_total(self, metric: str) -> Number:
        """Sum of a task metric (``numBytesOut`` ...) over all subtasks."""
        return sum(task.values().get(metric, 0) for task in self.tasks)

    def histograms(self) -> Mapping[str, Histogram]:
        """All histograms by name; operator and subtask stand in the names."""
        return {name: found for operator in self.operators() for name, found in operator.histograms().items()}

    def expectations(self) -> list[ExpectationCounts]:
        """Counts of each expectation of each table that the job writes, over all subtasks."""
        found: dict[tuple[str, str], ExpectationCounts] = {}
        for operator in self.operators():
            for counts in list(operator.expectations):
                key = counts.table, counts.name
                found.setdefault(key, ExpectationCounts(*key)).add(counts)
        return list(found.values())

    def accumulators(self) -> Mapping[str, int]:
        """Job-wide sums of what operators accumulated."""
        found: dict[str, int] = {}
        for operator in self.operators():
            for name, value in operator.accumulators.items():
                found[name] = found.get(name, 0) + value
        return found
