"""Joins in batch mode."""

from __future__ import annotations

import enum

from flowsql_core.expr import Call, Expr
from flowsql_core.graph.bounded_specs import BoundedJoinSpec, SortMergeJoinSpec
from flowsql_core.graph.key_identity import KeyIdentity, same_by_bits_and_value
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import ArrayType
from flowsql_planner.physical.nodes.base import Connectors, JobContext
from flowsql_planner.physical.nodes.bounded.base import BoundedNode
from flowsql_planner.physical.nodes.joins.pairs import PairsOfRows
from flowsql_planner.physical.nodes.line import Attributes


class JoinAlgorithm(enum.Enum):
    """How Flink would join; the values are what EXPLAIN prints."""

    HASH = "HashJoin"
    SORT_MERGE = "SortMergeJoin"
    NESTED_LOOP = "NestedLoopJoin"


@record(kw_only=True)
class BoundedJoin(BoundedNode, PairsOfRows):
    """Join of two inputs, the one that is ``build_left`` or not being taken whole first.

    ``condition`` is the whole one; ``rest`` what the keys do not say. ``broadcast``: every subtask has all rows of the
    input that is taken whole. ``hash_demanded``: a hint or disabled operators ask for a hash join, so that its keys are
    compared by bits. Flink weighs the algorithms by the sizes of the inputs, and so its answers for NaN and -0.0 change
    with them; here a join is one by values unless somebody asks for a hash join.
    """

    null_safe: tuple[bool, ...]
    condition: Expr | None
    rest: Expr | None
    algorithm: JoinAlgorithm
    build_left: bool
    broadcast: bool = False
    hash_demanded: bool = False

    @property
    def title(self) -> str:
        """As in Flink."""
        return self.algorithm.value

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """There are no changes to see."""
        return observed

    def unkeyed(self) -> Expr | None:
        """The rest."""
        return self.rest

    def expressions(self) -> tuple[Expr, ...]:
        """The condition."""
        return () if self.condition is None else (self.condition,)

    def attributes(self, infix: bool) -> Attributes:
        """Kind, condition, columns, and which input is taken whole."""
        always = isinstance(self.condition, Call) and self.condition.function == "TRUE"
        shown: Attributes = [
            ("joinType", self.kind.value),
            ("where", self.condition_text(None if always else self.condition, infix)),
            ("select", ", ".join(self.names)),
        ]
        if self.algorithm is not JoinAlgorithm.SORT_MERGE:
            if self.broadcast and self.algorithm is JoinAlgorithm.HASH:
                shown.append(("isBroadcast", "true"))
            shown.append(("build", "left" if self.build_left else "right"))
        return shown

    def spec(self, job: JobContext) -> OperatorSpec:
        """One operator."""
        left, right = self.inputs
        keys = (self.left_keys, self.right_keys, self.null_safe)
        schemas = (left.schema, right.schema, self.schema)
        identity = self.key_identity()
        condition = self.condition if identity is KeyIdentity.VALUE else self.rest
        if self.algorithm is JoinAlgorithm.SORT_MERGE:
            return SortMergeJoinSpec(self.kind, *keys, condition, *schemas, identity)
        return BoundedJoinSpec(self.kind, *keys, condition, *schemas, self.build_left, identity)

    def key_identity(self) -> KeyIdentity:
        """Return how the keys are compared; BITS where that makes no difference, and for arrays.

        Flink's algorithms all compare arrays by their bytes, or by an order in which NULL elements are equal.
        """
        if self.algorithm is JoinAlgorithm.HASH and self.hash_demanded:
            return KeyIdentity.BITS
        columns = [self.inputs[0].schema[key] for key in self.left_keys]
        columns += [self.inputs[1].schema[key] for key in self.right_keys]
        same = all(same_by_bits_and_value(column.type) or isinstance(column.type, ArrayType) for column in columns)
        return KeyIdentity.BITS if same else KeyIdentity.VALUE
