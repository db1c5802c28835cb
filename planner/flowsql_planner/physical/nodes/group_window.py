"""Aggregates over group windows: ``GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)``."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec, WindowAggregateSpec, WindowKind, WindowProperty, WindowSpec
from flowsql_core.graph.window_specs import CountWindowSpec, EmittingWindowSpec, SessionAggregateSpec
from flowsql_core.python_call import aggregated_with
from flowsql_core.record import record
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.base import Connectors, JobContext, named
from flowsql_planner.physical.nodes.line import Attributes, group_by
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.physical.nodes.python_calls import calls_by_name
from flowsql_planner.physical.nodes.window import WindowAggregate
from flowsql_planner.traits.changes import INSERTS, Modifies, Modify
from flowsql_planner.traits.lineage import aggregated, short
from flowsql_planner.traits.window import WindowColumns

_SHOWN = {
    WindowProperty.START: "start", WindowProperty.END: "end", WindowProperty.TIME: "rowtime",
    WindowProperty.PROCTIME: "proctime",
}  # fmt: skip


def group_window_text(window: WindowSpec, names: Sequence[str]) -> str:
    """A group window over a column of an input; of the clock without one."""
    at = "proctime" if window.time_index is None else names[window.time_index]
    match window.kind:
        case WindowKind.TUMBLE:
            return f"TumblingGroupWindow('w$, {at}, {window.size_ms})"
        case WindowKind.HOP:
            return f"SlidingGroupWindow('w$, {at}, {window.size_ms}, {window.step_ms})"
        case _:
            return f"SessionGroupWindow('w$, {at}, {window.size_ms})"


@record
class Emission:
    """When windows answer besides their end: before it (``early``), behind it (``late``).

    With each row where a delay is 0; else so long after the first row, and again and again.
    """

    early: bool = False
    late: bool = False
    lateness_ms: int = 0
    early_delay_ms: int = 0
    late_delay_ms: int = 0

    @property
    def updates(self) -> bool:
        """Whether an answer may change."""
        return self.early or self.late

    @property
    def text(self) -> str:
        """As plans show it."""
        answers = (("early", self.early, self.early_delay_ms), ("late", self.late, self.late_delay_ms))
        return ", ".join(
            f"{word} delay {delay_ms} millisecond" if delay_ms else f"{word} no delay"
            for word, on, delay_ms in answers
            if on
        )


@record(kw_only=True)
class GroupWindowAggregate(WindowAggregate):
    """Aggregate per key and group window; the same operators as a window table function's, and other lines."""

    emit: Emission = Emission()

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """None, as in Flink: each watermark arrives, and so more rows are late than in windows of table functions."""
        return MiniBatchMode.NONE

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Updates where windows answer more than once."""
        return INSERTS | {Modify.UPDATE} if self.emit.updates else INSERTS

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Where windows answer with each row, each change makes one."""
        return (observed and self.emit.updates) or super().observes_input(observed, connectors)

    def window_columns(self) -> WindowColumns | None:
        """None that other window aggregates would know."""
        return None

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Keys, results, and the window's properties."""
        window = group_window_text(self.window, arriving[0].columns)
        made = aggregated(arriving[0], self.grouping, self.calls, window)
        properties = tuple(short(f"{role.value} OF {window}") for role in self.properties)
        return Lineage((*made.columns, *properties), made.conditions)

    def attributes(self, infix: bool) -> Attributes:
        """Keys, window, properties, calls."""
        source = self.inputs[0]
        base = len(self.grouping) + len(self.calls)
        names = [self.schema[base + i].name for i in range(len(self.properties))]
        shown = [f"{_SHOWN[role]}('w$) AS {name}" for role, name in zip(self.properties, names, strict=True)]
        calls = two_phase_text.call_texts(self.calls, source.names, False)
        made: list[tuple[str, str]] = [
            *group_by(source.names, self.grouping),
            ("window", group_window_text(self.window, source.names)),
        ]
        if names:
            made.append(("properties", ", ".join(names)))
        made.append(("select", ", ".join([*named(source, self.grouping), *calls, *shown])))
        if self.emit.updates:
            made.append(("emit", self.emit.text))
        return made

    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator of the window's kind."""
        source = self.inputs[0]
        if self.emit.updates:
            return EmittingWindowSpec(
                self.grouping,
                self.calls,
                self.window,
                self.properties,
                source.schema,
                self.schema,
                source.retracts,
                early=self.emit.early,
                lateness_ms=self.emit.lateness_ms,
                emit_update_before=self.emits_before,
                early_delay_ms=self.emit.early_delay_ms,
                late_delay_ms=self.emit.late_delay_ms,
            )
        kind = SessionAggregateSpec if self.window.kind is WindowKind.SESSION else WindowAggregateSpec
        return kind(
            self.grouping, self.calls, self.window, self.properties, source.schema, self.schema, source.retracts
        )


@record(kw_only=True)
class CountWindowAggregate(GroupWindowAggregate):
    """Aggregate per key and window of a number of rows; lengths of ``window`` are rows."""

    @property
    def title(self) -> str:
        """As of windows of time; those with functions of Python have Flink's other name."""
        in_python = any(aggregated_with(call) is not None for call in self.calls)
        return "PythonGroupWindowAggregate" if in_python else "GroupWindowAggregate"

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Which rows are in a window is up to how many came before."""
        return True

    def repeatable(self) -> bool:
        """Rows count as they come."""
        return False

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Keys and results."""
        window = f"{group_window_text(self.window, arriving[0].columns)} ROWS"
        return aggregated(arriving[0], self.grouping, self.calls, window)

    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator."""
        source = self.inputs[0]
        return CountWindowSpec(
            self.grouping,
            calls_by_name(self.calls, job),
            self.window.size_ms,
            self.window.step_ms,
            source.schema,
            self.schema,
            source.retracts,
        )
