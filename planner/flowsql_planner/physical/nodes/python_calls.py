"""Aggregate calls of Python on their way into specs: the objects of their functions become resources of the job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.expr import AggregateCall
from flowsql_core.python_call import aggregate_options, aggregated_with
from flowsql_planner.physical.nodes.base import JobContext


def by_name(call: AggregateCall, job: JobContext) -> AggregateCall:
    """The call without its function's object, which goes into the job's resources if no text can name it."""
    function = aggregated_with(call)
    if function is None:
        return call
    if function.path is None and function.source is None:
        job.resources[function.key] = function.function
    return replace(call, options=aggregate_options(replace(function, function=None)))


def calls_by_name(calls: Sequence[AggregateCall], job: JobContext) -> tuple[AggregateCall, ...]:
    """:func:`by_name` of each."""
    return tuple(by_name(call, job) for call in calls)
