"""Pairs of rows of two bounded inputs, and which rows without a partner are in the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns
from flowsql_core.graph.bounded_specs import BoundedJoinSpec, SortMergeJoinSpec
from flowsql_core.graph.specs import JoinKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.join.regular import compiled_condition
from flowsql_runtime.operators.join.side import JoinSide, row_ranges

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
S = TypeVar("S", bound=BoundedJoinSpec | SortMergeJoinSpec)


class PairingOperator(BoundedOperator[S]):
    """Base of joins: rows of the probing side meet rows of the other one, ``build``, that are all known by then."""

    number_of_inputs = 2
    #: The side that is complete when rows of the other one meet it.
    build: int = 1

    def __init__(self, spec: S) -> None:
        super().__init__(spec)
        self.sides = (
            JoinSide(spec.left_keys, spec.left, spec.null_safe, spec.identity),
            JoinSide(spec.right_keys, spec.right, spec.null_safe, spec.identity),
        )

    def open(self, ctx: OperatorContext) -> None:
        """Compile the condition."""
        self.condition = compiled_condition(self.spec.condition, ctx)

    @property
    def partial(self) -> bool:
        """Whether rows of the left alone are the answer."""
        return self.spec.kind in (JoinKind.SEMI, JoinKind.ANTI)

    def stays(self, side: int) -> bool:
        """Whether rows of a side without a partner are in the answer."""
        return self.spec.kind in (JoinKind.FULL, JoinKind.RIGHT if side else JoinKind.LEFT)

    def pairs(
        self, batch: ChangelogBatch, counts: Int64s, rows: ChangelogBatch, found: Int64s
    ) -> tuple[Int64s, Int64s]:
        """Positions in ``batch`` and in ``rows`` of the pairs for which the condition is true.

        Args:
            counts: partners of each row of ``batch``; ``found``: these, one row after the other.
        """
        probes: Int64s = np.repeat(np.arange(batch.num_rows), counts)
        if self.condition is not None and len(probes):
            joined = ChangelogBatch(self.beside(batch.columns, rows.columns, probes, found), len(probes))
            met = np.concatenate([self.condition(part.columns, part.num_rows) for part in joined.within_offsets()])
            probes, found = probes[met], found[met]
        return probes, found

    def meet(self, batch: ChangelogBatch, counts: Int64s, rows: ChangelogBatch, found: Int64s, met: Bools) -> None:
        """Probing rows and all of their partners: emit what is known by that.

        Args:
            met: (rows,): set for partners that were met.
        """
        if self.partial and self.condition is None:
            self.pass_on(batch, counts > 0)
            return
        probes, found = self.pairs(batch, counts, rows, found)
        has = np.zeros(batch.num_rows, np.bool_)
        has[probes] = True
        if self.partial:
            self.pass_on(batch, has)
            return
        if self.stays(self.build):
            met[found] = True
        if self.stays(1 - self.build):
            lonely = np.flatnonzero(~has)
            if len(lonely):
                probes = np.concatenate((probes, lonely))
                found = np.concatenate((found, np.full(len(lonely), -1)))
                order = np.argsort(probes, kind="stable")
                probes, found = probes[order], found[order]
        self.emit_pairs(batch, rows, probes, found)

    def emit_pairs(self, batch: ChangelogBatch, rows: ChangelogBatch, probes: Int64s, found: Int64s) -> None:
        """Rows of both sides beside each other."""
        if len(probes):
            columns = self.beside(batch.columns, rows.columns, probes, found)
            self.collect_within_offsets(ChangelogBatch(columns, len(probes)))

    def pass_on(self, batch: ChangelogBatch, has: Bools) -> None:
        """Rows of a semi or anti join."""
        kept = batch.with_track(None).filter(~has if self.spec.kind is JoinKind.ANTI else has)
        if kept.num_rows:
            self.output.collect(kept)

    def emit_alone(self, side: int, batch: ChangelogBatch, rows: Int64s) -> None:
        """Rows of one side beside NULLs."""
        nothing = no_rows(self.sides[1 - side].schema).columns
        for first, last in row_ranges(np.ones(len(rows), np.int64)):
            mine = rows[first:last]
            if not len(mine):
                continue
            none = np.full(len(mine), -1)
            one, other = LateColumns.padded(batch.columns, mine), LateColumns.padded(nothing, none)
            columns = LateColumns.beside(other, one) if side else LateColumns.beside(one, other)
            self.collect_within_offsets(ChangelogBatch(columns, len(mine)))

    def beside(self, probing: Sequence[Any], building: Sequence[Any], probes: Int64s, found: Int64s) -> Sequence[Any]:
        """Columns of both sides at pairs of rows, left columns first; -1 is NULLs."""
        one, other = LateColumns.padded(probing, probes), LateColumns.padded(building, found)
        return LateColumns.beside(other, one) if self.build == 0 else LateColumns.beside(one, other)


def no_rows(schema: Schema) -> ChangelogBatch:
    """No rows of some columns."""
    return ChangelogBatch(tuple(pa.nulls(0, to_arrow(column.type)) for column in schema), 0)


def from_starts(starts: Int64s, counts: Int64s) -> Int64s:
    """The places of ranges, one range after the other."""
    before = np.cumsum(counts) - counts
    places: Int64s = np.arange(int(counts.sum())) - np.repeat(before - starts, counts)
    return places
