"""GROUP BY with DISTINCT calls in batch mode: Flink's two aggregates, and what runs for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flowsql_compute.functions.aggregate import is_mergeable, local_columns
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.bounded_specs import (
    BoundedAggregateSpec,
    DistinctAggregateSpec,
    DistinctRowsSpec,
    DistinctValues,
    SortAggregateSpec,
)
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import BIGINT, INT, Column, Schema
from flowsql_planner.logical.rewrite import ref
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.aggregate import Phase
from flowsql_planner.physical.nodes.base import JobContext
from flowsql_planner.physical.nodes.bounded.aggregate import BoundedAggregate
from flowsql_planner.physical.nodes.calc import Calc, ExpandNode
from flowsql_planner.physical.nodes.line import Line


@record(kw_only=True)
class DistinctAggregate(BoundedAggregate):
    """Groups of an Exchange, some of whose ``calls`` see each value once.

    ``expand``, ``lower``, ``marked``, ``upper``: the nodes that Flink plans, outermost last. ``sets`` and ``set_of``:
    as of :class:`~flowsql_core.graph.bounded_specs.DistinctAggregateSpec`.
    """

    expand: ExpandNode | None
    lower: BoundedAggregate
    marked: Calc | None
    upper: BoundedAggregate
    sets: tuple[DistinctValues, ...]
    set_of: tuple[int, ...]

    def lines(self, infix: bool = False) -> list[Line]:
        """Flink's nodes, each with its Exchange and its Sort."""
        nodes = [*self._upper_lines(infix), *_grouped(self.lower, infix)]
        if self.expand is not None:
            nodes.append(self.expand.own_line(infix))
        return [replace(line, mode=INSERT_ONLY) for line in nodes]

    def _upper_lines(self, infix: bool) -> Iterator[Line]:
        """Marks are computed in front of the first phase; a Sort and an Exchange by keys ask nothing of them."""
        marks = [] if self.marked is None else [self.marked.own_line(infix)]
        upper = self.upper
        lines = _grouped(upper, infix)
        if self._stays():
            yield from (upper.own_line(infix), *marks, *two_phase_text.sort_line(upper_keys(upper), upper.sorts))
            return
        places = [place for place, line in enumerate(lines) if line.name.startswith("Local")]
        if not places:
            places = [0 if upper.grouping and not upper.sorts else len(lines) - 1]
        first = places[0] + 1
        yield from (*lines[:first], *marks, *lines[first:])

    def _stays(self) -> bool:
        """Whether rows are where the upper aggregate wants them: it has the keys of the lower one."""
        keys = [self.lower.schema[index].name for index in range(len(self.lower.grouping))]
        return self.expand is None and upper_keys(self.upper) == keys

    def lines_show_exchange(self) -> bool:
        """All of them."""
        return True

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """Everything runs in one operator where there is one task; else :meth:`phase_notes` tells."""
        if self.runs_in_phases(parallelism):
            return ()
        return tuple(line.name for line in self.lines()[1:] if line.name != "Exchange")

    def phase_notes(self) -> list[str]:
        """What runs where; only where :meth:`runs_in_phases`."""
        rows, values = self.lower.local_line(), self.lower.lines(infix=True)[0]
        inner = [] if self.marked is None else ["Calc"]
        inner.append(self.upper.local_line().name)
        notes = [f"{', '.join(inner)} {'run' if len(inner) > 1 else 'runs'} inside of {values.text()}"]
        if self.expand is not None:
            notes.append(f"Expand runs inside of {rows.text()}")
        if self.upper.sorts:
            notes.append(f"Sort runs inside of {self.upper.lines(infix=True)[0].text()}")
        if self.lower.sorts:
            notes += [f"{line.text()} finds groups by hash, without a Sort" for line in (values, rows)]
        return notes

    @property
    def _merged_input(self) -> Schema:
        """What the last phase aggregates: columns of the input, then those of each set, which are others to it."""
        source = self.inputs[0].schema
        return (*source, *self._values)

    @property
    def _values(self) -> Schema:
        """The columns of each set."""
        source = self.inputs[0].schema
        return tuple(
            Column(f"{source[column].name}${number}", source[column].type.as_nullable())
            for number, own in enumerate(self.sets)
            for column in own.columns
        )

    @property
    def _plain(self) -> tuple[AggregateCall, ...]:
        """The calls over what they see, columns of :attr:`_merged_input`."""
        merged = self._merged_input
        starts = [len(self.inputs[0].schema)]
        for own in self.sets:
            starts.append(starts[-1] + len(own.columns))
        return tuple(
            call
            if place < 0
            else replace(
                call,
                args=tuple(ref(merged, starts[place] + number) for number in range(len(call.args))),
                distinct=False,
                filter_index=None,
            )
            for call, place in zip(self.calls, self.set_of, strict=True)
        )

    def _merges(self) -> bool:
        return all(is_mergeable(call, False) for call in self._plain)

    def runs_in_phases(self, parallelism: int) -> bool:
        """Whether values are dealt out: in a job of that parallelism, where all calls merge."""
        return parallelism > 1 and self.upper.two_phase and self.lower.two_phase and self._merges()

    def phases(self, job: JobContext) -> tuple[Phase, ...]:
        """The operators that it runs as; only where :meth:`runs_in_phases`."""
        source = self.inputs[0].schema
        keys = tuple(source[index] for index in self.grouping)
        every = tuple(call for call, place in zip(self.calls, self.set_of, strict=True) if place < 0)
        values = self._values
        # A hash of a row's own columns: one number deals rows out faster than columns that are mostly NULL.
        marks = (Column("$e", INT.as_nullable(False)), Column("$hash", BIGINT.as_nullable(False)))
        accumulators = tuple(
            Column(column.name, column.type.as_nullable()) for column in local_columns((), every, input_retracts=False)
        )
        rows = (*keys, *values, *marks, *accumulators)
        partial = local_columns(keys, self._plain, input_retracts=False)
        final = SortAggregateSpec if self.sorts else BoundedAggregateSpec
        lower, upper = self.lower.lines(infix=True)[0], self.upper.lines(infix=True)[0]
        return (
            Phase(
                "Rows",
                self.lower.local_line().text(),
                DistinctRowsSpec(self.grouping, self.calls, self.sets, self.set_of, source, rows),
                rows,
                None,
            ),
            Phase(
                "Values",
                lower.text(),
                DistinctAggregateSpec(self.grouping, self.calls, self.sets, self.set_of, source, partial, merges=True),
                partial,
                (len(keys) + len(values) + 1,),
            ),
            Phase(
                "",
                upper.text(),
                final(self.grouping, self._plain, self._merged_input, self.schema, merges=True),
                self.schema,
                tuple(range(len(keys))),
            ),
        )

    def spec(self, job: JobContext) -> OperatorSpec:
        """All of it in one operator."""
        source = self.inputs[0].schema
        if self._merges():
            return DistinctAggregateSpec(self.grouping, self.calls, self.sets, self.set_of, source, self.schema)
        made = SortAggregateSpec if self.sorts else BoundedAggregateSpec
        return made(self.grouping, self.calls, source, self.schema)


def upper_keys(upper: BoundedAggregate) -> list[str]:
    """Names of the keys."""
    return [upper.inputs[0].names[index] for index in upper.grouping]


def _grouped(node: BoundedAggregate, infix: bool) -> list[Line]:
    """The lines of an aggregate and the Exchange that it stands on."""
    lines = node.lines(infix)
    if node.two_phase:
        return lines
    keys = [node.inputs[0].names[index] for index in node.grouping]
    return [*lines, two_phase_text.exchange_line(keys, INSERT_ONLY)]
