"""Slot -> rows in sort order, in memory: Top-N, OVER, buffers of patterns and versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity
from flowsql_compute.keys import is_bytes_type
from flowsql_core.batch import LateColumns
from flowsql_runtime.kernels import sorted_rows as kernels
from flowsql_runtime.state.arrow_words import value_words, word_count
from flowsql_runtime.state.rankings import Keeping, Places, Ranked
from flowsql_runtime.state.resident.frozen import Frozen, Moment
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.ranking import Ranking
from flowsql_runtime.state.resident.row_list import NO_SLOTS, ResidentRowList
from flowsql_runtime.state.stores import SortColumn

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_LOWEST = np.int64(-(2**63))


class ResidentSortedList:
    """Implements ``SortedList``; see there. The rows stand in a row list, the trees beside it."""

    def __init__(
        self,
        parent: ResidentKeyIndex,
        types: Sequence[Any],
        order: Sequence[SortColumn],
        unique: Sequence[int] | None = None,
        numbered: bool = False,
        counted: bool = False,
        keeps_best: bool = False,
    ) -> None:
        by_number = numbered or keeps_best
        self.rows = ResidentRowList(parent, types, removable=not by_number, unique=unique, counted=counted)
        # Numbered rows leave, too.
        self.rows.store.append_only = False
        if keeps_best:
            self.keeping = Keeping.BEST if unique is None else Keeping.REPLACED
        else:
            self.keeping = Keeping.ALL
        self.order = tuple(order)
        #: Parts of the sort key up to and with each sort column.
        self._parts: list[int] = []
        texts: list[int] = []
        for column in self.order:
            texts.append(0)  # whether it is NULL
            type_ = self.rows.types[column.index]
            if is_bytes_type(type_):
                word = self.rows.store.word_of[column.index] + 1
                texts.append(word if column.ascending else -word)
            else:
                texts += [0] * word_count(type_)
            self._parts.append(len(texts))
        self._text_columns = tuple(
            {column.index: None for column in self.order if is_bytes_type(self.rows.types[column.index])}
        )
        # Without sort columns all rows sort alike.
        self._texts = np.array(texts or [0], np.int32)
        self._keys = np.zeros((0, len(self._texts)), np.int64)
        self._tree = np.zeros((0, 4), np.int32)
        self._roots = np.zeros(0, np.int32)
        self._ranking = Ranking()
        self.watchers: tuple[Frozen, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.rows.nbytes + self._keys.nbytes + self._tree.nbytes + self._roots.nbytes)

    def apply(
        self, signs: Int8s, slots: Int32s, columns: Sequence[Any], associations: Int32s | None = None
    ) -> tuple[Int32s, Int32s]:
        """Put rows in and take equal ones out; see ``SortedList``."""
        n, signs, slots = len(slots), np.ascontiguousarray(signs), np.ascontiguousarray(slots)
        words, entries = self.rows.prepare(signs, slots, columns)
        self._reserve(0)
        keys = self._sort_keys([columns[column.index] for column in self.order], n)
        out, ranks = np.empty(n, np.int32), np.empty(n, np.int32)
        body = self.rows.body()
        kernels.apply(
            signs, slots, entries, self.rows.unique is not None, words, *body, keys, self._keys, self._texts,
            self._tree, self._roots, out, ranks,
        )  # fmt: skip
        self.rows.forget_identities(signs, entries)
        self.rows.start_associations(signs, out, associations)
        return out, ranks

    def remove(self, rows: Int32s) -> None:
        """Take rows out by number; see ``SortedList``."""
        if not len(rows):
            return
        rows = np.ascontiguousarray(rows)
        self.rows.keep_slots_of(rows)
        _, _, _, links, ends, _, meta = self.rows.body()
        kernels.remove(rows, links, ends, meta, self._tree, self._roots)

    def associate(self, rows: Int32s, changes: Int32s) -> Int32s:
        """Count partners of rows up or down."""
        return self.rows.associate(rows, changes)

    def associations(self, rows: Int32s) -> Int32s:
        """Partners of rows."""
        return self.rows.associations(rows)

    def rank(self, signs: Int8s, slots: Int32s, columns: Sequence[Any], places: Places) -> Iterator[Ranked]:
        """Put rows in and take equal ones out, and tell what changes at the first places; see ``SortedList``."""
        n, signs, slots = len(slots), np.ascontiguousarray(signs), np.ascontiguousarray(slots)
        if self.keeping is Keeping.BEST:
            # Most rows of a batch may not stay: only what rows are compared by is put into state at first.
            words, entries = np.zeros((n, 0), np.int64), NO_SLOTS
            self.rows.store.compact()
            self.rows.keep_slots(slots)
            text_at = np.array([self.rows.store.word_of[index] for index in self._text_columns], np.int32)
            text_words = np.zeros((n, len(text_at)), np.int64)
            for place, index in enumerate(self._text_columns):
                text_words[:, place] = self.rows.store.store_bytes(columns[index])
        else:
            words, entries = self.rows.prepare(signs, slots, columns, spare=1)
            text_at, text_words = NO_SLOTS, np.zeros((n, 0), np.int64)
        self._reserve(n + 1)
        keys = self._sort_keys([columns[column.index] for column in self.order], n)
        scratch = self._ranking
        scratch.reserve(self.rows.capacity, len(self._roots), n)
        arrays = (
            signs, slots, entries, words, text_words, text_at, *self.rows.body(), keys, self._keys, self._texts,
            self._tree, self._roots,
        )  # fmt: skip
        yield from scratch.told(self.keeping.value, places, arrays, columns, self.rows)
        # Arrays that someone looks at are copied when they grow.
        del arrays
        placed = scratch.placed[:n]
        mine = np.flatnonzero(placed >= 0)
        ids = placed[mine]
        scratch.origin[ids] = -1
        if self.keeping is Keeping.BEST:
            stay = self.rows.alive(ids)
            self.rows.store.write_new(ids[stay], LateColumns.of(columns, mine[stay]))
        gone, owners = scratch.freed(self.rows)
        if self.keeping is Keeping.REPLACED and len(gone):
            self.rows.forget_freed(gone, owners)
        elif self.keeping is Keeping.ALL:
            self.rows.forget_identities(signs, entries)
        scratch.settle(self.rows)

    def _reserve(self, spare: int) -> None:
        """Room for the sort keys of all rows and some more, and for the roots of all slots."""
        self.rows.reserve(spare)
        size = self.rows.capacity
        if size > len(self._keys):
            grow(self, "_keys", size)
            grow(self, "_tree", size)
        before, slots = len(self._roots), self.rows.parent.high_water
        if slots > before:
            grow(self, "_roots", slots)
            self._roots[before:] = -1

    def _sort_keys(self, columns: Sequence[Any], n: int) -> Int64s:
        """What rows are sorted by, (n, k); of the first sort columns, if there are fewer columns."""
        keys = np.zeros((n, len(self._texts)), np.int64)
        start = 0
        for column, array, stop in zip(self.order, columns, self._parts, strict=False):
            valid = validity(array)
            first = column.ascending if column.nulls_first is None else column.nulls_first
            null, there = (0, 1) if first else (1, 0)
            keys[:, start] = there if valid is None else np.where(valid, there, null)
            if not is_bytes_type(array.type):
                for place, word in enumerate(_rising_words(array)):
                    word = word if column.ascending else ~word
                    keys[:, start + 1 + place] = word if valid is None else np.where(valid, word, 0)
            start = stop
        return keys

    def ranks(self, rows: Int32s) -> Int32s:
        """How many rows of its slot stand before each live row."""
        out = np.empty(len(rows), np.int32)
        kernels.ranks_of(np.ascontiguousarray(rows), self._tree, out)
        return out

    def rows_of(self, slots: Int32s, first: Int64s | int = 0, count: int | None = None) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row), by position and sort order."""
        held = self.counts(slots).astype(np.int64)
        start = np.minimum(np.maximum(np.broadcast_to(np.asarray(first, np.int64), held.shape), 0), held)
        stop = held if count is None else np.minimum(start + count, held)
        return self._walk(slots, start, stop)

    def between(
        self,
        slots: Int32s,
        low: Sequence[Any] | None = None,
        high: Sequence[Any] | None = None,
        *,
        with_low: bool = True,
        with_high: bool = True,
    ) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row) of rows between bounds; see ``SortedList``."""
        held = self.counts(slots).astype(np.int64)
        start = np.zeros(len(slots), np.int64) if low is None else self._count_before(slots, low, not with_low)
        stop = held if high is None else self._count_before(slots, high, with_high)
        return self._walk(slots, start, np.maximum(start, stop))

    def count_between(self, slots: Int32s, low: Sequence[Any] | None, high: Sequence[Any] | None) -> Int64s:
        """How many rows of each slot stand between bounds."""
        start = np.zeros(len(slots), np.int64) if low is None else self._count_before(slots, low, False)
        stop = self.counts(slots).astype(np.int64) if high is None else self._count_before(slots, high, True)
        counts: Int64s = np.maximum(stop - start, 0)
        return counts

    def _count_before(self, slots: Int32s, bounds: Sequence[Any], equal_too: bool) -> Int64s:
        """Rows before bounds of the first sort columns. Bounds stand behind all rows for the time of the question."""
        self.rows.store.compact()
        n, parts = len(slots), self._parts[len(bounds) - 1]
        self._reserve(n)
        spare = self.rows.next_row
        self._keys[spare : spare + n] = self._sort_keys(bounds, n)
        for column, array in zip(self.order, bounds, strict=False):
            if is_bytes_type(array.type):
                word = self.rows.store.word_of[column.index]
                self.rows.store.rows[spare : spare + n, word] = self.rows.store.store_bytes(array)
        counts = np.empty(n, np.int64)
        kernels.count_before(
            np.ascontiguousarray(slots), spare, parts, equal_too, self._keys, self._texts, self.rows.store.rows,
            self.rows.store.arena, self._tree, self._roots, counts,
        )  # fmt: skip
        return counts

    def _walk(self, slots: Int32s, start: Int64s, stop: Int64s) -> tuple[Int32s, Int32s]:
        starts = np.zeros(len(slots) + 1, np.int64)
        np.cumsum(stop - start, out=starts[1:])
        probes, found = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.int32)
        if len(found):
            kernels.walk(
                np.ascontiguousarray(slots), np.ascontiguousarray(start), starts, self._tree, self._roots, probes, found
            )
        return probes, found

    def counts(self, slots: Int32s) -> Int32s:
        """Rows of each slot; none at -1."""
        return np.where(slots < 0, np.int32(0), self.rows.counts(slots)).astype(np.int32)

    def gather(self, rows: Int32s) -> list[Any]:
        """Columns of rows."""
        return self.rows.gather(rows)

    def drop_slots(self, slots: Int32s) -> None:
        """Take out every row of the slots."""
        self.rows.drop_slots(slots)
        self._roots[slots[slots < len(self._roots)]] = -1

    def freeze(self, moment: Moment) -> Frozen:
        """The rows of this moment; see ``Freezable``."""
        return Frozen(self, parts={"rows": moment.of(self.rows)})

    def save(self) -> Any:
        """Parent keys and columns of all rows, as the row list saves them: in order of arrival."""
        return self.rows.save()

    def load(self, table: Any) -> None:
        """Put in the rows of a saved table."""
        slots, columns = self.rows.rows_of_table(table)
        self.apply(np.ones(len(slots), np.int8), slots, columns, self.rows.associations_of_table(table))


def _rising_words(array: Any) -> list[Int64s]:
    """Words of a fixed-width array that compare as unsigned in the order of the values, the weightiest first.

    Zeros are equal; NaN comes after all numbers.
    """
    words = list(value_words(array).words)
    if pa.types.is_floating(array.type):
        numbers = words[0].view(np.float64) + 0.0
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        return [np.where(bits < 0, ~bits, bits ^ _LOWEST)]
    words.reverse()
    words[0] = words[0] ^ _LOWEST
    return words
