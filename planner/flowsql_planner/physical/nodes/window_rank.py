"""Top-N and deduplication of the rows of each window.

Source: Flink's ``StreamPhysicalWindowRank`` and ``StreamPhysicalWindowDeduplicate``.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from flowsql_core.errors import PlanError
from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import OrderKeys, WindowDeduplicateSpec, WindowRankSpec
from flowsql_core.graph.specs import OperatorSpec, WindowSpec
from flowsql_core.record import record
from flowsql_core.types.logical import is_proctime
from flowsql_planner.physical.nodes.base import Connectors, InsertOnly, JobContext, named
from flowsql_planner.physical.nodes.line import Attributes, order_text, window_text
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.physical.nodes.window import marks_below
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.lineage import placed, short, united
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class _WindowRanking(InsertOnly, ABC):
    """First rows of each partition of a window by an order; its input is an Exchange.

    ``window``: attached; ``partition`` has no column of it. ``first``, ``last``: places from 1.
    """

    window: WindowSpec
    partition: tuple[int, ...]
    order: OrderKeys
    first: int
    last: int
    numbered: bool = False

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Rows that sort alike stand in the order of their arrival."""
        return True

    def _keys(self) -> frozenset[int]:
        """The partition with the window's columns."""
        assert self.window.start_index is not None
        assert self.window.end_index is not None
        return frozenset(self.partition) | {self.window.start_index, self.window.end_index}

    def upsert_keys(self) -> Keys:
        """The partition and window of the one row that they have, else with the number."""
        if (self.first, self.last) == (1, 1) and not self.numbered:
            return frozenset({self._keys()})
        below = frozenset(key for key in self.inputs[0].upsert_keys() if frozenset(self.partition) <= key)
        return below | {self._keys() | {len(self.schema) - 1}} if self.numbered else below

    def window_columns(self) -> WindowColumns | None:
        """Those of the input, whose columns come first."""
        return self.inputs[0].window_columns()

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The partition's columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.partition))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's rows, some of them; the number depends on window, partition and order."""
        source = arriving[0]
        keys = ", ".join(sorted(source.columns[index] for index in self._keys()))
        place = f"ROW_NUMBER PER ({keys}) BY ({order_text(source.columns, self.order)})"
        number = (short(place),) if self.numbered else ()
        kept = (short(f"{place} FROM {self.first} TO {self.last}"),)
        below = placed("BELOW ROW_NUMBER", source.conditions)
        return Lineage((*source.columns, *number), united(source.conditions, kept, below))

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
        """Up to ``last`` rows of each partition."""
        return min(arriving[0], max(arriving[0] * 0.5, 1.0) * (self.last - self.first + 1))

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One look at each row."""
        return Cost(rows, sum(arriving))

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def _end(self, construct: str) -> int:
        """The column of window_end; PlanError in processing time, as in Flink."""
        if self.window.processing_time:
            raise PlanError("window-time", f"Processing time {construct} is not supported yet.", self.span)
        assert self.window.end_index is not None
        return self.window.end_index


@record(kw_only=True)
class WindowRank(_WindowRanking):
    """Top-N of each window."""

    def attributes(self, infix: bool) -> Attributes:
        """Window, places, keys, order, columns."""
        source = self.inputs[0]
        return [
            ("window", window_text(self.window, source.names)),
            ("rankType", "ROW_NUMBER"),
            ("rankRange", f"rankStart={self.first}, rankEnd={self.last}"),
            ("partitionBy", ", ".join(named(source, self.partition))),
            ("orderBy", order_text(source.names, self.order)),
            ("select", ", ".join(self.names)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """The best rows wait for the end of their window."""
        return WindowRankSpec(
            self.partition,
            self.order,
            self._end("Window TopN"),
            self.first,
            self.last,
            self.numbered,
            self.inputs[0].schema,
            self.schema,
            self.window.zone,
        )


@record(kw_only=True)
class WindowDeduplicate(_WindowRanking):
    """First or last row of each window by a time attribute."""

    def attributes(self, infix: bool) -> Attributes:
        """Window, which row, keys, order."""
        source = self.inputs[0]
        index, descending, _ = self.order[0]
        return [
            ("window", window_text(self.window, source.names)),
            ("keep", "LastRow" if descending else "FirstRow"),
            ("partitionKeys", ", ".join(named(source, self.partition))),
            ("orderKey", source.names[index]),
            ("order", "PROCTIME" if is_proctime(source.schema[index].type) else "ROWTIME"),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """One row waits for the end of its window."""
        end = self._end("Window deduplication")
        index, descending, _ = self.order[0]
        if is_proctime(self.inputs[0].schema[index].type):
            raise PlanError("window-time", "Processing time Window deduplication is not supported yet.", self.span)
        return WindowDeduplicateSpec(self.partition, index, descending, end, self.inputs[0].schema, self.window.zone)
