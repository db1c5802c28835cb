"""OVER aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.expr import AggregateCall, Expr, Literal
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.over_specs import OverAggregateSpec, OverOrder
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.physical.nodes import two_phase_text
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext, named
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Updates, where_updated
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.lineage import call_text, placed, short, united
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class OverAggregate(Inner):
    """Aggregates over the rows up to each row; its input is an Exchange.

    Output: the input's columns, then one column per call, whose arguments are columns of the input and, behind them,
    ``constants``. Fields as of ``OverAggregateSpec``.
    """

    partition: tuple[int, ...]
    order: OverOrder
    order_index: int
    counts_rows: bool
    preceding: int | None
    calls: tuple[AggregateCall, ...]
    constants: tuple[Literal, ...] = ()
    nulls_last: bool = False

    @property
    def updates(self) -> bool:
        """Whether results of earlier rows change when others come before them."""
        return self.order is OverOrder.VALUES

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything where rows are ordered by values; rows that never change where they are by time."""
        return ALL if self.updates else INSERTS

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """By time a row leaves once."""
        return ALL if self.updates else INSERTS

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """The old rows, to take them out."""
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Rows that sort alike stand in order of arrival."""
        return True

    def upsert_keys(self) -> Keys:
        """Those of the input that hold the partition's columns."""
        partition = frozenset(self.partition)
        return frozenset(key for key in self.inputs[0].upsert_keys() if partition <= key)

    def window_columns(self) -> WindowColumns | None:
        """As in Flink, no window goes through."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The partition's columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.partition))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's columns, then the results."""
        columns = arriving[0].columns
        keys = sorted(columns[index] for index in self.partition)
        order = f"{columns[self.order_index]}{' NULLS LAST' if self.nulls_last else ''}"
        over = f" OVER ({', '.join([*keys, order, self._frame()])})"
        texts = (*columns, *self._constant_texts())
        asked = arriving[0].conditions
        results = (short(call_text(call, texts) + over) for call in self.calls)
        return Lineage((*columns, *results), united(asked, placed("BELOW OVER", asked)))

    def repeatable(self) -> bool:
        """Only by the clock answers differ."""
        return self.order is not OverOrder.PROCESSING_TIME

    def same_in_batch(self) -> bool:
        """Late rows are dropped here only."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """Rows of row time leave by watermark."""
        return MiniBatchMode.ROW_TIME if self.order is OverOrder.ROW_TIME else above

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As many as arrive."""
        return arriving[0]

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """A step a row and function."""
        return Cost(rows, sum(arriving) * max(len(self.calls), 1))

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def _constant_texts(self) -> tuple[str, ...]:
        printer = ExpressionPrinter(())
        return tuple(printer.print(constant) for constant in self.constants)

    def _frame(self) -> str:
        start = "UNBOUNDED" if self.preceding is None else str(self.preceding)
        return f"{'ROWS' if self.counts_rows else 'RANGE'} BETWEEN {start} PRECEDING AND CURRENT ROW"

    def attributes(self, infix: bool) -> Attributes:
        """Keys, order, frame, calls."""
        names = self.inputs[0].names
        texts = two_phase_text.call_texts(self.calls, [*names, *self._constant_texts()], retracting=False)
        partition = ", ".join(named(self.inputs[0], self.partition))
        return [
            *([("partitionBy", partition)] if self.partition else []),
            ("orderBy", f"{names[self.order_index]} ASC"),
            ("window", f" {self._frame()}"),
            ("select", ", ".join([*names, *texts])),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator."""
        return self._spec_of(OverAggregateSpec, self.calls, job)

    def _spec_of(
        self, kind: type[OverAggregateSpec], calls: tuple[AggregateCall, ...], job: JobContext
    ) -> OperatorSpec:
        source = self.inputs[0]
        return kind(
            self.partition,
            self.order,
            self.order_index,
            self.counts_rows,
            self.preceding,
            calls,
            self.constants,
            source.schema,
            self.schema,
            input_retracts=source.retracts,
            emit_update_before=self.emits_before,
            state_ttl_ms=job.state_ttl_ms(),
            nulls_last=self.nulls_last,
        )
