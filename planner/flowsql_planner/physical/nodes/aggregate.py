"""Unbounded aggregates.

A two-phase aggregate is one node (``two_phase``): EXPLAIN shows Flink's Local and Global halves, ``local_half`` says
whether they run.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from flowsql_compute.functions.aggregate import is_mergeable, local_columns
from flowsql_core.errors import InternalError
from flowsql_core.expr import AggregateCall, Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import (
    GlobalGroupAggregateSpec,
    GroupAggregateSpec,
    LocalGroupAggregateSpec,
    OperatorSpec,
)
from flowsql_core.python_call import aggregated_with, spoken_name
from flowsql_core.record import record
from flowsql_core.row import RowKind
from flowsql_core.types.logical import Schema
from flowsql_planner.physical.aggregate_functions import order_sensitive, refuse_count_of_several
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext, named
from flowsql_planner.physical.nodes.line import Attributes, Line, group_by
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, Modifies, Modify, Updates, where_updated
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.determinism import Columns, refuse_call
from flowsql_planner.traits.interval import Bounds
from flowsql_planner.traits.interval import of_aggregate as aggregate_bounds
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.lineage import aggregated
from flowsql_planner.traits.monotonicity import Monotonicities, of_aggregate
from flowsql_planner.traits.window import WindowColumns


class PartialFinal(enum.Enum):
    """The halves of a distinct aggregate that is split by buckets of its arguments."""

    PARTIAL = "PARTIAL"
    FINAL = "FINAL"


@record
class Phase:
    """An operator of an aggregate that runs as several.

    ``prefix``: of its id. ``keys``: columns that its rows are exchanged by; None where they stay in their task.
    """

    prefix: str
    name: str
    spec: OperatorSpec
    output: Schema
    keys: tuple[int, ...] | None


@record(kw_only=True)
class GroupAggregate(Inner):
    """Unbounded aggregate; its input is an Exchange.

    ``two_phase``: Local and Global in the plan. ``phase``: which of the two aggregates it is that stand for one.
    ``state_ttl_ms``: of a STATE_TTL hint, None for the option's value.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    two_phase: bool = False
    phase: PartialFinal | None = None
    mini_batch: bool = False
    state_ttl_ms: int | None = None

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Groups come and change; they go where rows do."""
        retracted = arriving[0] & {Modify.UPDATE, Modify.DELETE}
        made = {Modify.INSERT, Modify.UPDATE}
        return frozenset(made | {Modify.DELETE}) if retracted else frozenset(made)

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """The old rows, to take them out."""
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each change makes one, and some functions tell the order of their rows."""
        return observed or (any(map(order_sensitive, self.calls)) and self.inputs[0].retracts)

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """All of an input that updates. Of one that does not nothing, if only the functions give the same again."""
        for place, call in enumerate(self.calls):
            function = aggregated_with(call)
            index = len(self.grouping) + place
            if function is not None and not function.deterministic and index in required:
                refuse_call(self.names[index], spoken_name(function.name), call.span or self.span)
        return super().determined(required)

    def upsert_keys(self) -> Keys:
        """The grouping columns."""
        return frozenset({frozenset(range(len(self.grouping)))})

    def monotonicity(self) -> Monotonicities:
        """Keys stay; some functions only rise, or only fall, while rows come."""
        return of_aggregate(len(self.grouping), self.calls, self.summed_bounds)

    def summed_bounds(self, call: AggregateCall) -> Bounds:
        """Between which numbers the values lie that a call sums up."""
        source, column = self.inputs[0], call.args[0].index
        if call.filter_index is None:
            return source.bounds(column)
        return source.filtered_bounds(column, call.filter_index)

    def bounds(self, column: int) -> Bounds:
        """Of keys those of the input; counts and some sums have a lower end."""
        return aggregate_bounds(column, self.grouping, self.calls, self.inputs[0].bounds)

    def window_columns(self) -> WindowColumns | None:
        """A group is no window."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The grouping columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.grouping))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Keys and results."""
        return aggregated(arriving[0], self.grouping, self.calls)

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def same_in_batch(self) -> bool:
        """The answer updates."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above."""
        return above

    def waits_for_mini_batch(self) -> bool:
        """Where the options say so."""
        return self.mini_batch

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Half as many groups as rows."""
        return max(arriving[0] * 0.5, 1.0) if self.grouping else 1.0

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A step a row and function."""
        return Cost(rows, sum(arriving) * max(len(self.calls), 1))

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """Keys and calls."""
        names = self.inputs[0].names
        source = self.inputs[0]
        calls = two_phase_text.call_texts(self.calls, names, source.retracts, self._steady_extremes())
        phase = [] if self.phase is None else [("partialFinalType", self.phase.value)]
        return [
            *group_by(names, self.grouping),
            *phase,
            ("select", ", ".join([*named(self.inputs[0], self.grouping), *calls])),
        ]

    def nets_changes(self) -> bool:
        """Where only the table is looked at, one change a key and batch leaves the operator."""
        return not self.every_change and self.retracts

    def lines(self, infix: bool = False) -> list[Line]:
        """One, or those of the phases."""
        if not self.two_phase:
            return [self.own_line(infix)]
        source = self.inputs[0]
        phases = two_phase_text.Phases(
            source.names,
            self.grouping,
            self.calls,
            source.retracts,
            self._steady_extremes(),
            "" if self.phase is None else self.phase.value,
        )
        return list(two_phase_text.group_lines(phases, self.mode, self.nets_changes()))

    def _steady_extremes(self) -> bool:
        """Whether MIN and MAX are of partial results that are never taken back: they only fall, or only rise."""
        mode = self.inputs[0].mode
        return self.phase is PartialFinal.FINAL and mode is not None and not mode.contains(RowKind.DELETE)

    def lines_show_exchange(self) -> bool:
        """The phases show it."""
        return self.two_phase

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """What Flink splits and FlowSQL keeps together."""
        runs = self.runs_in_phases(parallelism)
        return tuple(
            line.name
            for line in self.lines()[1:]
            if line.name != "Exchange" and not (runs and line.name == "LocalGroupAggregate")
        )

    def runs_in_phases(self, parallelism: int) -> bool:
        """Whether the local half is an operator in a job of that parallelism: all rows of one task need none."""
        return parallelism > 1 and bool(self.grouping) and self.local_half() is not None

    def phases(self, job: JobContext) -> tuple[Phase, ...]:
        """The operators that it runs as; only where :meth:`runs_in_phases`."""
        local = self.local_half()
        if local is None:
            raise InternalError("an aggregate in two phases without a local one")
        lines = self.lines(infix=True)
        merging = self.global_half(local, job)
        keys = tuple(range(len(self.grouping)))
        return (
            Phase("Local", lines[-1].text(), local, local.output, None),
            Phase("", lines[0].text(), merging, self.schema, keys),
        )

    def spec(self, job: JobContext) -> OperatorSpec:
        """Both phases in one operator."""
        source = self.inputs[0]
        for call in self.calls:
            refuse_count_of_several(call)
        return GroupAggregateSpec(
            self.grouping,
            self.calls,
            source.schema,
            self.schema,
            input_retracts=source.retracts,
            emit_update_before=self.emits_before,
            mini_batch=job.mini_batch,
            consolidate=not self.every_change,
            state_ttl_ms=job.state_ttl_ms(self.state_ttl_ms),
        )

    def local_half(self) -> LocalGroupAggregateSpec | None:
        """The pre-aggregation of a two-phase aggregate; None where a call's partial results do not combine."""
        source = self.inputs[0]
        if not self.two_phase or not all(is_mergeable(call, source.retracts) for call in self.calls):
            return None
        keys = tuple(source.schema[index] for index in self.grouping)
        return LocalGroupAggregateSpec(
            self.grouping,
            self.calls,
            source.schema,
            local_columns(keys, self.calls, source.retracts),
            source.retracts,
        )

    def global_half(self, local: LocalGroupAggregateSpec, job: JobContext) -> GlobalGroupAggregateSpec:
        """What merges :meth:`local_half`."""
        return GlobalGroupAggregateSpec(
            local,
            self.schema,
            emit_update_before=self.emits_before,
            mini_batch=job.mini_batch,
            consolidate=not self.every_change,
            state_ttl_ms=job.state_ttl_ms(self.state_ttl_ms),
        )
