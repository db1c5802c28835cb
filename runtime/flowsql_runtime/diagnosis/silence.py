"""Why a job gives no rows: looked for from its sinks upwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flowsql_runtime.diagnosis.reasons.base import Finding, Reason
from flowsql_runtime.diagnosis.reasons.joins import EmptySide, NoMatch, NoPartner
from flowsql_runtime.diagnosis.reasons.rows import AllFiltered, AllLate
from flowsql_runtime.diagnosis.reasons.sources import AllSkipped, NoRowYet, Paused, WaitsForFiles
from flowsql_runtime.diagnosis.reasons.time import TimeHasNotCome
from flowsql_runtime.diagnosis.snapshot import JobNow, OperatorNow

#: Of one operator the first that applies is told: what is wrong for good stands before what time may bring.
REASONS: Final[tuple[Reason, ...]] = (
    AllSkipped(),
    AllFiltered(),
    AllLate(),
    EmptySide(),
    TimeHasNotCome(),
    NoMatch(),
    NoPartner(),
    Paused(),
    WaitsForFiles(),
    NoRowYet(),
)


def explain(job: JobNow) -> Finding | None:
    """Why a job has given nothing for a while; None where no reason is known, as while it computes."""
    fed = {one.node.id for key in job.inputs for one in job.feeding(key)}
    sinks = [one for key, one in job.operators.items() if key not in fed]
    for sink in sinks:
        if not sink.rows_in and (found := explain_operator(job, sink)) is not None:
            return found
    # Rows have come through before: what keeps others back, from the sinks on, then sources.
    for operator in reversed(list(job.operators.values())):
        for reason in REASONS:
            if reason.holds_later and (found := reason.of(job, operator, explain_operator)) is not None:
                return found
    return None


def explain_operator(job: JobNow, operator: OperatorNow) -> Finding | None:
    """Why an operator has given nothing."""
    for blocked in _blocked(job, operator):
        if blocked.is_busy:
            continue
        for reason in REASONS:
            if (found := reason.of(job, blocked, explain_operator)) is not None:
                return found
    return None


def _blocked(job: JobNow, operator: OperatorNow) -> Iterator[OperatorNow]:
    """Where rows end on their way to an operator: those that took some and gave none, and sources without any."""
    if operator.rows_out:
        return
    if operator.rows_in or operator.is_source:
        yield operator
        return
    for one in job.feeding(operator.node.id):
        yield from _blocked(job, one)
