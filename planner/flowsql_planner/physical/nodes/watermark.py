"""What marks the passing of time: watermarks and the ends of mini-batches."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_core.config import AUTO_WATERMARK_INTERVAL_MS, parse_duration_ms
from flowsql_core.expr import Expr
from flowsql_core.graph.specs import (
    MiniBatchAssignerSpec,
    OperatorSpec,
    WatermarkAlignment,
    WatermarkAssignerSpec,
    WatermarkEmit,
)
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.physical.nodes.base import Connectors, JobContext, PassesThrough
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.physical.options import SOURCE_IDLE_TIMEOUT_MS
from flowsql_planner.traits.determinism import NONE, Columns
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class WatermarkAssignerNode(PassesThrough):
    """Makes watermarks from ``expression``."""

    rowtime_index: int
    expression: Expr
    options: tuple[tuple[str, str], ...] = ()

    def takes_key_deletes(self, place: int, above: bool, connectors: Connectors) -> bool:
        """As above: rows go on as they are."""
        return above

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """As asked: rows go on as they are."""
        return (required if self.inputs[0].retracts else NONE,)

    def window_columns(self) -> WindowColumns | None:
        """It stands on a table."""
        return None

    def same_in_batch(self) -> bool:
        """Rows are the same."""
        return True

    def expressions(self) -> tuple[Expr, ...]:
        """The watermark."""
        return (self.expression,)

    def attributes(self, infix: bool) -> Attributes:
        """The row time and its watermark."""
        printer = ExpressionPrinter(self.inputs[0].names, infix)
        return [("rowtime", self.names[self.rowtime_index]), ("watermark", printer.print(self.expression))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Options of the table go before those of the job."""
        options = dict(self.options)
        idle = options.get("scan.watermark.idle-timeout")
        emit = options.get("scan.watermark.emit.strategy")
        return WatermarkAssignerSpec(
            self.rowtime_index,
            self.names[self.rowtime_index],
            self.expression,
            job.configuration.get(AUTO_WATERMARK_INTERVAL_MS),
            job.configuration.get(SOURCE_IDLE_TIMEOUT_MS) if idle is None else parse_duration_ms(idle),
            WatermarkEmit(emit.strip().lower()) if emit is not None else WatermarkEmit.ON_PERIODIC,
            _alignment(options),
        )


def _alignment(options: Mapping[str, str]) -> WatermarkAlignment | None:
    group, drift = (options.get(f"scan.watermark.alignment.{name}") for name in ("group", "max-drift"))
    if group is None or drift is None:
        return None
    interval = options.get("scan.watermark.alignment.update-interval", "1 s")
    return WatermarkAlignment(group, parse_duration_ms(drift), parse_duration_ms(interval))


@record(kw_only=True)
class MiniBatchAssigner(PassesThrough):
    """Marks mini-batches for the operators above."""

    interval_ms: int
    kind: MiniBatchMode

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """As asked: rows go on as they are."""
        return (required if self.inputs[0].retracts else NONE,)

    def window_columns(self) -> WindowColumns | None:
        """Those of the input."""
        return self.inputs[0].window_columns()

    def same_in_batch(self) -> bool:
        """A bounded input is no stream of mini-batches."""
        return False

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """Interval and mode."""
        return [("interval", f"{self.interval_ms}ms"), ("mode", self.kind.value)]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Marks by the clock, or by watermarks."""
        return MiniBatchAssignerSpec(self.interval_ms, self.kind is MiniBatchMode.ROW_TIME)
