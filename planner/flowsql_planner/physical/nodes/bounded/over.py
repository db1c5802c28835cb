"""Window functions in batch mode."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.expr import AggregateCall, Literal
from flowsql_core.graph.bounded_specs import BoundedOverSpec, Distance, OverFrame, PandasOverSpec
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.base import JobContext, named
from flowsql_planner.physical.nodes.bounded.base import BoundedNode
from flowsql_planner.physical.nodes.line import Attributes, Line, order_text
from flowsql_planner.physical.nodes.python_calls import calls_by_name
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.lineage import call_text, short


@record(kw_only=True)
class BoundedOver(BoundedNode):
    """Window functions over one partitioning and order of an Exchange. Fields as of ``BoundedOverSpec``."""

    partition: tuple[int, ...]
    order: OrderKeys
    calls: tuple[AggregateCall, ...]
    frames: tuple[OverFrame | None, ...]
    constants: tuple[Literal, ...] = ()

    @property
    def title(self) -> str:
        """As in Flink."""
        return "OverAggregate"

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The partition's columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.partition))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's columns, then the results."""
        columns = arriving[0].columns
        keys = sorted(columns[index] for index in self.partition)
        texts = (*columns, *self._constant_texts())
        made = tuple(
            short(
                f"{call_text(call, texts)} OVER "
                f"({', '.join([*keys, order_text(columns, self.order), frame_text(frame, bool(self.order))])})"
            )
            for call, frame in zip(self.calls, self.frames, strict=True)
        )
        return Lineage((*columns, *made), arriving[0].conditions)

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As many as arrive."""
        return arriving[0]

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A step a row and function."""
        return Cost(rows, sum(arriving) * max(len(self.calls), 1))

    def _constant_texts(self) -> tuple[str, ...]:
        printer = ExpressionPrinter(())
        return tuple(printer.print(constant) for constant in self.constants)

    def frame_count(self) -> int:
        """How many different frames its calls have."""
        return len({frame_text(frame, bool(self.order)) for frame in self.frames})

    def lines(self, infix: bool = False) -> list[Line]:
        """The operator, and below it the Sort that Flink plans."""
        names = self.inputs[0].names
        keys = [f"{key} ASC" for key in named(self.inputs[0], self.partition)]
        if self.order:
            keys.append(order_text(names, self.order))
        sort = Line("Sort", (("orderBy", ", ".join(keys)),), INSERT_ONLY)
        return [self.own_line(infix), *([sort] if keys else [])]

    def idle_lines(self, parallelism: int) -> tuple[str, ...]:
        """The operator sorts by itself."""
        return tuple(line.name for line in self.lines()[1:])

    def attributes(self, infix: bool) -> Attributes:
        """Keys, order, and the calls of each frame."""
        source = self.inputs[0]
        texts = two_phase_text.call_texts(self.calls, [*source.names, *self._constant_texts()], retracting=False)
        by_frame: dict[str, list[str]] = {}
        for text, frame in zip(texts, self.frames, strict=True):
            by_frame.setdefault(frame_text(frame, bool(self.order)), []).append(text)
        shown: Attributes = [("partitionBy", ", ".join(named(source, self.partition)))] if self.partition else []
        if self.order:
            shown.append(("orderBy", order_text(source.names, self.order)))
        for number, (shown_frame, calls) in enumerate(by_frame.items()):
            shown.append((f"window#{number}", f"{', '.join(calls)} {shown_frame}"))
        shown.append(("select", ", ".join(self.names)))
        return shown

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator, which sorts by itself."""
        return BoundedOverSpec(
            self.partition, self.order, self.calls, self.frames, self.constants, self.inputs[0].schema, self.schema
        )


@record(kw_only=True)
class PandasOver(BoundedOver):
    """Functions of pandas alone."""

    @property
    def title(self) -> str:
        """As in Flink."""
        return "PythonOverAggregate"

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator, which sorts by itself."""
        calls = calls_by_name(self.calls, job)
        return PandasOverSpec(
            self.partition, self.order, calls, self.frames, self.constants, self.inputs[0].schema, self.schema
        )


def frame_text(frame: OverFrame | None, ordered: bool) -> str:
    """``ROWS BETWEEN 1 PRECEDING AND CURRENT ROW``; of functions without a frame what their default would be."""
    if frame is None:
        frame = OverFrame(False, None, 0 if ordered else None)
    unit = "ROWS" if frame.counts_rows else "RANGE"
    return f"{unit} BETWEEN {_bound(frame.start, 'PRECEDING')} AND {_bound(frame.end, 'FOLLOWING')}"


def _bound(distance: Distance, unbounded: str) -> str:
    if distance is None:
        return f"UNBOUNDED {unbounded}"
    if distance == 0:
        return "CURRENT ROW"
    return f"{abs(distance)} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"
