"""Aggregates over the rows up to each row: unbounded, of a number of rows, or of a width of time.

Rows that enter and leave a frame are taken in and out of one accumulator row a key, in the order in which they are
answered; whoever has them hands them over in that order, ascending within a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.literal import literal_array
from flowsql_compute.eval.not_null import without_nulls
from flowsql_core.arrow import compute as pc
from flowsql_core.column_bytes import taken
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Literal
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_runtime.kernels.accumulate import RESTART
from flowsql_runtime.kernels.over import frames as kernels
from flowsql_runtime.operators.aggregate.inputs import Step
from flowsql_runtime.operators.over.held import FrameKeys, HeldFrames
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import KeyIndex

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class OverFrames(HeldFrames):
    """The calls of one operator over the frames of its keys, in accumulators."""

    def __init__(self, spec: OverAggregateSpec, timed: bool) -> None:
        super().__init__(spec, timed)
        self.program = self.calls.program(retracts=self._preceding is not None)
        self._lagging = max((lag.offset for lag in self.calls.lags), default=0)
        self._looks_back = any(lag.offset > 0 or lag.by is not None for lag in self.calls.lags)

    @property
    def keeps_rows(self) -> bool:
        """Whether rows stand beside the accumulators."""
        return self._slides or self._looks_back

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Make the stores beside the slots of ``index``."""
        self.program.open(states, index, "over")
        super().open(states, index)

    def names(self, columns: Sequence[str], order: str) -> dict[str, TableNames]:
        """What the stores mean. ``columns``: canonical texts of those that calls read; ``order``: of the order."""
        return dict(self.program.table_names(self.calls.texts(columns), "over")) | super().names(columns, order)

    def forget(self, slots: Int32s) -> None:
        """Clear what is kept of slots."""
        self.program.forget(slots)
        super().forget(slots)

    def answer(
        self, slots: Int32s, columns: Sequence[Any], times: Int64s | None, epochs: Int32s | None = None
    ) -> list[Any]:
        """The results of rows, in the order in which they are answered; one Arrow array a call.

        Args:
            slots: (n,) of the index.
            columns: Arrow columns that calls read (``OverCalls.columns``).
            times: milliseconds (n,), where rows of one time are answered together.
            epochs: how often the key's frame of time was dropped before each row, (n,); None: never.
        """
        n = len(slots)
        keys = self._keys_of(slots)
        results: list[Any] = [None] * len(self.calls)
        if not self._slides:
            answers = np.arange(n, dtype=np.int32)
            if self._timed and times is not None:
                epochs = np.zeros(n, np.int32)
                kernels.join_peers(keys.numbers, keys.ranks, keys.starts, keys.by_key, times, epochs, answers)
            if self.calls.folded:
                self._fold(slots, self.calls.with_constants(columns, n), np.ones(n, np.int8), answers, results)
            if self._looks_back:
                self._look_back(keys, columns, answers, results)
            elif self.calls.lags:
                self._lag_nothing(columns, answers, results)
        elif self._counts_rows:
            self._slide_rows(keys, slots, columns, results)
        else:
            assert times is not None
            self._slide_time(keys, slots, columns, times, epochs, results)
        return results

    def _fold(
        self,
        slots: Int32s,
        columns: Sequence[Any],
        signs: Int8s,
        answers: Int32s,
        results: list[Any],
        restarts: Int8s | None = None,
    ) -> None:
        step = None if restarts is None else Step(RESTART, restarts)
        changes = self.program.fold(slots, columns, signs, True, step)
        rows = 2 * answers.astype(np.int64) + 1
        for place, result in zip(self.calls.folded, changes.results, strict=True):
            results[place] = result.to_arrow(rows)

    # -- frames that slide

    def _slide_rows(self, keys: FrameKeys, slots: Int32s, columns: Sequence[Any], results: list[Any]) -> None:
        assert self._preceding is not None
        size = self._preceding + 1
        held = self._held.counts(keys.slots)
        leaving = np.clip(held + keys.counts - size, 0, held).astype(np.int32)
        _, loaded_starts, pool = self._pool(keys, leaving, columns)
        n, loaded = len(slots), int(loaded_starts[-1])
        owners, places, signs, answers = _events(2 * n, n)
        count = kernels.slide_rows(
            keys.numbers, keys.ranks, keys.starts, keys.by_key, held, loaded_starts, loaded, size, owners, places,
            signs, answers,
        )  # fmt: skip
        self._run(slots, pool, owners[:count], places[:count], signs[:count], answers, results)
        self._held.drop_first(keys.slots, leaving)
        self._keep(slots, columns, keys.ranks >= keys.counts[keys.numbers] - size, None)

    def _slide_time(
        self,
        keys: FrameKeys,
        slots: Int32s,
        columns: Sequence[Any],
        times: Int64s,
        epochs: Int32s | None,
        results: list[Any],
    ) -> None:
        assert self._preceding is not None
        newest = keys.by_key[keys.starts[1:] - 1]
        held = self._held.counts(keys.slots)
        old = self._held.count_below(keys.slots, len(self._flat), times[newest] - self._preceding)
        if epochs is None:
            epochs = np.zeros(len(slots), np.int32)
        else:
            old = np.where(epochs[newest] > 0, held, old)
        loaded_times, loaded_starts, pool = self._pool(keys, old, columns)
        n, loaded = len(slots), int(loaded_starts[-1])
        owners, places, signs, answers = _events(2 * n + loaded, n)
        heads, restarts = np.zeros(len(keys.slots), np.int32), np.empty(len(owners), np.int8)
        count = kernels.slide_range(
            keys.numbers, keys.ranks, keys.starts, keys.by_key, times, epochs, held, loaded_starts, loaded_times,
            loaded, self._preceding, heads, owners, places, signs, restarts, answers,
        )  # fmt: skip
        kernels.join_peers(keys.numbers, keys.ranks, keys.starts, keys.by_key, times, epochs, answers)
        again = restarts[:count] if epochs.any() else None
        self._run(slots, pool, owners[:count], places[:count], signs[:count], answers, results, again)
        self._held.drop_first(keys.slots, old)
        self._keep(slots, columns, keys.ranks >= (heads - old)[keys.numbers], times)

    def _run(
        self,
        slots: Int32s,
        pool: list[Any],
        owners: Int32s,
        places: Int32s,
        signs: Int8s,
        answers: Int32s,
        results: list[Any],
        restarts: Int8s | None = None,
    ) -> None:
        columns = [taken(column, places) for column in pool]
        self._fold(slots[owners], self.calls.with_constants(columns, len(owners)), signs, answers, results, restarts)

    # -- LAG

    def _look_back(self, keys: FrameKeys, columns: Sequence[Any], answers: Int32s, results: list[Any]) -> None:
        held = self._held.counts(keys.slots)
        _, starts, pool = self._pool(keys, held, columns)
        loaded = int(starts[-1])
        # How many rows of the key stand before the one after which a row is answered.
        before = held[keys.numbers].astype(np.int64) + keys.ranks[answers]
        kept = np.full(len(keys.slots), self._lagging, dtype=np.int64)
        for lag in self.calls.lags:
            if lag.by is None:
                place = before - lag.offset
                found = place >= 0
            else:
                sizes, offsets, left = _own_offsets(keys, columns[lag.by], pool[lag.by], held, starts)
                place = before - offsets[answers]
                found = sizes[answers] > offsets[answers]
                kept = np.maximum(kept, left)
            numbers = keys.numbers
            in_batch = found & (place >= held[numbers])
            own = keys.starts[numbers] + place - held[numbers]
            there = np.where(
                in_batch, loaded + keys.by_key[np.where(in_batch, own, 0)], starts[numbers] + np.maximum(place, 0)
            )
            otherwise = taken(columns[lag.otherwise], answers) if isinstance(lag.otherwise, int) else lag.otherwise
            if isinstance(lag.column, Literal):
                values = _or_else(literal_array(lag.column, 1), np.zeros_like(there), found, otherwise)
            else:
                values = _or_else(pool[lag.column], there, found, otherwise)
            results[lag.place] = values if lag.type.nullable else without_nulls(values, lag.type)
        gone = np.clip(held + keys.counts - kept, 0, held).astype(np.int32)
        self._held.drop_first(keys.slots, gone)
        staying = keys.ranks >= (keys.counts - kept)[keys.numbers]
        self._keep(keys.slots[keys.numbers], columns, staying, None)

    def _lag_nothing(self, columns: Sequence[Any], answers: Int32s, results: list[Any]) -> None:
        """LAG by 0 rows is the row itself."""
        for lag in self.calls.lags:
            if isinstance(lag.column, Literal):
                values = literal_array(lag.column, len(answers))
            else:
                values = taken(columns[lag.column], answers)
            results[lag.place] = values if lag.type.nullable else without_nulls(values, lag.type)


#: More than any number of rows beside an offset: what sets keys apart in one running minimum.
_APART: Final = 1 << 40


def _own_offsets(
    keys: FrameKeys, own: pa.Array, pool: pa.Array, held: Int32s, starts: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """LAG by a column: Flink keeps as many rows as the last row's offset and one, and forgets those before for good.

    Args:
        own: the offsets of the batch's rows.
        pool: those of the rows that are held, then of the batch's.
        held: how many rows are held, a key.
        starts: where they begin in ``pool``, a key and one.

    Returns:
        For each row of the batch how many rows are kept once it came, and its offset; for each key how many are kept
        at the end, (keys,).

    Raises:
        ExecutionError: an offset is NULL or negative.
    """
    offsets, valid = values_and_validity(own)
    if valid is not None and not valid.all():
        raise ExecutionError("lag-offset", "the number of rows of LAG is NULL")
    offsets = offsets.astype(np.int64)
    if (offsets < 0).any():
        raise ExecutionError("lag-offset", f"Offset({offsets[offsets < 0][0]}) should be positive.")
    before = held.astype(np.int64)
    some = np.flatnonzero(held)
    if len(some):
        # The rows that are held say how many of them the next row finds: those before them say no less.
        earlier = values_and_validity(pool.slice(0, int(starts[-1])))[0].astype(np.int64)
        ages = np.repeat(starts[1:], held) - 1 - np.arange(len(earlier))
        before[some] = np.minimum(before[some], np.minimum.reduceat(earlier + 1 + ages, starts[some]))
    # Size r = min(size r-1 + 1, offset + 1): without the rank it is a running minimum of each key's rows in order.
    ordered = keys.by_key
    ranks, numbers = keys.ranks[ordered].astype(np.int64), keys.numbers[ordered]
    bare = np.minimum(offsets[ordered] + 1 - ranks, before[numbers] + 1) - numbers.astype(np.int64) * _APART
    sizes = np.empty(len(offsets), dtype=np.int64)
    sizes[ordered] = np.minimum.accumulate(bare) + numbers.astype(np.int64) * _APART + ranks
    return sizes, offsets, sizes[ordered[keys.starts[1:] - 1]]


def _events(most: int, n: int) -> tuple[Int32s, Int32s, Int8s, Int32s]:
    return np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int8), np.empty(n, np.int32)


def _or_else(column: Any, places: Int64s, there: npt.NDArray[np.bool_], otherwise: Any) -> Any:
    """Values at places; where there is none the constant, the value of an Arrow array (n,), or NULL."""
    values = taken(column, np.where(there, places, 0))
    if there.all():
        return values
    mask = pa.array(there)
    if isinstance(otherwise, pa.Array):
        return pc.if_else(mask, values, otherwise.cast(values.type))
    if otherwise is None or otherwise.value is None:
        return pc.if_else(mask, values, pa.scalar(None, values.type))
    return pc.if_else(mask, values, literal_array(otherwise, 1)[0].cast(values.type))
