"""Aggregates of a bounded input: groups are folded while rows come and leave once, at the end."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.bounded_specs import BoundedAggregateSpec
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.bounded.groups import Groups, arriving_keys
from flowsql_runtime.operators.bounded.held_rows import DEEPEST, FAN_OUT, DealtRows


class BoundedAggregateOperator(BoundedOperator[BoundedAggregateSpec]):
    """Groups in memory; rows of groups that memory has no room for wait in files, and are grouped part by part.

    In     insert-only, hash-partitioned by ``spec.grouping`` (no grouping: one subtask); rows or, where it merges,
           accumulators.
    Out    one row a group, in order of the groups' first rows as far as memory held them.

    Source: Flink, ``HashAggCodeGenerator`` (which falls back to sorting).
    """

    def open(self, ctx: OperatorContext) -> None:
        """No group yet."""
        self._groups = Groups(self.spec)
        self._rest: DealtRows | None = None

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Fold rows."""
        self._rest = self._take(self._groups, batch, self._rest, level=0)

    def answer(self) -> None:
        """Groups in memory, then those of each part."""
        if not self.spec.grouping:
            self._groups.make_global()
        self._emit(self._groups)
        self._groups = Groups(self.spec)
        self._answer_parts(self._rest)
        self._rest = None

    def _answer_parts(self, rest: DealtRows | None) -> None:
        if rest is None:
            return
        for part in range(FAN_OUT):
            groups, finer = Groups(self.spec), None
            for batch in rest.read(part):
                finer = self._take(groups, batch, finer, rest.level + 1)
            self._emit(groups)
            self._answer_parts(finer)

    def _take(self, groups: Groups, batch: ChangelogBatch, rest: DealtRows | None, level: int) -> DealtRows | None:
        """Fold what belongs to groups in memory; returns where the other rows wait."""
        if not batch.num_rows:
            return rest
        if rest is None and self.spec.grouping and level < DEEPEST and groups.nbytes > self.share_bytes:
            rest = DealtRows(self.space, arriving_keys(self.spec), level)
        left = groups.fold(batch, only_known=rest is not None)
        if rest is not None and left is not None:
            rest.add(left)
        self.ctx.memory.resize(groups.nbytes)
        return rest

    def _emit(self, groups: Groups) -> None:
        for batch in groups.batches():
            self.collect_within_offsets(batch)
