"""GROUP BY in batch mode."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_compute.functions.aggregate import is_mergeable, local_columns
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.bounded_specs import (
    BoundedAggregateSpec,
    BoundedLocalAggregateSpec,
    PandasAggregateSpec,
    SortAggregateSpec,
)
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.aggregate import Phase
from flowsql_planner.physical.nodes.base import JobContext, named
from flowsql_planner.physical.nodes.bounded.base import BoundedNode
from flowsql_planner.physical.nodes.line import Attributes, Line, group_by
from flowsql_planner.physical.nodes.python_calls import calls_by_name
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.lineage import aggregated


@record(kw_only=True)
class BoundedAggregate(BoundedNode):
    """Groups of an Exchange: keys, then calls.

    ``sorts``: one group after the other, of rows in their order. ``two_phase``: Local and Final in the plan.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    sorts: bool = False
    two_phase: bool = False

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
        calls = two_phase_text.group_call_texts(self.calls, source.names)
        return [
            ("isMerge", "false"),
            *group_by(source.names, self.grouping),
            ("select", ", ".join([*named(source, self.grouping), *calls])),
        ]

    def lines(self, infix: bool = False) -> list[Line]:
        """One, or those of the phases; behind one that sorts the Sort that Flink plans."""
        phases = two_phase_text.Phases(self.inputs[0].names, self.grouping, self.calls, retracting=False)
        if self.two_phase:
            return list(two_phase_text.batch_lines(phases, self.sorts))
        return [self.own_line(infix), *two_phase_text.sort_line(phases.keys, self.sorts)]

    def lines_show_exchange(self) -> bool:
        """The phases show it."""
        return self.two_phase

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """A Sort is the aggregate's own, and a local aggregate does not run everywhere."""
        runs = self.runs_in_phases(parallelism)
        names = [line.name for line in self.lines()[1:] if line.name != "Exchange"]
        return ("Sort",) * ("Sort" in names) if runs else tuple(names)

    def runs_in_phases(self, parallelism: int) -> bool:
        """Whether the local half is an operator in a job of that parallelism: all rows of one task need none."""
        return parallelism > 1 and self.two_phase and all(is_mergeable(call, False) for call in self.calls)

    def local_line(self) -> Line:
        """The first phase; only where there are two."""
        return next(line for line in self.lines(infix=True) if line.name.startswith("Local"))

    def phases(self, job: JobContext) -> tuple[Phase, ...]:
        """The operators that it runs as; only where :meth:`runs_in_phases`."""
        source = self.inputs[0].schema
        output = local_columns(tuple(source[index] for index in self.grouping), self.calls, input_retracts=False)
        local = BoundedLocalAggregateSpec(self.grouping, self.calls, source, output)
        made = SortAggregateSpec if self.sorts else BoundedAggregateSpec
        merging = made(self.grouping, self.calls, source, self.schema, merges=True)
        return (
            Phase("Local", self.local_line().text(), local, output, None),
            Phase("", self.lines(infix=True)[0].text(), merging, self.schema, tuple(range(len(self.grouping)))),
        )

    def spec(self, job: JobContext) -> OperatorSpec:
        """Both phases in one operator."""
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
