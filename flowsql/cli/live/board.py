"""Running jobs between two looks at them: rows a second, shares of time, how far event time is, state, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from flowsql.jobs.everywhere import Observed, observed_jobs
from flowsql.jobs.job_info import JobInfo
from flowsql_core.record import record
from flowsql_core.types.logical import BIGINT, DOUBLE, STRING, Column
from flowsql_runtime.diagnosis.words import moment_text
from flowsql_runtime.metrics.readings import JobReading, OperatorRates, VertexRates, rates_between, total_bytes
from flowsql_runtime.metrics.volumes import size_text

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.errors import FlowSqlError

_SECONDS_MS: Final = 1000
#: What stands where nothing is known.
NOTHING: Final = "-"


@record
class JobNow:
    """A job and what it did since the look before. ``vertices``: none where its tasks are not in its process."""

    info: JobInfo
    now_ms: int
    vertices: tuple[VertexRates, ...]
    checkpoints: Mapping[str, int | str]

    @property
    def in_per_second(self) -> float | None:
        """Rows that its sources gave."""
        return self._sum("out_per_second", "is_source")

    @property
    def out_per_second(self) -> float | None:
        """Rows that its sinks took."""
        return self._sum("in_per_second", "is_sink")

    @property
    def state_bytes(self) -> int | None:
        """Memory of its state."""
        return total_bytes(one for vertex in self.vertices for one in vertex.operators)

    @property
    def uptime_ms(self) -> int:
        """How long it has been running, or did."""
        return self.info.duration_ms(self.now_ms)

    def _sum(self, what: str, of: str) -> float | None:
        if not self.vertices:
            return None
        operators = (one for vertex in self.vertices for one in vertex.operators)
        return float(sum(getattr(one, what) for one in operators if getattr(one.operator, of)))

    def to_json(self) -> dict[str, Any]:
        """All of it as objects of JSON, by Flink's names."""
        return {
            **self.info.to_json(),
            "uptime": self.uptime_ms,
            "numRecordsInPerSecond": _rounded(self.in_per_second),
            "numRecordsOutPerSecond": _rounded(self.out_per_second),
            "stateBytes": self.state_bytes,
            "checkpoints": dict(self.checkpoints),
            "vertices": [
                {
                    "id": one.vertex.id,
                    "name": one.vertex.name,
                    "parallelism": one.vertex.parallelism,
                    **({} if one.mean is None else one.mean.values()),
                    "subtasks": [{"subtask": number, **of.values()} for number, of in sorted(one.shares.items())],
                    "operators": [
                        {
                            "id": operator.operator.id,
                            "uid": operator.operator.uid,
                            "name": operator.operator.name,
                            **operator.values(self.now_ms),
                        }
                        for operator in one.operators
                    ],
                }
                for one in self.vertices
            ],
        }


class Observer:
    """Looks at jobs again and again; what they did is counted between two looks.

    Args:
        job_id: the one job to look at; None: all that run.
    """

    def __init__(self, job_id: str | None = None) -> None:
        self._job_id = job_id
        self._before: dict[str, JobReading] = {}
        #: What kept processes from answering at the last look.
        self.troubles: Sequence[FlowSqlError] = ()

    def look(self) -> list[JobNow]:
        """The jobs now, the newest first; of a first look since they began.

        Raises:
            FlowSqlError: nobody knows the one job.
        """
        found, self.troubles = observed_jobs(self._job_id)
        jobs = [self._now(one) for one in found]
        self._before = {one.info.id: one.reading for one in found if one.reading is not None}
        return jobs

    def _now(self, one: Observed) -> JobNow:
        if one.reading is None:
            return JobNow(one.info, time.time_ns() // 1_000_000, (), {})
        rates = rates_between(self._before.get(one.info.id), one.reading) if one.reading.tasks else ()
        return JobNow(one.info, one.reading.now_ms, rates, one.reading.checkpoints)


# -- texts


def rate_text(rate: float | None) -> str:
    """Rows a second: ``1,234``; below ten with a fraction."""
    if rate is None:
        return NOTHING
    return f"{rate:,.1f}" if 0 < rate < 9.95 else f"{rate:,.0f}"


def span_text(span_ms: int | None) -> str:
    """A time as its two largest units: ``850 ms``, ``12.3 s``, ``4 min 5 s``, ``3 h 12 min``, ``2 d 3 h``."""
    if span_ms is None:
        return NOTHING
    if span_ms < 0:
        return f"-{span_text(-span_ms)}"
    if span_ms < _SECONDS_MS:
        return f"{span_ms} ms"
    seconds = span_ms // _SECONDS_MS
    if seconds < 60:
        return f"{span_ms / _SECONDS_MS:.1f} s"
    for unit, smaller, size in (("min", "s", 60), ("h", "min", 3600)):
        if seconds < size * (60 if unit == "min" else 24):
            return f"{seconds // size} {unit} {seconds % size // (size // 60)} {smaller}"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3600} h"


def bytes_text(count: int | None) -> str:
    """``12.3 MB``."""
    return NOTHING if count is None else size_text(count)


def percent_text(ms_per_second: float | None) -> str:
    """A share of time in percent."""
    return NOTHING if ms_per_second is None else f"{ms_per_second / 10:.0f}%"


def watermark_text(watermark_ms: int | None) -> str:
    """Event time in the notation of timestamps."""
    return NOTHING if watermark_ms is None else moment_text(watermark_ms)


def checkpoint_text(job: JobNow) -> str:
    """``#12, 35 ms, 1.2 MB``: the last one that completed, with all of its state."""
    found = job.checkpoints
    if "lastCompletedCheckpointId" not in found:
        return NOTHING
    took, size = int(found["lastCheckpointDuration"]), int(found["lastCheckpointFullSize"])
    return f"#{found['lastCompletedCheckpointId']}, {span_text(took)}, {size_text(size)}"


# -- tables


JOB_TITLES: Final = ("job", "id", "state", "uptime", "rows/s in", "rows/s out", "restarts", "checkpoint", "state size")


def job_texts(job: JobNow) -> tuple[str, ...]:
    """A job as it is shown, one text for each of :data:`JOB_TITLES`."""
    return (
        job.info.name,
        job.info.id,
        job.info.status,
        span_text(job.uptime_ms),
        rate_text(job.in_per_second),
        rate_text(job.out_per_second),
        str(job.info.restarts),
        checkpoint_text(job),
        bytes_text(job.state_bytes),
    )


OPERATOR_TITLES: Final = (
    "operator", "par", "rows/s in", "rows/s out", "busy", "idle", "back-pr", "watermark", "lag", "state size",
)  # fmt: skip


def operator_texts(job: JobNow) -> list[tuple[str, ...]]:
    """The operators of a job, one text for each of :data:`OPERATOR_TITLES`; shares stand at the head of each task."""
    return [
        (
            f"{one.operator.id} {one.operator.name}",
            str(vertex.vertex.parallelism) if place == 0 else "",
            rate_text(None if one.operator.is_source else one.in_per_second),
            rate_text(None if one.operator.is_sink else one.out_per_second),
            *(_share_texts(vertex) if place == 0 else ("", "", "")),
            watermark_text(one.watermark_ms),
            span_text(one.lag_ms(job.now_ms)),
            bytes_text(one.state_bytes),
        )
        for vertex in job.vertices
        for place, one in enumerate(vertex.operators)
    ]


def _share_texts(vertex: VertexRates) -> tuple[str, str, str]:
    mean = vertex.mean
    if mean is None:
        return NOTHING, NOTHING, NOTHING
    return percent_text(mean.busy), percent_text(mean.idle), percent_text(mean.back_pressured)


def jobs_table(jobs: Sequence[JobNow], for_people: bool) -> TableResult:
    """Jobs as a listing: texts for people, numbers for programs (milliseconds, bytes)."""
    from flowsql.table.table_result import listing

    if for_people:
        return listing(tuple(Column(title, STRING) for title in JOB_TITLES), [job_texts(job) for job in jobs])
    rows = [
        (
            job.info.id,
            job.info.name,
            job.info.status,
            job.info.process,
            job.uptime_ms,
            job.info.restarts,
            _rounded(job.in_per_second),
            _rounded(job.out_per_second),
            *(
                job.checkpoints.get(name)
                for name in ("lastCompletedCheckpointId", "lastCheckpointDuration", "lastCheckpointFullSize")
            ),
            job.state_bytes,
        )
        for job in jobs
    ]
    return listing(_JOB_COLUMNS, rows)


def operators_table(job: JobNow, for_people: bool) -> TableResult:
    """The operators of a job, likewise."""
    from flowsql.table.table_result import listing

    if for_people:
        return listing(tuple(Column(title, STRING) for title in OPERATOR_TITLES), operator_texts(job))
    return listing(
        _OPERATOR_COLUMNS, [_operator_row(job, vertex, one) for vertex in job.vertices for one in vertex.operators]
    )


_JOB_COLUMNS: Final = (
    *(Column(name, STRING) for name in ("id", "name", "status")),
    *(Column(name, BIGINT) for name in ("process", "uptime", "numRestarts")),
    *(Column(name, DOUBLE) for name in ("numRecordsInPerSecond", "numRecordsOutPerSecond")),
    *(
        Column(name, BIGINT)
        for name in ("lastCompletedCheckpointId", "lastCheckpointDuration", "lastCheckpointFullSize", "stateBytes")
    ),
)
_OPERATOR_COLUMNS: Final = (
    *(Column(name, BIGINT) for name in ("vertex", "parallelism", "id")),
    *(Column(name, STRING) for name in ("uid", "name")),
    *(
        Column(name, DOUBLE)
        for name in (
            "numRecordsInPerSecond",
            "numRecordsOutPerSecond",
            "busyTimeMsPerSecond",
            "idleTimeMsPerSecond",
            "backPressuredTimeMsPerSecond",
        )
    ),
    *(Column(name, BIGINT) for name in ("currentWatermark", "watermarkLag", "stateBytes")),
)


def _operator_row(job: JobNow, vertex: VertexRates, one: OperatorRates) -> tuple[Any, ...]:
    mean = vertex.mean
    return (
        vertex.vertex.id,
        vertex.vertex.parallelism,
        one.operator.id,
        one.operator.uid,
        one.operator.name,
        _rounded(one.in_per_second),
        _rounded(one.out_per_second),
        *((None, None, None) if mean is None else mean.values().values()),
        one.watermark_ms,
        one.lag_ms(job.now_ms),
        one.state_bytes,
    )


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)
