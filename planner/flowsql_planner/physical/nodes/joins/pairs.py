"""Joins of two inputs."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

from flowsql_core.errors import InternalError
from flowsql_core.expr import Call, Expr, conjuncts
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind, JoinSpec, OperatorSpec, WindowJoinSpec, WindowSpec
from flowsql_core.graph.time_join_specs import IntervalJoinSpec
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.logical.rewrite import unique_names
from flowsql_planner.physical.nodes.base import Connectors, Inner, InsertOnly, JobContext
from flowsql_planner.physical.nodes.line import Attributes, window_text
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.physical.nodes.window import marks_below, refuse_session
from flowsql_planner.physical.options import INTERVAL_JOIN_CLEANUP_MS
from flowsql_planner.traits.changes import ALL, Modifies, Modify, Updates, where_updated
from flowsql_planner.traits.cost import HASH_CPU, Cost, row_bytes
from flowsql_planner.traits.determinism import NONE, Columns, refuse_condition
from flowsql_planner.traits.interval import Bounds, filtered
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.lineage import conditions, placed, united
from flowsql_planner.traits.window import WindowColumns

#: What Flink guesses of equal keys, of comparisons, of any other condition, and of rows without a partner.
KEYED: Final = 0.15
_COMPARED: Final = 0.5
_OTHERWISE: Final = 0.25
_LEAST_ANTI: Final = 0.1
_COMPARISONS: Final = frozenset({"<", "<=", ">", ">="})


class UniqueKeySpec(enum.Enum):
    """What is known of a join input; the values are what EXPLAIN prints."""

    NONE = "NoUniqueKey"
    HAS = "HasUniqueKey"
    IN_JOIN_KEY = "JoinKeyContainsUniqueKey"


def paired_keys(
    kind: JoinKind, left: Keys, left_keys: frozenset[int], right: Keys, right_keys: frozenset[int], width: int
) -> Keys:
    """What identifies a pair of rows that are joined by keys; the right columns come behind ``width`` left ones."""
    left_unique = any(key <= left_keys for key in left)
    right_unique = any(key <= right_keys for key in right)
    keys: set[frozenset[int]] = set()
    shifted = {frozenset(column + width for column in key) for key in right}
    if right_unique and kind in (JoinKind.INNER, JoinKind.LEFT):
        keys |= left
    if left_unique and kind in (JoinKind.INNER, JoinKind.RIGHT):
        keys |= shifted
    # A pair of keys identifies a pair of rows; padded sides are NULL as a whole.
    return frozenset(keys | {a | b for a in left for b in shifted})


def selectivity(condition: Expr | None) -> float:
    """The share of pairs that fulfil a condition, as Flink guesses."""
    share = 1.0
    for part in conjuncts(condition):
        comparison = isinstance(part, Call) and part.function in _COMPARISONS
        share *= _COMPARED if comparison else _OTHERWISE
    return share


@record(kw_only=True)
class PairsOfRows(Inner, ABC):
    """What joins have in common: keys, and pairs of rows."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """Without statistics of keys a share of all rows has a partner; outer joins keep the others."""
        left, right = arriving
        share = selectivity(self.unkeyed())
        pairs = ((left + right) * KEYED if self.left_keys else left * right) * share
        match self.kind:
            case JoinKind.INNER:
                return pairs
            case JoinKind.LEFT:
                return max(left, pairs)
            case JoinKind.RIGHT:
                return max(right, pairs)
            case JoinKind.FULL:
                return max(left, pairs) + max(right, pairs) - pairs
            case JoinKind.SEMI:
                return left * share
            case JoinKind.ANTI:
                return left * max(1 - share, _LEAST_ANTI)

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """Keys are hashed, both inputs are kept."""
        memory = sum(count * row_bytes(child.schema) for count, child in zip(arriving, self.inputs, strict=True))
        return Cost(rows, sum(arriving) * HASH_CPU, 0.0, 0.0, memory)

    def bounds(self, column: int) -> Bounds:
        """Those of the side that the column is of."""
        left, right = self.inputs
        width = len(left.schema)
        return left.bounds(column) if column < width else right.bounds(column - width)

    @abstractmethod
    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Pairs change as their rows do."""

    def _key_pairs(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        left, right = arriving
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        return tuple(sorted(f"{left.columns[one]} = {right.columns[other]}" for one, other in pairs))

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The join keys of both sides."""
        return self._key_pairs(arriving)

    def predicates(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """What the keys do not say of the condition."""
        left, right = arriving
        return conditions(self.unkeyed(), (*left.columns, *right.columns))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The columns of both sides, or of the left one; what pairs them is a condition."""
        left, right = arriving
        both = (*left.columns, *right.columns)
        columns = both if len(self.schema) == len(both) else left.columns
        asked = self.predicates(arriving)
        paired = (*self._key_pairs(arriving), *asked)
        if self.kind is not JoinKind.INNER:
            # Beside such a join a condition means one thing in ON and another one in WHERE.
            paired = (*paired, self.kind.value, *placed(f"ON OF {self.kind.value}", asked))
            paired += placed(f"BELOW {self.kind.value}", (*left.conditions, *right.conditions))
        return Lineage(columns, united(left.conditions, right.conditions, paired))

    @abstractmethod
    def unkeyed(self) -> Expr | None:
        """What the keys do not say of the condition, over the columns of both sides."""

    def condition_text(self, condition: Expr | None, infix: bool) -> str:
        """The condition over the columns of both inputs."""
        if condition is None:
            return "true"
        # A semi or anti join has names for its left columns alone.
        both = unique_names(tuple(column.name for child in self.inputs for column in child.schema))
        own = self.names
        return ExpressionPrinter(own if len(own) == len(both) else both, infix).print(condition)


@record(kw_only=True)
class JoinNode(PairsOfRows):
    """Regular join of two Exchanges. ``condition`` is the whole one; ``rest`` what the keys do not say."""

    null_safe: tuple[bool, ...]
    condition: Expr | None
    rest: Expr | None
    left_upsert_keys: tuple[tuple[int, ...], ...] = ()
    right_upsert_keys: tuple[tuple[int, ...], ...] = ()
    left_spec: UniqueKeySpec = UniqueKeySpec.NONE
    right_spec: UniqueKeySpec = UniqueKeySpec.NONE
    mini_batch: bool = False
    left_ttl_ms: int | None = None
    right_ttl_ms: int | None = None

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Everything."""
        return ALL

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Pairs come and go with their rows; padded rows update."""
        return arriving[0] | arriving[1] if self.kind in (JoinKind.INNER, JoinKind.SEMI) else ALL

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """Of a side with a key what is asked for; all of one whose rows are found again by their columns."""
        if any(child.retracts for child in self.inputs):
            refuse_condition(self.condition, self.span)
        width = len(self.inputs[0].schema)
        own = (frozenset(i for i in required if i < width), frozenset(i - width for i in required if i >= width))
        specs = (self.left_spec, self.right_spec)
        return tuple(
            NONE if not child.retracts else frozenset(range(len(child.schema))) if spec is UniqueKeySpec.NONE else mine
            for child, mine, spec in zip(self.inputs, own, specs, strict=True)
        )

    def bounds(self, column: int) -> Bounds:
        """Of a side, and what the condition tells."""
        return filtered(column, self.condition, super().bounds(column))

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Upserts suffice where a row keeps its place under its join key."""
        if required is not Updates.AFTER:
            return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)
        sides = ((self.left_keys, self.left_upsert_keys), (self.right_keys, self.right_upsert_keys))
        for modifies, (keys, upsert_keys) in zip(arriving, sides, strict=True):
            if Modify.UPDATE in modifies and not any(set(keys) <= set(key) for key in upsert_keys):
                return ()
        return (tuple(where_updated(modifies, Updates.AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each change of a row makes those of its pairs."""
        return observed

    def upsert_keys(self) -> Keys:
        """Keys of one side where the other has one partner at most, and pairs of keys."""
        left, right = (child.upsert_keys() for child in self.inputs)
        left_keys, right_keys = frozenset(self.left_keys), frozenset(self.right_keys)
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return frozenset(key for key in left if left_keys <= key)
        width = len(self.inputs[0].schema)
        keys = paired_keys(self.kind, left, left_keys, right, right_keys, width)
        # Only keys that hold the join key of one side keep the order of changes through the shuffles.
        moved = frozenset(column + width for column in right_keys)
        return frozenset(key for key in keys if left_keys <= key or moved <= key)

    def unkeyed(self) -> Expr | None:
        """The rest."""
        return self.rest

    def window_columns(self) -> WindowColumns | None:
        """A pair is in no window."""
        return None

    def same_in_batch(self) -> bool:
        """Without updates, pairs are the same."""
        return True

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above."""
        return above

    def waits_for_mini_batch(self) -> bool:
        """Where the options say so; rows of a semi or anti join do not wait, as in Flink."""
        return self.mini_batch and self.kind not in (JoinKind.SEMI, JoinKind.ANTI)

    def expressions(self) -> tuple[Expr, ...]:
        """The condition."""
        return () if self.condition is None else (self.condition,)

    def attributes(self, infix: bool) -> Attributes:
        """Kind, condition, columns, and what is known of the inputs."""
        always = isinstance(self.condition, Call) and self.condition.function == "TRUE"
        attributes = [
            ("joinType", self.kind.value),
            ("where", self.condition_text(None if always else self.condition, infix)),
            ("select", ", ".join(self.names)),
            ("leftInputSpec", self.left_spec.value),
            ("rightInputSpec", self.right_spec.value),
        ]
        if self.mini_batch:
            attributes.append(("miniBatch", "true"))
        return attributes

    def spec(self, job: JobContext) -> OperatorSpec:
        """Both inputs in state."""
        left, right = self.inputs
        return JoinSpec(
            self.kind,
            self.left_keys,
            self.right_keys,
            self.null_safe,
            self.rest,
            left.schema,
            right.schema,
            left_retracts=left.retracts,
            right_retracts=right.retracts,
            output=self.schema,
            emit_update_before=self.emits_before,
            left_unique=best_key(self.left_upsert_keys, self.left_keys),
            right_unique=best_key(self.right_upsert_keys, self.right_keys),
            left_ttl_ms=job.state_ttl_ms(self.left_ttl_ms),
            right_ttl_ms=job.state_ttl_ms(self.right_ttl_ms),
            mini_batch=job.mini_batch if self.waits_for_mini_batch() else None,
            left_upserts=left.upserts,
            right_upserts=right.upserts,
        )


def best_key(keys: tuple[tuple[int, ...], ...], join_keys: tuple[int, ...]) -> tuple[int, ...] | None:
    """A key inside the join key if there is one (one row a join key), else the smallest."""
    if not keys:
        return None
    return min(keys, key=lambda key: (not set(key) <= set(join_keys), len(key), key))


@record(kw_only=True)
class _OverTime(InsertOnly, PairsOfRows, ABC):
    """A join that forgets rows by time: both inputs only grow, and so does the output."""

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each pair is seen."""
        return observed

    def upsert_keys(self) -> Keys:
        """None is known."""
        return NO_KEYS

    def same_in_batch(self) -> bool:
        """Late rows are dropped here only."""
        return False


@record(kw_only=True)
class WindowJoin(_OverTime):
    """Join of rows of the same window. ``left_window``/``right_window`` are attached windows."""

    left_window: WindowSpec
    right_window: WindowSpec
    null_safe: tuple[bool, ...]
    condition: Expr | None
    rest: Expr | None

    def unkeyed(self) -> Expr | None:
        """The rest."""
        return self.rest

    def window_columns(self) -> WindowColumns | None:
        """Those of both inputs; of a semi or anti join those of the left one."""
        left, right = (child.window_columns() for child in self.inputs)
        if left is None or right is None:
            return None
        own = len(self.inputs[0].schema)
        shift = own if len(self.schema) > own else None

        def both(a: frozenset[int], b: frozenset[int]) -> frozenset[int]:
            return a if shift is None else a | {column + shift for column in b}

        return WindowColumns(
            left.window,
            both(left.starts, right.starts),
            both(left.ends, right.ends),
            both(left.times, right.times),
            padded=both(
                left.all if self.kind in (JoinKind.RIGHT, JoinKind.FULL) else left.padded,
                right.all if self.kind in (JoinKind.LEFT, JoinKind.FULL) else right.padded,
            ),
        )

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """By the window's time."""
        return marks_below(self.left_window, above)

    def expressions(self) -> tuple[Expr, ...]:
        """The condition."""
        return () if self.condition is None else (self.condition,)

    def attributes(self, infix: bool) -> Attributes:
        """Windows, kind, condition, columns."""
        left, right = self.inputs
        return [
            ("leftWindow", window_text(self.left_window, left.names)),
            ("rightWindow", window_text(self.right_window, right.names)),
            ("joinType", self.kind.value),
            ("where", self.condition_text(self.condition, infix)),
            ("select", ", ".join(self.names)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Rows wait for the end of their window."""
        refuse_session(self.left_window, self)
        left_end, right_end = self.left_window.end_index, self.right_window.end_index
        if left_end is None or right_end is None:
            raise InternalError("a window join without window ends")
        left, right = self.inputs
        return WindowJoinSpec(
            self.kind,
            left_end,
            right_end,
            self.left_keys,
            self.right_keys,
            self.null_safe,
            self.rest,
            left.schema,
            right.schema,
            self.schema,
            self.left_window.zone,
        )


@record(kw_only=True)
class IntervalJoin(_OverTime):
    """Join whose condition bounds the distance of two times. ``rest``: what neither keys nor bounds say of it."""

    condition: Expr
    rest: Expr | None
    null_safe: tuple[bool, ...]
    left_time: int
    right_time: int
    lower_ms: int
    upper_ms: int
    row_time: bool

    def unkeyed(self) -> Expr | None:
        """All of it: the bounds are in it."""
        return self.condition

    def window_columns(self) -> WindowColumns | None:
        """A pair is in no window."""
        return None

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """By the time that is compared."""
        return MiniBatchMode.ROW_TIME if self.row_time else above

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """A partner a row."""
        return arriving[0]

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One look at each row."""
        return Cost(rows, rows)

    def expressions(self) -> tuple[Expr, ...]:
        """The condition."""
        return (self.condition,)

    def attributes(self, infix: bool) -> Attributes:
        """Kind, bounds, condition, columns."""
        bounds = (
            f"isRowTime={'true' if self.row_time else 'false'}, leftLowerBound={self.lower_ms}, "
            f"leftUpperBound={self.upper_ms}, leftTimeIndex={self.left_time}, rightTimeIndex={self.right_time}"
        )
        return [
            ("joinType", self.kind.value),
            ("windowBounds", bounds),
            ("where", self.condition_text(self.condition, infix)),
            ("select", ", ".join(self.names)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Both inputs in state, until the interval of each row is over."""
        left, right = self.inputs
        return IntervalJoinSpec(
            self.kind,
            self.left_time,
            self.right_time,
            self.lower_ms,
            self.upper_ms,
            self.row_time,
            self.left_keys,
            self.right_keys,
            self.null_safe,
            self.rest,
            left.schema,
            right.schema,
            self.schema,
            job.configuration.get(INTERVAL_JOIN_CLEANUP_MS),
        )
