"""Aggregates with functions of Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.expr import AggregateCall, Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.python_specs import (
    PythonGroupAggregateSpec,
    PythonGroupTableAggregateSpec,
    PythonOverAggregateSpec,
    PythonSessionAggregateSpec,
    PythonWindowAggregateSpec,
)
from flowsql_core.graph.specs import OperatorSpec, WindowKind
from flowsql_core.record import record
from flowsql_planner.physical.aggregate_functions import refuse_count_of_several
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.aggregate import GroupAggregate
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext, named
from flowsql_planner.physical.nodes.group_window import GroupWindowAggregate
from flowsql_planner.physical.nodes.line import Attributes, group_by
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.physical.nodes.over import OverAggregate
from flowsql_planner.physical.nodes.python_calls import by_name, calls_by_name
from flowsql_planner.traits.changes import ALL, Modifies, Modify, Updates, where_updated
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.lineage import call_text, short
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class PythonGroupAggregate(GroupAggregate):
    """Unbounded aggregate with functions of Python, and built-in ones beside them; its input is an Exchange."""

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each change may make one, and nobody knows whether a function tells the order of its rows."""
        return observed or self.inputs[0].retracts

    def runs_in_phases(self, parallelism: int) -> bool:
        """Flink does not plan it so."""
        return False

    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator."""
        source = self.inputs[0]
        for call in self.calls:
            refuse_count_of_several(call)
        return PythonGroupAggregateSpec(
            self.grouping,
            calls_by_name(self.calls, job),
            source.schema,
            self.schema,
            input_retracts=source.retracts,
            emit_update_before=self.emits_before,
            state_ttl_ms=job.state_ttl_ms(self.state_ttl_ms),
        )


@record(kw_only=True)
class PythonGroupTableAggregate(Inner):
    """The rows that a Python table aggregate function makes of each group; its input is an Exchange."""

    grouping: tuple[int, ...]
    call: AggregateCall

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Rows of a group go before its new ones come."""
        return frozenset({Modify.INSERT, Modify.DELETE})

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """The old rows, to take them out."""
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each change may make one, and nobody knows whether a function tells the order of its rows."""
        return observed or self.inputs[0].retracts

    def upsert_keys(self) -> Keys:
        """A group has any number of rows."""
        return NO_KEYS

    def window_columns(self) -> WindowColumns | None:
        """A group is no window."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The grouping columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.grouping))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Keys, and fields of rows."""
        keys = tuple(arriving[0].columns[index] for index in self.grouping)
        rows = f"{call_text(self.call, arriving[0].columns)} PER ({', '.join(sorted(keys))})"
        fields = tuple(short(f"FIELD {i} OF {rows}") for i in range(len(self.schema) - len(keys)))
        return Lineage((*keys, *fields), arriving[0].conditions)

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def same_in_batch(self) -> bool:
        """The answer updates."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above."""
        return above

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Half as many as rows."""
        return max(arriving[0] * 0.5, 1.0)

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A step a row."""
        return Cost(rows, sum(arriving))

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """Keys and the call."""
        source = self.inputs[0]
        keys = named(source, self.grouping)
        text = two_phase_text.call_text(self.call, source.names, source.retracts)
        made = f"{text} AS ({', '.join(self.names[len(keys) :])})"
        return [*group_by(source.names, self.grouping), ("select", ", ".join([*keys, made]))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator."""
        source = self.inputs[0]
        return PythonGroupTableAggregateSpec(
            self.grouping,
            by_name(self.call, job),
            source.schema,
            self.schema,
            input_retracts=source.retracts,
            state_ttl_ms=job.state_ttl_ms(),
        )


@record(kw_only=True)
class PythonGroupWindowAggregate(GroupWindowAggregate):
    """Aggregate per key and group window with functions of Python, and built-in ones beside them.

    ``merges``: accumulators combine (``PythonWindowAggregateSpec``).
    """

    merges: bool = False

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Nobody knows whether a function tells the order of its rows."""
        return self.inputs[0].retracts

    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator of the window's kind."""
        source = self.inputs[0]
        session = self.window.kind is WindowKind.SESSION
        return (PythonSessionAggregateSpec if session else PythonWindowAggregateSpec)(
            self.grouping,
            calls_by_name(self.calls, job),
            self.window,
            self.properties,
            source.schema,
            self.schema,
            source.retracts,
            merges=self.merges,
        )


@record(kw_only=True)
class PythonOverAggregate(OverAggregate):
    """Functions of pandas over the rows up to each row; its input is an Exchange."""

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator."""
        return self._spec_of(PythonOverAggregateSpec, calls_by_name(self.calls, job), job)
