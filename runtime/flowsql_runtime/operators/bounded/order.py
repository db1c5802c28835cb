"""Orders of whole columns: rows as words that compare as Flink compares the values, and sorts by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_compute.keys import by_value, is_bytes_type
from flowsql_core.arrow import compute as pc
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_core.record import record
from flowsql_runtime.kernels.bounded.quick_sort import quick_sort
from flowsql_runtime.operators.rank.order import sort_key
from flowsql_runtime.state.flat_rows import flat_columns

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: Words of rows, the one that decides first in front; each (n,) and of any kind of integers.
Words = list[npt.NDArray[Any]]

_MAGNITUDE = np.int64(2**63 - 1)
_LOWEST = np.int64(-(2**63))


def sort_words(columns: Sequence[Any], order: OrderKeys) -> Words:
    """What rows are sorted by. NULL stands where the key says; NaN is the largest number, -0.0 stands before 0.0."""
    words: Words = []
    for index, descending, nulls_first in order:
        for part in flat_columns(sort_key(columns[index])):
            valid = validity(part)
            if valid is not None and not valid.all():
                words.append(valid if nulls_first else ~valid)
            else:
                valid = None
            for word in _ascending(part):
                placed = ~word if descending else word
                # What stands under a NULL decides nothing.
                words.append(placed if valid is None else np.where(valid, placed, placed.dtype.type(0)))
    return words


def sorter_words(columns: Sequence[Any], order: OrderKeys, limited: bool = False) -> Words:
    """Return what Flink's sort compares: :func:`sort_words`, but the zeros sort alike where their signs are not seen.

    Flink compares the first 16 bytes of a row's keys as bytes, a byte for NULL in front of each, and then values. Text
    takes all bytes that are left; a type without such bytes ends them. A sort that is ``limited`` to its first rows
    compares values alone.

    Source: Flink, ``SortCodeGenerator`` (``MAX_NORMALIZED_KEY_LEN``).
    """
    left, seen = 0 if limited else _NORMALIZED_BYTES, list(columns)
    for index, _, _ in order:
        if left < 2 or pa.types.is_nested(columns[index].type):
            seen[index] = by_value(columns[index])
        left -= _normalized_bytes(columns[index].type)
    return sort_words(seen, order)


#: Bytes of a row's keys that Flink's sort compares before it looks at values.
_NORMALIZED_BYTES: Final = 16


def _normalized_bytes(type_: Any) -> int:
    """Bytes of a key with the one for NULL; :data:`_NORMALIZED_BYTES` where no key behind it is compared by bytes."""
    if pa.types.is_boolean(type_):
        return 2
    if pa.types.is_primitive(type_) and not pa.types.is_decimal(type_):
        return 1 + int(type_.bit_width) // 8
    return 9 if pa.types.is_decimal(type_) and type_.precision <= 18 else _NORMALIZED_BYTES


def sorted_positions(words: Words, n: int) -> Int64s:
    """Positions of rows in order; rows that sort alike stand as Flink's sort leaves them."""
    rows = np.arange(n, dtype=np.int64)
    if words:
        quick_sort(word_matrix(words, n), rows, np.empty((128, 3), np.int64))
    return rows


def word_matrix(words: Words, n: int) -> npt.NDArray[np.int64]:
    """Words as kernels compare them, (n, w)."""
    matrix = np.empty((n, len(words)), np.int64)
    for place, word in enumerate(words):
        # Unsigned words are moved to where signed ones compare alike.
        matrix[:, place] = word.view(np.int64) ^ _LOWEST if word.dtype == np.uint64 else word
    return matrix


def stable_positions(words: Words, n: int) -> Int64s:
    """Positions of rows in order; rows that sort alike stay as they are."""
    if not words:
        return np.arange(n, dtype=np.int64)
    found: Int64s = np.lexsort(words[::-1])
    return found


def begins(words: Words, n: int) -> Bools:
    """Of sorted words the rows that differ from the one before them, (n,); the first does."""
    first = np.zeros(n, np.bool_)
    first[:1] = True
    for word in words:
        first[1:] |= word[1:] != word[:-1]
    return first


@record
class ComparedWord:
    """A word of sorted rows as Flink compares neighbours: 0.0 for -0.0, and NaN, (n,), is neither less nor greater.

    ``nan``: None without any.
    """

    word: npt.NDArray[Any]
    nan: Bools | None


def compared_words(columns: Sequence[Any], order: OrderKeys) -> list[ComparedWord]:
    """Return what tells neighbours of sorted rows apart.

    Source: Flink, ``GenerateUtils.generateCompare`` (``a > b ? 1 : a < b ? -1 : 0``).
    """
    found: list[ComparedWord] = []
    for index, descending, nulls_first in order:
        for part in flat_columns(sort_key(columns[index])):
            nan = None
            if pa.types.is_floating(part.type):
                values, valid = values_and_validity(part)
                nan = np.isnan(values) if valid is None else np.isnan(values) & valid
                nan = nan if nan.any() else None
            words = sort_words([by_value(part)], ((0, descending, nulls_first),))
            found += [ComparedWord(word, nan if last else None) for last, word in _with_last(words)]
    return found


def _with_last(words: Words) -> Iterator[tuple[bool, npt.NDArray[Any]]]:
    """Each word, and whether it is the last one: a word in front of the values says which are NULL."""
    for place, word in enumerate(words):
        yield place == len(words) - 1, word


def begins_by_value(words: Sequence[ComparedWord], n: int, nan_begins: bool = False) -> Bools:
    """True for sorted rows that differ from the one before them, (n,); the first does.

    A row with NaN does not differ from its neighbours. ``nan_begins``: it differs from all, itself too, as SQL's ``=``
    has it.
    """
    first = np.zeros(n, np.bool_)
    first[:1] = True
    for one in words:
        differs = one.word[1:] != one.word[:-1]
        if one.nan is not None:
            strange = one.nan[1:] | one.nan[:-1]
            differs = differs | strange if nan_begins else differs & ~strange
        first[1:] |= differs
    return first


def _ascending(array: Any) -> Words:
    if is_bytes_type(array.type):
        return [_ranks(array)]
    values, _ = values_and_validity(array)
    if values.ndim == 2:
        return [values[:, 1], values[:, 0].view(np.uint64)]
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64)).view(np.int64)
        bits = np.where(np.isnan(values), np.float64("nan").view(np.int64), bits)
        return [bits ^ ((bits >> np.int64(63)) & _MAGNITUDE)]
    return [values.astype(np.int64, copy=False)]


def _ranks(array: Any) -> Int64s:
    """Places of values among the different ones, by their bytes; any at NULL."""
    if pa.types.is_fixed_size_binary(array.type):
        array = pc.cast(array, pa.binary())
    coded = pc.dictionary_encode(array)
    texts = coded.dictionary
    order, _ = values_and_validity(pc.sort_indices(texts))
    ranks = np.empty(max(len(texts), 1), np.int64)
    ranks[order] = np.arange(len(texts))
    codes, _ = values_and_validity(pc.fill_null(coded.indices, 0))
    found: Int64s = ranks[codes]
    return found
