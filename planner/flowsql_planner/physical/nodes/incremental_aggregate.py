"""Distinct aggregates split by buckets whose buckets hand on what mini-batches change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_compute.functions.aggregate import is_mergeable
from flowsql_compute.functions.distinct_sets import local_set_columns, merged_columns
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.aggregate_specs import IncrementalGroupAggregateSpec, LocalSetAggregateSpec
from flowsql_core.graph.specs import GlobalGroupAggregateSpec, LocalGroupAggregateSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.aggregate import GroupAggregate, Phase
from flowsql_planner.physical.nodes.base import Connectors, JobContext
from flowsql_planner.physical.nodes.line import Line
from flowsql_planner.traits.changes import Modifies, Modify
from flowsql_planner.traits.monotonicity import Monotonicities, of_aggregate


@record(kw_only=True)
class IncrementalGroupAggregate(GroupAggregate):
    """Global over incremental over local; its input is an Exchange of rows with buckets.

    ``buckets``: columns of the input. ``calls`` are over the input, ``finals`` merge them over the buckets.
    """

    buckets: tuple[int, ...]
    finals: tuple[AggregateCall, ...]

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """As a final aggregate over partial results, which update."""
        return frozenset({Modify.INSERT, Modify.UPDATE, Modify.DELETE})

    def monotonicity(self) -> Monotonicities:
        """Of what merges the partial results."""
        return of_aggregate(len(self.grouping), self.finals)

    def lines(self, infix: bool = False) -> list[Line]:
        """Those of the phases."""
        source = self.inputs[0]
        phases = two_phase_text.Phases(source.names, self.grouping, self.calls, source.retracts)
        return list(two_phase_text.incremental_lines(phases, self.buckets, self.finals, self.mode, self.nets_changes()))

    def own_line(self, infix: bool = False) -> Line:
        """One aggregate of the rows with buckets, as which it runs where it does not run in phases."""
        return Line("GroupAggregate", tuple(self.attributes(infix)), self.mode, self.nets_changes())

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """All but the last, where a call keeps its values."""
        if self.runs_in_phases(parallelism):
            return ()
        return tuple(line.name for line in self.lines()[1:] if line.name != "Exchange")

    def runs_in_phases(self, parallelism: int) -> bool:
        """Where what buckets hand on can be merged: no value that others than DISTINCT calls would have to keep."""
        retracts = self.inputs[0].retracts
        return all(is_mergeable(replace(call, distinct=False), retracts) for call in self.calls)

    def phases(self, job: JobContext) -> tuple[Phase, ...]:
        """Local, incremental, global."""
        source = self.inputs[0]
        retracts = source.retracts
        global_line, _, incremental_line, _, local_line = self.lines(infix=True)
        grouping = (*self.grouping, *self.buckets)
        ttl_ms = job.state_ttl_ms(self.state_ttl_ms)
        columns = [source.schema[index] for index in grouping]
        output = local_set_columns(tuple(columns), source.schema, self.calls, retracts)
        local = LocalSetAggregateSpec(grouping, self.calls, source.schema, output, retracts)
        merged = merged_columns(tuple(columns[: len(self.grouping)]), self.calls, retracts)
        incremental = IncrementalGroupAggregateSpec(local, len(self.grouping), merged, job.mini_batch, ttl_ms)
        merging = GlobalGroupAggregateSpec(
            LocalGroupAggregateSpec(self.grouping, self.calls, source.schema, merged, retracts),
            self.schema,
            emit_update_before=self.emits_before,
            mini_batch=job.mini_batch,
            consolidate=not self.every_change,
            state_ttl_ms=ttl_ms,
        )
        return (
            Phase("Local", local_line.text(), local, output, None),
            Phase("", incremental_line.text(), incremental, merged, tuple(range(len(grouping)))),
            Phase("Global", global_line.text(), merging, self.schema, tuple(range(len(self.grouping)))),
        )
