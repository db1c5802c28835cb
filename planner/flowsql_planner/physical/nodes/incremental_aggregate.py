"""Distinct aggregates split by buckets whose buckets hand on what mini-batches change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from flowsql_compute.functions.aggregate import is_mergeable
from flowsql_compute.functions.distinct_sets import local_set_columns, merged_columns
from flowsql_core.expr import AggregateCall, Call, Expr, InputRef, Literal, transform
from flowsql_core.graph.aggregate_specs import IncrementalGroupAggregateSpec, LocalSetAggregateSpec
from flowsql_core.graph.specs import GlobalGroupAggregateSpec, LocalGroupAggregateSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.aggregate import GroupAggregate, Phase
from flowsql_planner.physical.nodes.base import Connectors, JobContext, Physical
from flowsql_planner.physical.nodes.calc import Calc, ExpandNode
from flowsql_planner.physical.nodes.line import Line
from flowsql_planner.traits.changes import Modifies, Modify
from flowsql_planner.traits.monotonicity import Monotonicities, of_aggregate


@record(kw_only=True)
class IncrementalGroupAggregate(GroupAggregate):
    """Global over incremental over local; its input is an Exchange of rows with buckets.

    ``buckets``: columns of the input. ``copied``: whether the input has each row once for each set of arguments.
    ``calls`` are over the input, ``finals`` merge them over the buckets. ``asked``: whether the program chose these
    phases by an option of its own.
    """

    buckets: tuple[int, ...]
    copied: bool
    finals: tuple[AggregateCall, ...]
    asked: bool

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """As a final aggregate over partial results, which update."""
        return frozenset({Modify.INSERT, Modify.UPDATE, Modify.DELETE})

    def monotonicity(self) -> Monotonicities:
        """Of what merges the partial results."""
        return of_aggregate(len(self.grouping), self.finals, self.summed_bounds)

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
        """Where the program asks for it, and what buckets hand on can be merged: no value that others than DISTINCT
        calls would have to keep.

        One operator takes a third to two thirds of the processor time of three (docs/adr/025).
        """
        retracts = self.inputs[0].retracts
        return self.asked and all(is_mergeable(replace(call, distinct=False), retracts) for call in self.calls)

    def together(self) -> GroupAggregate:
        """What one operator computes instead: over each row once, without buckets."""
        exchange = self.inputs[0]
        without = _without_copies if self.copied else _with_nothing_in
        rows = replace(exchange, inputs=(without(exchange.inputs[0], self.buckets),))
        same = {field.name: getattr(self, field.name) for field in fields(GroupAggregate) if field.init}
        return GroupAggregate(**{**same, "inputs": (rows,), "two_phase": False})

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


def _without_copies(rows: Physical, buckets: Sequence[int]) -> Physical:
    """Rows as one operator needs them: not copied for each argument, and with nothing in the columns of buckets."""
    assert isinstance(rows, Calc)
    (expand,) = rows.inputs
    assert isinstance(expand, ExpandNode)
    copied = [
        next((expr for expr in copies if not _is_null(expr)), copies[0])
        for copies in zip(*expand.projections, strict=True)
    ]
    number = len(copied) - 1

    def of_one_copy(expr: Expr) -> Expr:
        match expr:
            case InputRef(index=index) if index != number:
                one: Expr = copied[index]
                return one
            case Call("=", (InputRef(index=index), Literal())) if index == number:
                return Literal(True, expr.type)
            case Call("AND", (Literal(value=True), InputRef() as own)):
                return own
        return expr

    projections = tuple(transform(expr, of_one_copy) for expr in rows.projections)
    below = _with_nothing_in(
        expand.inputs[0], [expr.index for expr in (copied[bucket] for bucket in buckets) if isinstance(expr, InputRef)]
    )
    return replace(rows, inputs=(below,), projections=projections)


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _with_nothing_in(rows: Physical, columns: Sequence[int]) -> Physical:
    """A projection that does not compute some of its columns, which nobody reads."""
    if type(rows) is not Calc:
        return rows
    types = {column: rows.schema[column].type for column in columns}
    projections = tuple(
        Literal(None if types[place].nullable else 0, types[place]) if place in types else expr
        for place, expr in enumerate(rows.projections)
    )
    return replace(rows, projections=projections)
