"""Windows: their columns appended to rows, and aggregates over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.expr import AggregateCall, Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import (
    OperatorSpec,
    WindowAggregateSpec,
    WindowKind,
    WindowProperty,
    WindowSpec,
    WindowTableFunctionSpec,
)
from flowsql_core.graph.window_specs import ChainedWindowSpec, SessionAggregateSpec, SessionTableFunctionSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext, Keyless, Physical, named
from flowsql_planner.physical.nodes.line import Attributes, Line, group_by, window_text
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Updates, where_updated
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.lineage import aggregated, short
from flowsql_planner.traits.window import WindowColumns, detached

_PROPERTY = {WindowProperty.START: "start", WindowProperty.END: "end", WindowProperty.TIME: "rowtime"}


def refuse_session(window: WindowSpec, node: Physical) -> None:
    """NotSupportedYetError for SESSION windows."""
    if window.kind is WindowKind.SESSION:
        raise NotSupportedYetError("SESSION windows", node.span)


def marks_below(window: WindowSpec, above: MiniBatchMode) -> MiniBatchMode:
    """Windows of row time fire by watermark, and so do mini-batches below them."""
    return above if window.processing_time else MiniBatchMode.ROW_TIME


@record(kw_only=True)
class WindowTableFunctionNode(Keyless):
    """Appends window_start, window_end, window_time."""

    window: WindowSpec
    partition: tuple[int, ...] = ()

    def window_columns(self) -> WindowColumns | None:
        """The three last columns."""
        width = len(self.inputs[0].schema)
        start, end, time = (frozenset({width + place}) for place in range(3))
        keys = tuple(frozenset({key}) for key in self.partition)
        return WindowColumns(detached(self.window), start, end, time, keys)

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's columns, and the window's."""
        window = window_text(self.window, arriving[0].columns, self.partition)
        added = tuple(short(f"{role.value} OF {window}") for role in _PROPERTY)
        return Lineage((*arriving[0].columns, *added), arriving[0].conditions)

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """What sessions are by."""
        return tuple(sorted(arriving[0].columns[index] for index in self.partition))

    def same_in_batch(self) -> bool:
        """Row by row; sessions are refused before."""
        return True

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """By the window's time."""
        return marks_below(self.window, above)

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Each row once per window that it is in."""
        return arriving[0] * max(self.window.size_ms // max(self.window.step_ms, 1), 1)

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The window."""
        return [("window", window_text(self.window, self.inputs[0].names, self.partition))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Row by row; the rows of a session together."""
        if self.window.kind is WindowKind.SESSION:
            return SessionTableFunctionSpec(self.partition, self.window, self.inputs[0].schema, self.schema)
        return WindowTableFunctionSpec(self.window, self.inputs[0].schema, self.schema)


def _refuse_distinct(calls: Sequence[AggregateCall]) -> None:
    """HOP over rows that are never taken back: what Flink's aggregate of slices lacks."""
    for call in calls:
        if call.distinct and call.function in ("SUM", "LISTAGG"):
            raise PlanError(
                "window-distinct",
                f"{call.function}(DISTINCT ...) in HOP: This function does not support retraction"
                f"{', Please choose SumWithRetractAggFunction' * (call.function == 'SUM')}.",
                call.span,
                "TUMBLE and CUMULATE take it, and so does GROUP BY HOP(...)",
            )


@record(kw_only=True)
class WindowAggregate(Inner):
    """Aggregate per key and window; its input is an Exchange.

    Output: grouping, calls, then ``properties`` (name the columns of the schema). ``two_phase``: Local and Global in
    Flink's plan; one operator runs.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: WindowSpec
    properties: tuple[WindowProperty, ...]
    partition: tuple[int, ...] = ()
    two_phase: bool = False

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """A window's result leaves once."""
        return INSERTS

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """The old rows, to take them out."""
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """A window answers with what is there when the watermark passes it: changes behind that are late."""
        return self.inputs[0].retracts

    def upsert_keys(self) -> Keys:
        """The grouping together with any one of the window's columns; many cumulating windows have one start.

        In Flink the start is a key of these, too, and a join keeps one of their rows.
        """
        base = len(self.grouping) + len(self.calls)
        groups = frozenset(range(len(self.grouping)))
        shared = WindowProperty.START if self.window.kind is WindowKind.CUMULATE else None
        return frozenset(groups | {base + i} for i, role in enumerate(self.properties) if role is not shared)

    def window_columns(self) -> WindowColumns | None:
        """The properties."""
        base = len(self.grouping) + len(self.calls)

        def of(role: WindowProperty) -> frozenset[int]:
            return frozenset(base + i for i, name in enumerate(self.properties) if name is role)

        keys = tuple(frozenset({self.grouping.index(key)}) for key in self.partition)
        start, end, time = of(WindowProperty.START), of(WindowProperty.END), of(WindowProperty.TIME)
        return WindowColumns(detached(self.window), start, end, time, keys)

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The grouping columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.grouping))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Keys, results, and the window's columns."""
        window = window_text(self.window, arriving[0].columns)
        made = aggregated(arriving[0], self.grouping, self.calls, window)
        properties = tuple(short(f"{role.value} OF {window}") for role in self.properties)
        return Lineage((*made.columns, *properties), made.conditions)

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def same_in_batch(self) -> bool:
        """Late rows are dropped here only."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """By the window's time."""
        return marks_below(self.window, above)

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Half as many groups as rows."""
        return max(arriving[0] * 0.5, 1.0)

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A step a row and function."""
        return Cost(rows, sum(arriving) * max(len(self.calls), 1))

    def _property_texts(self) -> list[str]:
        base = len(self.grouping) + len(self.calls)
        texts = []
        for i, role in enumerate(self.properties):
            kind = "proctime" if role is WindowProperty.TIME and self.window.processing_time else _PROPERTY[role]
            texts.append(f"{kind}('w$) AS {self.schema[base + i].name}")
        return texts

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """Keys, window, calls."""
        source = self.inputs[0]
        calls = two_phase_text.call_texts(self.calls, source.names, source.retracts)
        selected = [*named(source, self.grouping), *calls, *self._property_texts()]
        return [
            *group_by(source.names, self.grouping),
            ("window", window_text(self.window, source.names, self.partition)),
            ("select", ", ".join(selected)),
        ]

    def lines(self, infix: bool = False) -> list[Line]:
        """One, or those of the phases."""
        if not self.two_phase:
            return [self.own_line(infix)]
        source = self.inputs[0]
        phases = two_phase_text.Phases(source.names, self.grouping, self.calls, source.retracts)
        return list(two_phase_text.window_lines(phases, self.window, self._property_texts(), self.mode, source.mode))

    def lines_show_exchange(self) -> bool:
        """The phases show it."""
        return self.two_phase

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """No window aggregate is cut in phases."""
        return ("LocalWindowAggregate",) if self.two_phase else ()

    def spec(self, job: JobContext) -> OperatorSpec:
        """Both phases in one operator."""
        source = self.inputs[0]
        # Rows that come with their session's bounds find no sessions any more.
        attached = self.window.end_index is not None
        finds = self.window.kind is WindowKind.SESSION and not attached
        chained = self.window.kind is WindowKind.HOP and not attached and source.retracts
        several = chained and self.window.step_ms < self.window.size_ms
        if self.window.kind is WindowKind.HOP and not attached and not source.retracts:
            _refuse_distinct(self.calls)
        made = ChainedWindowSpec if several else WindowAggregateSpec
        return (SessionAggregateSpec if finds else made)(
            self.grouping,
            self.calls,
            self.window,
            self.properties,
            source.schema,
            self.schema,
            input_retracts=source.retracts,
        )
