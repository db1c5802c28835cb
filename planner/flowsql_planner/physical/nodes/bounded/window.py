"""GROUP BY over group windows in batch mode: Flink's lines, over rows that have their windows as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flowsql_core.expr import InputRef
from flowsql_core.graph.specs import WindowKind
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.aggregate import Phase
from flowsql_planner.physical.nodes.base import JobContext, Physical, named
from flowsql_planner.physical.nodes.bounded.aggregate import BoundedAggregate
from flowsql_planner.physical.nodes.calc import Calc
from flowsql_planner.physical.nodes.group_window import group_window_text
from flowsql_planner.physical.nodes.line import Line
from flowsql_planner.physical.nodes.window import WindowTableFunctionNode

#: Columns that the window adds behind those of its rows.
WINDOW_COLUMNS = ("w$start", "w$end", "w$rowtime")


@record(kw_only=True)
class GroupWindowAggregate(BoundedAggregate):
    """Groups of an Exchange of a window table function: keys, the window's columns, then calls.

    ``asks_window``: the query asks for one of the columns. ``variable``: an accumulator has no fixed length.
    """

    asks_window: bool
    variable: bool

    @property
    def _rows(self) -> WindowTableFunctionNode:
        found = self.inputs[0].inputs[0]
        assert isinstance(found, WindowTableFunctionNode)
        return found

    def shown_inputs(self) -> tuple[Physical, ...]:
        """Flink's nodes find windows themselves."""
        return (self._rows.inputs[0],)

    def lines_show_exchange(self) -> bool:
        """They do, and what is shown below has none."""
        return True

    def is_all_of(self, calc: Calc) -> bool:
        """Whether a projection leaves out the window's columns alone, which Flink's node does not give."""
        keys = len(self.grouping)
        kept = [*range(keys - len(WINDOW_COLUMNS)), *range(keys, len(self.schema))]
        found = [expr.index if isinstance(expr, InputRef) else -1 for expr in calc.projections]
        return not self.asks_window and calc.condition is None and found == kept

    def lines(self, infix: bool = False) -> list[Line]:
        """One phase or two, with their Exchange and Sort."""
        return [Line(line.name, line.attributes, INSERT_ONLY) for line in self._lines()]

    def _lines(self) -> Iterator[Line]:
        source = self._rows.inputs[0]
        own = self.grouping[: -len(WINDOW_COLUMNS)]
        phases = two_phase_text.Phases(source.names, own, self.calls, retracting=False)
        window = self._rows.window
        assert window.time_index is not None
        time = source.names[window.time_index]
        # Flink's HashWindowAggregate of one phase has rows in one window.
        sorts = self.variable or (not self.two_phase and window.kind is WindowKind.HOP)
        kind = "SortWindowAggregate" if sorts else "HashWindowAggregate"
        shown = [("window", group_window_text(window, source.names))]
        if self.asks_window:
            shown.append(("properties", ", ".join(WINDOW_COLUMNS)))
        sort = two_phase_text.sort_line
        if not self.two_phase:
            calls = two_phase_text.call_texts(self.calls, source.names, retracting=False)
            select = ("select", ", ".join([*named(source, own), *calls]))
            yield Line(kind, (*phases.by, *shown, select), INSERT_ONLY)
            yield from sort([*phases.keys, time], sorts)
            yield two_phase_text.exchange_line(phases.keys, INSERT_ONLY)
            return
        lines = {line.name.removesuffix("Aggregate"): line for line in two_phase_text.batch_lines(phases, sorts=False)}
        yield _of_window(lines["Hash"], kind, shown)
        yield from sort([*phases.keys, "assignedWindow$"], sorts)
        yield lines["Exchange"]
        yield _of_window(lines["LocalHash"], f"Local{kind}", shown)
        yield from sort([*phases.keys, time], sorts)

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """:meth:`run_note` tells."""
        return ()

    def run_note(self, parallelism: int) -> str:
        """What runs for Flink's nodes."""
        lines = self._plain().lines(infix=True)
        made = [line.text() for line in lines if "Aggregate" in line.name]
        if not self.runs_in_phases(parallelism):
            made = [self._plain().own_line(infix=True).text()]
        names = ", ".join(line.name for line in self.lines() if "Aggregate" in line.name)
        return f"{names} run as {' over '.join([*made, self._rows.describe(infix=True)])}"

    def _plain(self) -> BoundedAggregate:
        """The aggregate of the window's columns."""
        return BoundedAggregate(
            inputs=self.inputs,
            schema=self.schema,
            grouping=self.grouping,
            calls=self.calls,
            sorts=self.sorts,
            two_phase=self.two_phase,
            span=self.span,
        )

    def phases(self, job: JobContext) -> tuple[Phase, ...]:
        """Those of the aggregate that runs."""
        return self._plain().phases(job)

    def local_line(self) -> Line:
        """The first phase as it runs."""
        return self._plain().local_line()


def _of_window(line: Line, name: str, shown: list[tuple[str, str]]) -> Line:
    """An aggregate's line as one over windows."""
    attributes = [part for part in line.attributes if part[0] != "isMerge"]
    place = len(attributes) - 1
    return replace(line, name=name, attributes=(*attributes[:place], *shown, *attributes[place:]))
