"""ORDER BY in batch mode, with or without LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.graph.bounded_specs import BoundedSortSpec
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes.base import JobContext
from flowsql_planner.physical.nodes.bounded.base import BoundedNode
from flowsql_planner.physical.nodes.line import Attributes, fetch_text, order_text
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.lineage import united


@record(kw_only=True)
class BoundedSort(BoundedNode):
    """Rows of an Exchange in order; ``limited``: those from ``offset`` on, ``fetch`` of them at most (None: all)."""

    order: OrderKeys
    limited: bool = False
    offset: int = 0
    fetch: int | None = None

    @property
    def title(self) -> str:
        """As in Flink."""
        return "SortLimit" if self.limited else "Sort"

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """None: all rows meet."""
        return ()

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's rows, or some of them."""
        taken = (" ".join(f"{key}={value}" for key, value in self.attributes(infix=False)),) if self.limited else ()
        return Lineage(arriving[0].columns, united(arriving[0].conditions, taken))

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As many as are fetched."""
        rest = max(arriving[0] - self.offset, 0.0)
        return rest if self.fetch is None else min(rest, float(self.fetch))

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """Rows are compared."""
        return Cost(rows, sum(arriving) * max(len(self.order), 1))

    def attributes(self, infix: bool) -> Attributes:
        """The order; of a limit also its rows."""
        shown: Attributes = [("orderBy", order_text(self.names, self.order))]
        if self.limited:
            shown += [("offset", str(self.offset)), ("fetch", fetch_text(self.fetch)), ("global", "true")]
        return shown

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator."""
        return BoundedSortSpec(self.order, self.inputs[0].schema, self.offset, self.fetch)
