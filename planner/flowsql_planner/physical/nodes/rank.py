"""Rows by their place in an order: Top-N, deduplication, ORDER BY with LIMIT.

Source: Flink's ``StreamPhysicalRank``, ``StreamExecDeduplicate``, ``StreamPhysicalSortLimit`` and
``RankProcessStrategy``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import DeduplicateSpec, OrderKeys, RankSpec, RankStrategy
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import is_proctime, is_rowtime, is_time_attribute
from flowsql_planner.physical.nodes.base import Connectors, Inner, JobContext, named
from flowsql_planner.physical.nodes.line import Attributes, Line, fetch_text, order_text
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.physical.nodes.sort import require_fetch
from flowsql_planner.physical.options import COMPACT_DEDUPLICATION
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Modify, Updates, where_updated
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.interval import Bounds
from flowsql_planner.traits.keys import Keys, smallest
from flowsql_planner.traits.lineage import placed, short, united
from flowsql_planner.traits.monotonicity import Monotonicities, Monotonicity, never_falls
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class Ranking(Inner, ABC):
    """First rows of each partition by an order; its input is an Exchange. The answer updates.

    ``first``, ``last``: places from 1. ``order``: (column, descending, nulls first).
    """

    partition: tuple[int, ...] = ()
    order: OrderKeys
    first: int
    last: int | None
    last_index: int | None = None
    numbered: bool = False

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """A row that comes may push another one out."""
        return ALL

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Upserts where a key tells which row is replaced and no row falls; else the old rows."""
        before = (where_updated(arriving[0], Updates.BEFORE_AND_AFTER),)
        if arriving[0] == INSERTS or Modify.DELETE in arriving[0] or self.row_key() is None:
            return (before,)
        return ((Updates.AFTER,), before)

    def row_key(self) -> tuple[int, ...] | None:
        """Columns that identify a row whose updates never move it back; None where there are none."""
        source = self.inputs[0]
        keys = frozenset(key for key in source.upsert_keys() if frozenset(self.partition) <= key)
        moves = source.monotonicity()
        if moves is None or not all(never_falls(moves[index], descending) for index, descending, _ in self.order):
            return None
        return smallest(keys)

    @property
    def strategy(self) -> RankStrategy:
        """How rows are kept, once changelog modes are known."""
        source = self.inputs[0]
        if not source.retracts:
            return RankStrategy.APPEND_FAST
        return RankStrategy.UPDATE_FAST if source.upserts else RankStrategy.RETRACT

    def strategy_text(self) -> str:
        """The strategy as plans print it."""
        key = self.row_key() if self.strategy is RankStrategy.UPDATE_FAST else None
        return self.strategy.value + ("" if key is None else f"[{','.join(map(str, key))}]")

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Rows that sort alike stand in the order of their changes."""
        return True

    def window_columns(self) -> WindowColumns | None:
        """A place is in no window."""
        return None

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def same_in_batch(self) -> bool:
        """The answer updates."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above."""
        return above

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One look at each row."""
        return Cost(rows, sum(arriving))

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def nets_changes(self) -> bool:
        """Where only the table is looked at, the places that differ after a batch leave the operator."""
        return not self.every_change and self.retracts

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The partition's columns."""
        return tuple(sorted(arriving[0].columns[index] for index in self.partition))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's rows, some of them; the number depends on partition and order."""
        source = arriving[0]
        keys = ", ".join(sorted(source.columns[index] for index in self.partition))
        order = order_text(source.columns, self.order)
        place = f"ROW_NUMBER PER ({keys}) BY ({order})"
        last = source.columns[self.last_index] if self.last_index is not None else str(self.last)
        number = (short(place),) if self.numbered else ()
        kept = (short(f"{place} FROM {self.first} TO {last}"),)
        below = placed("BELOW ROW_NUMBER", source.conditions)
        return Lineage((*source.columns, *number), united(source.conditions, kept, below))

    @abstractmethod
    def spec(self, job: JobContext) -> OperatorSpec:
        """The operator."""

    def rank_spec(self, job: JobContext) -> RankSpec:
        """The operator that keeps the places."""
        source = self.inputs[0]
        strategy = self.strategy
        return RankSpec(
            self.partition,
            self.order,
            self.first,
            self.last,
            self.last_index,
            self.numbered,
            strategy,
            (self.row_key() or ()) if strategy is RankStrategy.UPDATE_FAST else (),
            source.schema,
            self.schema,
            emit_update_before=self.emits_before,
            consolidate=not self.every_change,
            state_ttl_ms=job.state_ttl_ms(),
        )


@record(kw_only=True)
class RankNode(Ranking):
    """Top-N by ROW_NUMBER. The first or last row by a time attribute runs as a Deduplicate."""

    mini_batch: bool = False
    #: The last of several sort columns is a row time, or was one before a join.
    ends_in_time: bool = False

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """A first row by time waits until none can come before it, unless mini-batches are wanted.

        As Flink does, one row of each partition by any order but a single descending column passes for a first row by
        time, although +U follows when a row comes that sorts before it. Not so where a row time is the last of several
        columns: there Flink's plan leaves overtaken rows in its answer (Nexmark q9), and here they are taken back.
        """
        descends = len(self.order) == 1 and self.order[0][1]
        first = self._one_row() and not descends and not self.ends_in_time and arriving[0] == INSERTS
        return INSERTS if first and not self.mini_batch else ALL

    def _one_row(self) -> bool:
        return (self.first, self.last) == (1, 1) and not self.numbered

    def _by_time(self) -> bool:
        """Whether the one row of each partition is chosen by a time attribute."""
        return (
            self._one_row() and len(self.order) == 1 and is_time_attribute(self.inputs[0].schema[self.order[0][0]].type)
        )

    def deduplicates(self) -> bool:
        """Whether the node runs as a Deduplicate, once changelog modes are known."""
        return self._by_time() and not self.inputs[0].retracts

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """An order by row time asks for watermarks, as in Flink, although the operator does not look at them."""
        schema = self.inputs[0].schema
        return MiniBatchMode.ROW_TIME if any(is_rowtime(schema[index].type) for index, *_ in self.order) else above

    def waits_for_mini_batch(self) -> bool:
        """A Deduplicate does, where the options say so."""
        return self.mini_batch and self._by_time()

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Rows that sort alike stand in the order of their changes."""
        return True

    def upsert_keys(self) -> Keys:
        """The partition of the one row that it has; else the number in it, and the input's keys."""
        partition = frozenset(self.partition)
        if self._one_row():
            return frozenset({partition})
        below = frozenset(key for key in self.inputs[0].upsert_keys() if partition <= key)
        return below | {partition | {len(self.schema) - 1}} if self.numbered else below

    def monotonicity(self) -> Monotonicities:
        """A row that replaces the first one sorts before it."""
        if (self.first, self.last) != (1, 1) or self.inputs[0].retracts:
            return None
        moves = [Monotonicity.NONE] * len(self.schema)
        for index, descending, _ in self.order[:1]:
            moves[index] = Monotonicity.INCREASING if descending else Monotonicity.DECREASING
        for index in self.partition:
            moves[index] = Monotonicity.CONSTANT
        return tuple(moves)

    def bounds(self, column: int) -> Bounds:
        """Rows are those of the input."""
        return self.inputs[0].bounds(column) if column < len(self.inputs[0].schema) else None

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Up to ``last`` rows of each partition."""
        partitions = max(arriving[0] * 0.5, 1.0) if self.partition else 1.0
        return min(arriving[0], partitions * (self.last - self.first + 1)) if self.last is not None else arriving[0]

    def _order_text(self) -> str:
        source = self.inputs[0]
        marked = list(source.names)
        for index, _, _ in self.order:
            type_ = source.schema[index].type
            if is_rowtime(type_):
                marked[index] = f"ROWTIME {marked[index]}"
        return order_text(marked, self.order)

    def attributes(self, infix: bool) -> Attributes:
        """Strategy, places, keys, order, columns."""
        source = self.inputs[0]
        if infix and self.deduplicates():
            index, descending, _ = self.order[0]
            return [
                ("keep", "LastRow" if descending else "FirstRow"),
                ("key", ", ".join(named(source, self.partition))),
                ("order", "PROCTIME" if is_proctime(source.schema[index].type) else "ROWTIME"),
                ("outputInsertOnly", "false" if self.retracts else "true"),
            ]
        if self.last_index is None:
            places = f"rankStart={self.first}, rankEnd={self.last}"
        else:
            places = f"rankEnd={source.names[self.last_index]}"
        return [
            ("strategy", self.strategy_text()),
            ("rankType", "ROW_NUMBER"),
            ("rankRange", places),
            ("partitionBy", ", ".join(named(source, self.partition))),
            ("orderBy", self._order_text()),
            ("select", ", ".join(self.names)),
        ]

    def own_line(self, infix: bool = False) -> Line:
        """Deduplicate in the execution plan, where it is one."""
        name = "Deduplicate" if infix and self.deduplicates() else self.title
        return Line(name, tuple(self.attributes(infix)), self.mode, self.nets_changes())

    def spec(self, job: JobContext) -> OperatorSpec:
        """A Deduplicate by time, or a Top-N."""
        if not self.deduplicates():
            return self.rank_spec(job)
        source = self.inputs[0]
        index, descending, _ = self.order[0]
        return DeduplicateSpec(
            self.partition,
            None if is_proctime(source.schema[index].type) else index,
            descending,
            not self.retracts,
            source.schema,
            emit_update_before=self.emits_before,
            mini_batch=job.mini_batch,
            compact=is_proctime(source.schema[index].type) or job.configuration.get(COMPACT_DEDUPLICATION),
            consolidate=not self.every_change,
            state_ttl_ms=job.state_ttl_ms(),
        )


@record(kw_only=True)
class SortLimit(Ranking):
    """First rows of all by an order. ``fetch`` None: OFFSET without a LIMIT."""

    offset: int
    fetch: int | None

    def upsert_keys(self) -> Keys:
        """Those of the input."""
        return self.inputs[0].upsert_keys()

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """As many as are fetched."""
        rest = max(arriving[0] - self.offset, 0.0)
        return rest if self.fetch is None else min(rest, float(self.fetch))

    def attributes(self, infix: bool) -> Attributes:
        """Order, offset, fetch, and how rows are kept."""
        return [
            ("orderBy", order_text(self.names, self.order)),
            ("offset", str(self.offset)),
            ("fetch", fetch_text(self.fetch)),
            ("strategy", self.strategy_text()),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """A Top-N of one partition."""
        require_fetch(self.offset, self.fetch, job, self.span)
        return self.rank_spec(job)
