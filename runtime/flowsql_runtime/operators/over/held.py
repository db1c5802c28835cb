"""Frames of keys that hold rows: what is kept of rows that left, and how a batch's rows stand by key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.column_bytes import joined, taken
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_runtime.kernels.over import frames as kernels
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.over.calls import OverCalls
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import KeyIndex

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class FrameKeys:
    """The keys of rows that are answered together: a number each, and their rows by key."""

    def __init__(self, slots: Int32s, scratch: Int32s) -> None:
        n = len(slots)
        self.numbers, self.ranks = np.empty(n, np.int32), np.empty(n, np.int32)
        touched, counts = np.empty(n, np.int32), np.empty(n, np.int32)
        known = int(kernels.number(slots, scratch, self.numbers, self.ranks, touched, counts))
        self.slots, self.counts = touched[:known].copy(), counts[:known].copy()
        self.starts = np.zeros(known + 1, np.int64)
        np.cumsum(self.counts, out=self.starts[1:])
        self.by_key = np.empty(n, np.int32)
        self.by_key[self.starts[self.numbers] + self.ranks] = np.arange(n, dtype=np.int32)


class HeldFrames(ABC):
    """The calls of one operator over the frames of its keys.

    Args:
        timed: whether rows of one time are answered together.
    """

    def __init__(self, spec: OverAggregateSpec, timed: bool) -> None:
        self._timed = timed and not spec.counts_rows
        self._preceding = spec.preceding
        self._counts_rows = spec.counts_rows
        self.calls = OverCalls(spec)
        self._types = self.calls.types
        self._flat = [part for type_ in self._types for part in flat_types(type_)]
        self._scratch: Int32s = np.zeros(0, np.int32)

    def load(self, ctx: OperatorContext) -> None:
        """Make what calls need beside state."""

    def close(self) -> None:
        """Give that back."""

    @abstractmethod
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

    @property
    def _slides(self) -> bool:
        return self._preceding is not None

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are held."""
        return self._slides

    @property
    def _by_time(self) -> bool:
        return self._slides and not self._counts_rows

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Make the stores beside the slots of ``index``."""
        if self.keeps_rows:
            times = [pa.int64()] if self._by_time else []
            self._held = states.row_fifo("held", index, [*self._flat, *times])

    def names(self, columns: Sequence[str], order: str) -> dict[str, TableNames]:
        """What the stores mean. ``columns``: canonical texts of those that calls read; ``order``: of the order."""
        if not self.keeps_rows:
            return {}
        texts = [
            f"{text} [{part}]" if part else text
            for text, type_ in zip(columns, self._types, strict=True)
            for part in range(len(flat_types(type_)))
        ]
        texts += [order] if self._by_time else []
        meaning = "rows of the frame" if self._slides else "last rows"
        return {"held": TableNames(meaning, {f"r{i}": text for i, text in enumerate(texts)})}

    def forget(self, slots: Int32s) -> None:
        """Clear what is kept of slots."""
        if self.keeps_rows:
            self._held.drop_slots(slots)

    def _keys_of(self, slots: Int32s) -> FrameKeys:
        highest = int(slots.max(initial=-1)) + 1
        if highest > len(self._scratch):
            self._scratch = np.full(max(highest, 2 * len(self._scratch)), -1, np.int32)
        return FrameKeys(np.ascontiguousarray(slots), self._scratch)

    def _pool(self, keys: FrameKeys, counts: Int32s, columns: Sequence[Any]) -> tuple[Int64s, Int64s, list[Any]]:
        """The oldest rows that keys hold: their times, where those of each key start, and columns with the batch's."""
        starts = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        if not starts[-1]:
            return np.zeros(0, np.int64), starts, list(columns)
        _, rows = self._held.first(keys.slots, counts)
        stored = self._held.gather(rows)
        times = values_and_validity(stored[len(self._flat)])[0] if self._by_time else np.zeros(0, np.int64)
        whole = whole_columns(self._types, stored[: len(self._flat)])
        return times, starts, [joined(list(pair)) for pair in zip(whole, columns, strict=True)]

    def _keep(self, slots: Int32s, columns: Sequence[Any], kept: npt.NDArray[np.bool_], times: Int64s | None) -> None:
        """The rows of the batch that stay in their frames."""
        if not kept.all():
            rows = np.flatnonzero(kept)
            slots, columns = slots[rows], [taken(column, rows) for column in columns]
            times = None if times is None else times[rows]
        flat = [part for column in columns for part in flat_columns(column)]
        self._held.append(np.ascontiguousarray(slots), flat if times is None else [*flat, pa.array(times)])
