"""Joins with the version of a table that was valid at the time of a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.expr import Expr, conjuncts
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.graph.time_join_specs import TemporalJoinSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes.base import Connectors, JobContext
from flowsql_planner.physical.nodes.joins.pairs import PairsOfRows
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.changes import ALL, Modifies, Updates, where_updated
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class TemporalJoinNode(PairsOfRows):
    """Event-time temporal join of two Exchanges. ``version_key``: columns of the right input that tell whose versions
    its rows are. ``condition`` is the whole one; ``rest`` what the keys do not say."""

    null_safe: tuple[bool, ...]
    condition: Expr | None
    rest: Expr | None
    left_time: int
    right_time: int
    version_key: tuple[int, ...]
    ttl_ms: int | None = None

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """The changes of the left rows."""
        return arriving[0]

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Of the left input what is asked of the join; of versions the new one is enough."""
        left, right = arriving
        own = where_updated(left, required if required is Updates.BEFORE_AND_AFTER else Updates.AFTER)
        return [(own, where_updated(right, updates)) for updates in (Updates.AFTER, Updates.BEFORE_AND_AFTER)]

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each version counts."""
        return True

    def upsert_keys(self) -> Keys:
        """Those of the left input: a row has one version at most."""
        keys = frozenset(self.left_keys)
        return frozenset(key for key in self.inputs[0].upsert_keys() if keys <= key)

    def unkeyed(self) -> Expr | None:
        """The rest."""
        return self.rest

    def window_columns(self) -> WindowColumns | None:
        """None is followed."""
        return None

    def same_in_batch(self) -> bool:
        """Late rows may find no version."""
        return False

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """By the times that are compared."""
        return MiniBatchMode.ROW_TIME

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """A version a row."""
        return arriving[0]

    def expressions(self) -> tuple[Expr, ...]:
        """The condition."""
        return () if self.condition is None else (self.condition,)

    def attributes(self, infix: bool) -> Attributes:
        """Kind, condition with what Flink writes of the times and keys, columns."""
        width = len(self.inputs[0].schema)
        names = self.names

        def listed(columns: Iterable[int], shift: int = 0) -> str:
            return ", ".join(names[column + shift] for column in columns)

        temporal = (
            f"__TEMPORAL_JOIN_CONDITION({names[self.left_time]}, {names[width + self.right_time]}, "
            f"__TEMPORAL_JOIN_CONDITION_PRIMARY_KEY({listed(self.version_key, width)}), "
            f"__TEMPORAL_JOIN_LEFT_KEY({listed(self.left_keys)}), "
            f"__TEMPORAL_JOIN_RIGHT_KEY({listed(self.right_keys, width)}))"
        )
        return [
            ("joinType", self.kind.value),
            ("where", self.with_condition(temporal, infix)),
            ("select", ", ".join(names)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Left rows and versions in state."""
        left, right = self.inputs
        return TemporalJoinSpec(
            self.kind,
            self.left_time,
            self.right_time,
            self.left_keys,
            self.right_keys,
            self.null_safe,
            self.rest,
            left.schema,
            right.schema,
            self.schema,
            left.retracts,
            job.state_ttl_ms(self.ttl_ms),
        )

    def with_condition(self, temporal: str, infix: bool) -> str:
        """The condition and one more part."""
        if self.condition is None:
            return temporal
        parts = [self.condition_text(part, infix) for part in conjuncts(self.condition)]
        return f"({' AND '.join([*parts, temporal])})" if infix else f"AND({', '.join([*parts, temporal])})"
