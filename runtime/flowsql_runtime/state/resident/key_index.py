"""Key columns -> slot ids in memory, one call per batch. Values stand by slot in the stores beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_compute.keys import MASK_BITS, BytesColumn, further_mask_words, is_bytes_type, key_columns, null_masks
from flowsql_runtime.kernels import key_table
from flowsql_runtime.state.arrow_words import array_of_bytes, array_of_words, word_count
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.resident.frozen import Frozen, Moment, copies, keep
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.stores import NO_BYTES, EncodedKeys

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

NO_MASKS: Final = np.zeros(0, np.uint64)
_SMALLEST: Final = 64


@dataclass(frozen=True, eq=False, slots=True)
class KeyWords(EncodedKeys):
    """Keys of a batch as words (n, w), NULL bits of the first 64 columns (n,) or empty, and the bytes that long strings
    refer to. NULL bits of further columns are words behind those of the columns."""

    words: UInt64s
    masks: UInt64s
    scratch: Bytes

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: npt.NDArray[Any]) -> KeyWords:
        """The keys of some rows."""
        masks = self.masks[rows] if self.masks.size else self.masks
        return KeyWords(self.words[rows], masks, self.scratch)

    def with_namespaces(self, namespaces: Int64s) -> KeyWords:
        """The same keys of a namespaced index under other namespaces."""
        words = self.words.copy()
        words[:, 0] = namespaces.view(np.uint64)
        return KeyWords(words, self.masks, self.scratch)


class ResidentKeyIndex:
    """Slots of keys. A slot id is stable while its key lives and is used again after ``remove``.

    Args:
        types: Arrow types of the key columns; none: one global key.
        namespaced: a namespace (int64, e.g. a window end) is part of the key; it stands in word 0.

    Equality is on the words and bytes, never on the hash; NULL equals NULL.
    """

    def __init__(self, types: Sequence[Any], namespaced: bool = False) -> None:
        self.types = tuple(types)
        self._flat = tuple(part for type_ in self.types for part in flat_types(type_))
        self.namespaced = namespaced
        kinds: list[int] = [0] if namespaced or not self.types else []
        self._first_word: list[int] = []
        for type_ in self._flat:
            self._first_word.append(len(kinds))
            if is_bytes_type(type_):
                kinds += [1, 2]
            else:
                kinds += [0] * word_count(type_)
        self._further_masks = len(kinds)
        kinds += [0] * further_mask_words(len(self._flat))
        self._width = len(kinds)
        self._var = np.array(kinds if any(kinds) else [], np.uint8)
        self._meta = np.zeros(key_table.META_SIZE, np.int64)
        self._table = np.zeros(_SMALLEST, np.uint64)
        self._slot_words = np.empty((self._limit, self._width), np.uint64)
        self._slot_masks = NO_MASKS
        self._arena = NO_BYTES
        #: By slot, 1 where a key lives.
        self._live = np.zeros(len(self._slot_words), np.uint8)
        self.watchers: tuple[Frozen, ...] = ()

    def __len__(self) -> int:
        return int(self._meta[key_table.LIVE])

    @property
    def high_water(self) -> int:
        """One more than the highest slot ever given out: what stores by slot must hold."""
        return int(self._meta[key_table.NEXT])

    @property
    def _limit(self) -> int:
        return len(self._table) * 7 // 10

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        words = self._slot_words.nbytes + self._slot_masks.nbytes + self._live.nbytes
        return int(self._table.nbytes + words + self._arena.nbytes)

    # -- keys of a batch

    def encode(self, columns: Sequence[Any], namespaces: Int64s | None = None, num_rows: int | None = None) -> KeyWords:
        """Words of the key columns (Arrow arrays of the index's types), with the namespace first if there is one."""
        n = len(namespaces) if namespaces is not None else len(columns[0]) if columns else (num_rows or 0)
        parts = [next(iter(key_columns(part))) for column in columns for part in flat_columns(column)]
        masks, further_masks = null_masks([part.valid for part in parts], n)
        if self._width == 1:
            single = namespaces if namespaces is not None else None
            for part in parts:
                assert not isinstance(part, BytesColumn)
                single = part.words[0]
            if single is None:
                single = np.zeros(n, np.int64)
            return KeyWords(for_kernel(single).view(np.uint64).reshape(n, 1), masks, NO_BYTES)
        words = np.empty((n, self._width), np.uint64)
        scratch = NO_BYTES
        if self._var.size:
            total = sum(
                int(np.where(part.lengths > 15, part.lengths + 8, 0).sum())
                for part in parts
                if isinstance(part, BytesColumn)
            )
            scratch = np.empty(total, np.uint8)
        used = 0
        if namespaces is not None:
            words[:, 0] = namespaces.view(np.uint64)
        for first, part in zip(self._first_word, parts, strict=True):
            if isinstance(part, BytesColumn):
                starts, lengths = for_kernel(part.starts), for_kernel(part.lengths)
                used = key_table.encode_bytes(starts, lengths, for_kernel(part.data), words, first, scratch, used)
            else:
                for offset, word in enumerate(part.words):
                    words[:, first + offset] = word.view(np.uint64)
        for offset, word in enumerate(further_masks, self._further_masks):
            words[:, offset] = word.view(np.uint64)
        return KeyWords(words, masks, scratch)

    def encoded_at(self, slots: Int32s) -> KeyWords:
        """The keys of live slots, as another index of the same shape takes them."""
        masks = self._slot_masks[slots] if self._slot_masks.size else NO_MASKS
        return KeyWords(self._slot_words[slots], masks, self._arena)

    # -- lookup and change

    def lookup(self, keys: EncodedKeys, skip: Bytes = NO_BYTES) -> Int32s:
        """Slot of each row, int32 (n,); -1 where the key is not there or ``skip`` is not 0."""
        assert isinstance(keys, KeyWords)
        out = np.empty(len(keys), np.int32)
        self._probe(keys, skip, 0, False, out, np.empty(0, np.int32), np.zeros(1, np.int64))
        return out

    def _probe(
        self, keys: KeyWords, skip: Bytes, row: int, insert: bool, out: Int32s, fresh: Int32s, count: Int64s
    ) -> int:
        if self._width == 1 and not (self._slot_masks.size or keys.masks.size or skip.size):
            reached = key_table.probe_word(
                self._table, self._slot_words, keys.words.reshape(-1), self._meta, row, insert, self._limit, out,
                fresh, count,
            )  # fmt: skip
        else:
            reached = key_table.probe(
                self._table, self._slot_words, self._slot_masks, self._arena, self._var, keys.words, keys.masks,
                keys.scratch, skip, self._meta, row, insert, self._limit, out, fresh, count,
            )  # fmt: skip
        return int(reached)

    def find_or_insert(self, keys: EncodedKeys, skip: Bytes = NO_BYTES) -> tuple[Int32s, Int32s]:
        """Slot of each row, int32 (n,), and the rows (rising) whose keys were new."""
        assert isinstance(keys, KeyWords)
        n = len(keys)
        out = np.empty(n, np.int32)
        fresh = np.empty(n, np.int32)
        count = np.zeros(1, np.int64)
        if keys.masks.size and not self._slot_masks.size:
            self._slot_masks = np.zeros(len(self._slot_words), np.uint64)
        if keys.scratch.size:
            self._reserve_arena(len(keys.scratch))
        row = 0
        while True:
            row = self._probe(keys, skip, row, True, out, fresh, count)
            if row >= n:
                break
            self._grow(2 * len(self._table))
        fresh = fresh[: count[0]]
        if len(fresh):
            self._came(out[fresh])
        return out, fresh

    def _came(self, slots: Int32s) -> None:
        """Slots that have a key now. What stood at them before belonged to nobody."""
        keep(self, slots)
        self._live[slots] = 1

    def reserve(self, keys: int) -> None:
        """Make room for so many keys at once, where it would grow step by step."""
        size = len(self._table)
        while size * 7 // 10 < keys:
            size *= 2
        if size > len(self._table):
            self._grow(size)

    def _grow(self, size: int) -> None:
        table = np.zeros(size, np.uint64)
        key_table.move_entries(self._table, table)
        self._table = table
        if len(self._slot_words) < self._limit:
            grow(self, "_slot_words", self._limit)
            grow(self, "_live", len(self._slot_words))
        if self._slot_masks.size and len(self._slot_masks) < len(self._slot_words):
            grow(self, "_slot_masks", len(self._slot_words))

    def _reserve_arena(self, extra: int) -> None:
        used = int(self._meta[key_table.ARENA])
        if used + extra <= len(self._arena):
            return
        # Positions of a snapshot that is being taken stay what they are.
        if self._meta[key_table.GARBAGE] * 2 > used and not self.watchers:
            live = self.live_slots()
            fresh = np.empty(used - int(self._meta[key_table.GARBAGE]) + extra, np.uint8)
            self._meta[key_table.ARENA] = key_table.compact_arena(self._slot_words, self._var, live, self._arena, fresh)
            self._meta[key_table.GARBAGE] = 0
        else:
            fresh = np.empty(max(used + extra, 2 * len(self._arena)), np.uint8)
            fresh[:used] = self._arena[:used]
        self._arena = fresh

    def expect(self, columns: Sequence[Any], num_rows: int) -> None:
        """All keys are in memory."""

    def remove(self, slots: Int32s) -> None:
        """Forget the keys of live, distinct slots; their ids are given out again."""
        if len(slots):
            slots = np.ascontiguousarray(slots)
            keep(self, slots)
            self._live[slots] = 0
            key_table.remove(self._table, self._slot_words, self._slot_masks, self._arena, self._var, self._meta, slots)

    def clear(self) -> None:
        """Forget every key; the memory stays."""
        keep(self, np.arange(self.high_water, dtype=np.int32))
        self._live[: self.high_water] = 0
        self._table.fill(0)
        self._meta.fill(0)

    def freeze(self, moment: Moment) -> Frozen:
        """The keys of this moment, to be read back by slot; see ``Freezable``."""
        high = self.high_water
        changing = {"_slot_words": high, "_live": high}
        values: dict[str, Any] = copies(("_meta", "_var"), self) | {"_slot_masks": NO_MASKS}
        if self._slot_masks.size:
            changing["_slot_masks"] = high
        return Frozen(self, rows=changing, prefixes={"_arena": int(self._meta[key_table.ARENA])}, values=values)

    # -- reading back

    def live_slots(self) -> Int32s:
        """All live slots, rising, int32. Reads a byte a slot: for snapshots and compaction alone."""
        return np.flatnonzero(self._live[: self.high_water]).astype(np.int32)

    def namespaces_at(self, slots: Int32s) -> Int64s:
        """Namespace of each slot."""
        words: Int64s = self._slot_words[slots, 0].view(np.int64)
        return words

    def columns_at(self, slots: Int32s) -> list[Any]:
        """Key columns of live slots as Arrow arrays of the index's types."""
        columns = []
        for index, (type_, first) in enumerate(zip(self._flat, self._first_word, strict=True)):
            valid: Bools | None = None
            if index >= MASK_BITS or self._slot_masks.size:
                word = index // MASK_BITS
                bits = self._slot_words[slots, self._further_masks + word - 1] if word else self._slot_masks[slots]
                valid = (bits >> np.uint64(index % MASK_BITS)) & np.uint64(1) == 0
            if is_bytes_type(type_):
                offsets = np.empty(len(slots) + 1, np.int64)
                slots = np.ascontiguousarray(slots)
                total = key_table.decode_bytes(self._slot_words, first, slots, self._arena, offsets, NO_BYTES)
                data = np.empty(max(total, 1), np.uint8)
                key_table.decode_bytes(self._slot_words, first, slots, self._arena, offsets, data)
                columns.append(array_of_bytes(offsets, data, valid, type_))
            else:
                words = [self._slot_words[slots, first + part].view(np.int64) for part in range(word_count(type_))]
                columns.append(array_of_words(words, valid, type_))
        return whole_columns(self.types, columns)
