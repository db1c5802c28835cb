"""Functions of pandas over frames of OVER windows: each row is answered by a call with the rows of its frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.column_bytes import taken
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_runtime.kernels.over import frames as kernels
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.over.held import HeldFrames
from flowsql_runtime.operators.python_aggregate.pandas_calls import PandasCalls

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class PandasFrames(HeldFrames):
    """Frames that slide, whose rows are all that is kept. Rows of one frame of time stand in the order of their times.

    Source: Flink, ``StreamArrowPythonRowTimeBoundedRangeOperator`` and its like.
    """

    def __init__(self, spec: OverAggregateSpec, timed: bool) -> None:
        super().__init__(spec, timed)
        self._python = PandasCalls(self.calls.calls, self.calls.schema, range(len(self.calls.schema)))

    def load(self, ctx: OperatorContext) -> None:
        """Make the functions."""
        self._python.load(ctx, eval_context(ctx).zone)

    def close(self) -> None:
        """Close them."""
        self._python.close()

    def answer(
        self, slots: Int32s, columns: Sequence[Any], times: Int64s | None, epochs: Int32s | None = None
    ) -> list[Any]:
        """The results of rows; as of the base."""
        assert self._preceding is not None
        n = len(slots)
        if not n:
            return self._python.results(self.calls.with_constants(columns, 0), *np.zeros((2, 0), np.int64))
        keys = self._keys_of(slots)
        held = self._held.counts(keys.slots)
        held_times, held_starts, pool = self._pool(keys, held, columns)
        loaded = int(held_starts[-1])
        # By key: the rows that it holds, then those of the batch.
        first = held_starts[:-1] + keys.starts[:-1]
        own = (first + held)[keys.numbers] + keys.ranks
        order = np.empty(loaded + n, np.int64)
        order[np.arange(loaded) + np.repeat(keys.starts[:-1], held)] = np.arange(loaded)
        order[own] = loaded + np.arange(n)
        stops = own + 1
        if self._counts_rows:
            starts = np.maximum(stops - (self._preceding + 1), first[keys.numbers])
            leaving = np.clip(held + keys.counts - (self._preceding + 1), 0, held).astype(np.int32)
            kept = keys.ranks >= keys.counts[keys.numbers] - (self._preceding + 1)
            stored_times = None
        else:
            assert times is not None
            known = np.zeros(n, np.int32) if epochs is None else epochs
            by_key = np.concatenate((held_times, times))[order]
            starts = np.empty(n, np.int64)
            latest = np.zeros(len(first), np.int32)
            kernels.starts_by_time(keys.numbers, own, first.copy(), by_key, known, latest, self._preceding, starts)
            answers = np.arange(n, dtype=np.int32)
            kernels.join_peers(keys.numbers, keys.ranks, keys.starts, keys.by_key, times, known, answers)
            stops = own[answers] + 1
            # The frame of a key's last row is what may be in a later one.
            left = starts[keys.by_key[keys.starts[1:] - 1]] - first
            leaving = np.minimum(left, held).astype(np.int32)
            kept = keys.ranks >= (left - held)[keys.numbers]
            stored_times = times
        arranged = [taken(column, order) for column in pool]
        results = self._python.results(self.calls.with_constants(arranged, loaded + n), starts, stops)
        self._held.drop_first(keys.slots, leaving)
        self._keep(slots, columns, kept, stored_times)
        return results
