"""Aggregates with functions of Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.errors import BindError
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.python_specs import PythonGroupAggregateSpec
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.python_call import aggregate_options, aggregated_with
from flowsql_core.record import record
from flowsql_planner.physical.nodes.aggregate import GroupAggregate
from flowsql_planner.physical.nodes.base import Connectors, JobContext


def by_name(call: AggregateCall, job: JobContext) -> AggregateCall:
    """The call without its function's object, which goes into the job's resources if no text can name it."""
    function = aggregated_with(call)
    if function is None:
        return call
    if function.path is None and function.source is None:
        job.resources[function.key] = function.function
    return replace(call, options=aggregate_options(replace(function, function=None)))


@record(kw_only=True)
class PythonGroupAggregate(GroupAggregate):
    """Unbounded aggregate with functions of Python, and built-in ones beside them; its input is an Exchange."""

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each change may make one, and nobody knows whether a function tells the order of its rows."""
        return observed or self.inputs[0].retracts

    def runs_in_two_phases(self, parallelism: int) -> bool:
        """Flink does not plan it so."""
        return False

    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator."""
        source = self.inputs[0]
        for call in self.calls:
            if call.distinct and call.function == "COUNT" and len(call.args) > 1:
                raise BindError(
                    "distinct-count",
                    "COUNT(DISTINCT ...) of several columns is not possible in streaming.",
                    call.span,
                    "COUNT(DISTINCT ROW(a, b)) counts pairs",
                )
        return PythonGroupAggregateSpec(
            self.grouping,
            calls_by_name(self.calls, job),
            source.schema,
            self.schema,
            input_retracts=source.retracts,
            emit_update_before=self.emits_before,
            state_ttl_ms=job.state_ttl_ms(self.state_ttl_ms),
        )


def calls_by_name(calls: Sequence[AggregateCall], job: JobContext) -> tuple[AggregateCall, ...]:
    """:func:`by_name` of each."""
    return tuple(by_name(call, job) for call in calls)
