"""Order and LIMIT."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.config import RUNTIME_MODE, RuntimeMode
from flowsql_core.errors import PlanError
from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import RankSpec, RankStrategy, SortSpec, TemporalSortSpec
from flowsql_core.graph.specs import LimitSpec, OperatorSpec
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import is_proctime
from flowsql_planner.physical.nodes.base import Connectors, JobContext, PassesThrough
from flowsql_planner.physical.nodes.line import Attributes, fetch_text, order_text
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.physical.options import NON_TEMPORAL_SORT
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Updates, where_updated
from flowsql_planner.traits.lineage import united
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class Limit(PassesThrough):
    """First rows by arrival."""

    offset: int
    fetch: int | None

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """A row that goes lets another one in."""
        return INSERTS if arriving[0] == INSERTS else ALL

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """The old rows."""
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Which rows come first is an order of changes."""
        return True

    def window_columns(self) -> WindowColumns | None:
        """No window goes through."""
        return None

    def same_in_batch(self) -> bool:
        """The first rows of a bounded input are as good as any."""
        return True

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As many as are fetched."""
        rest = max(arriving[0] - self.offset, 0.0)
        return rest if self.fetch is None else min(rest, float(self.fetch))

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """Some of the input's rows."""
        taken = " ".join(f"{key}={value}" for key, value in self.attributes(infix=False) if key != "strategy")
        return Lineage(arriving[0].columns, united(arriving[0].conditions, (taken,)))

    def attributes(self, infix: bool) -> Attributes:
        """Offset and fetch."""
        return [("offset", str(self.offset)), ("fetch", fetch_text(self.fetch))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """A counter; over updates the places of a Top-N without an order."""
        require_fetch(self.offset, self.fetch, job, self.span)
        source = self.inputs[0]
        if not source.retracts or self.fetch is None or not self.fetch:
            return LimitSpec(self.offset, self.fetch)
        return RankSpec(
            partition=(),
            order=(),
            first=self.offset + 1,
            last=self.offset + self.fetch,
            last_index=None,
            numbered=False,
            strategy=RankStrategy.RETRACT,
            unique=(),
            input=source.schema,
            output=self.schema,
            emit_update_before=self.emits_before,
            consolidate=not self.every_change,
            state_ttl_ms=job.state_ttl_ms(),
        )


def require_fetch(offset: int, fetch: int | None, job: JobContext, span: Span | None) -> None:
    """PlanError for an OFFSET without a LIMIT in streaming, as in Flink."""
    if fetch is not None or not offset:
        return
    if job.configuration.get(RUNTIME_MODE) is not RuntimeMode.BATCH:
        message = "FETCH is missed, which on streaming table is not supported currently."
        raise PlanError("fetch-missing", message, span, "OFFSET needs a LIMIT before it")


@record(kw_only=True)
class TemporalSort(PassesThrough):
    """Sort by a time attribute, ascending."""

    keys: tuple[tuple[int, bool, bool], ...]

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Rows that never change."""
        return INSERTS

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Rows that never change."""
        return INSERTS

    def window_columns(self) -> WindowColumns | None:
        """No window goes through."""
        return None

    def same_in_batch(self) -> bool:
        """Batch mode sorts by itself."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above: in Flink marks of processing time, too, let rows leave."""
        return above

    def waits_for_mini_batch(self) -> bool:
        """Rows wait for the next mark, of whatever time."""
        return True

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The order."""
        return [("orderBy", order_text(self.names, self.keys))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Rows wait for the watermark."""
        source = self.inputs[0]
        index = self.keys[0][0]
        return TemporalSortSpec(None if is_proctime(source.schema[index].type) else index, self.keys, source.schema)


@record(kw_only=True)
class SortNode(PassesThrough):
    """Sort by other columns: only where ``__table.exec.sort.non-temporal.enabled__`` says so."""

    keys: tuple[tuple[int, bool, bool], ...]

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Rows leave once, at the end."""
        return INSERTS

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """The old rows, to take them out."""
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Rows that sort alike stand in the order of their changes."""
        return True

    def window_columns(self) -> WindowColumns | None:
        """No window goes through."""
        return None

    def same_in_batch(self) -> bool:
        """Batch mode sorts by itself."""
        return False

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The order."""
        return [("orderBy", order_text(self.names, self.keys))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """All rows wait for the end of the input, where the option allows it."""
        source = self.inputs[0]
        if job.configuration.get(NON_TEMPORAL_SORT):
            return SortSpec(self.keys, source.schema, source.retracts)
        raise PlanError(
            "non-time-sort",
            "Sort on a non-time-attribute field is not supported.",
            self.span,
            "a stream has no end to sort at: add LIMIT, order by a time attribute, or drop ORDER BY",
        )
