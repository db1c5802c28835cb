"""GROUP BY in batch mode."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.expr import AggregateCall
from flowsql_core.graph.bounded_specs import BoundedAggregateSpec, PandasAggregateSpec, SortAggregateSpec
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.base import JobContext, named
from flowsql_planner.physical.nodes.bounded.base import BoundedNode
from flowsql_planner.physical.nodes.line import Attributes, group_by
from flowsql_planner.physical.nodes.python_calls import calls_by_name
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.lineage import aggregated


@record(kw_only=True)
class BoundedAggregate(BoundedNode):
    """Groups of an Exchange: keys, then calls. ``sorts``: one group after the other, of rows in their order."""

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    sorts: bool = False

    @property
    def title(self) -> str:
        """As in Flink."""
        return "SortAggregate" if self.sorts else "HashAggregate"

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The grouping columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.grouping))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Keys and results."""
        return aggregated(arriving[0], self.grouping, self.calls)

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Half as many groups as rows."""
        return max(arriving[0] * 0.5, 1.0) if self.grouping else 1.0

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A step a row and function."""
        return Cost(rows, sum(arriving) * max(len(self.calls), 1))

    def attributes(self, infix: bool) -> Attributes:
        """Keys and calls."""
        source = self.inputs[0]
        calls = two_phase_text.call_texts(self.calls, source.names, retracting=False)
        return [
            ("isMerge", "false"),
            *group_by(source.names, self.grouping),
            ("select", ", ".join([*named(source, self.grouping), *calls])),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator."""
        made = SortAggregateSpec if self.sorts else BoundedAggregateSpec
        return made(self.grouping, self.calls, self.inputs[0].schema, self.schema)


@record(kw_only=True)
class PandasAggregate(BoundedAggregate):
    """Groups of an Exchange that functions of pandas see whole. ``order``: columns by which their rows are sorted."""

    order: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """As in Flink."""
        return "PythonGroupAggregate"

    def attributes(self, infix: bool) -> Attributes:
        """Keys and calls."""
        return BoundedAggregate.attributes(self, infix)[1:]

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator."""
        return PandasAggregateSpec(
            self.grouping, self.order, calls_by_name(self.calls, job), self.inputs[0].schema, self.schema
        )
