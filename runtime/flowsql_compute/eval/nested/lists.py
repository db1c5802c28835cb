"""Lists over whole columns: rows as ranges of flat values, elements as integer codes, cutting and gathering by ranges.

Every function here works on the offsets and the flat values of a column; none looks at a row by itself.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import (
    Bools,
    floating_bits,
    pack_validity,
    spread,
    string_buffers,
    validity,
    values_and_validity,
)
from flowsql_compute.eval.text.columns import KERNEL_ROWS
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]

#: The code of a NULL element.
NULL_CODE = -1


@record
class Ranges:
    """The rows of a list or map column: row i holds the flat values ``starts[i]`` to ``starts[i] + sizes[i]``.

    NULL rows have size 0; ``valid`` is None when there are none.
    """

    starts: Int64s
    sizes: Int64s
    valid: Bools | None

    def positions(self) -> Int64s:
        """Places of all elements among the flat values, row by row, (sum of sizes,)."""
        total = int(self.sizes.sum())
        if total >= KERNEL_ROWS:
            return _places(self.starts, self.sizes, total)
        ends = np.cumsum(self.sizes)
        places: Int64s = np.arange(total) + np.repeat(self.starts - (ends - self.sizes), self.sizes)
        return places

    def owners(self) -> Int64s:
        """The row of each element, (sum of sizes,)."""
        total = int(self.sizes.sum())
        if total < KERNEL_ROWS:
            return np.repeat(np.arange(len(self.sizes)), self.sizes)
        from flowsql_compute.kernels.lists import owners_of

        owners = np.empty(total, dtype=np.int64)
        owners_of(for_kernel(self.sizes), owners)
        return owners

    def within(self) -> Int64s:
        """The place of each element in its row, from 0, (sum of sizes,)."""
        return Ranges(np.zeros(len(self.sizes), dtype=np.int64), self.sizes, None).positions()


def _places(starts: Int64s, sizes: Int64s, total: int) -> Int64s:
    from flowsql_compute.kernels.lists import places_of

    places = np.empty(total, dtype=np.int64)
    places_of(for_kernel(starts), for_kernel(sizes), places)
    return places


def column_of(datum: Any, n: int) -> pa.Array:
    """A scalar spread over ``n`` rows; a column as it is."""
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


def ranges_of(array: pa.Array) -> Ranges:
    """The ranges of a list or map column."""
    raw = np.frombuffer(array.buffers()[1], dtype=np.int32, count=array.offset + len(array) + 1)[array.offset :]
    offsets = raw.astype(np.int64)
    sizes, valid = np.diff(offsets), validity(array)
    if valid is not None:
        sizes = np.where(valid, sizes, 0)
    return Ranges(offsets[:-1], sizes, valid)


def packed(array: pa.Array) -> tuple[Ranges, pa.Array]:
    """Ranges whose rows follow each other without a gap from 0, and the flat values of just those."""
    rows = ranges_of(array)
    total = int(rows.sizes.sum())
    ends = np.cumsum(rows.sizes)
    starts = ends - rows.sizes
    first = int(rows.starts[0]) if len(rows.starts) else 0
    if np.array_equal(rows.starts[rows.sizes > 0] - first, starts[rows.sizes > 0]):
        return Ranges(starts, rows.sizes, rows.valid), array.values.slice(first, total)
    values = pc.take(array.values, pa.array(rows.positions()), boundscheck=False)
    return Ranges(starts, rows.sizes, rows.valid), values


def make_list(values: pa.Array, sizes: Int64s, valid: Bools | None, type_: pa.DataType) -> pa.Array:
    """A list or map column of ``type_``: rows of ``sizes`` elements, one behind another in ``values``."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    child = type_.value_type if pa.types.is_list(type_) else pa.struct([type_.key_field, type_.item_field])
    if values.type != child:
        values = pc.cast(values, child)
    return pa.Array.from_buffers(type_, len(sizes), [pack_validity(valid), pa.py_buffer(offsets)], children=[values])


def keep(values: pa.Array, rows: Ranges, kept: Bools, type_: pa.DataType) -> pa.Array:
    """The list column with only those elements of packed rows where ``kept`` holds."""
    if kept.all():
        return make_list(values, rows.sizes, rows.valid, type_)
    sizes = _kept_sizes(rows, kept)
    taken = pc.take(values, pa.array(np.flatnonzero(kept)), boundscheck=False)
    return make_list(taken, sizes, rows.valid, type_)


def _kept_sizes(rows: Ranges, kept: Bools) -> Int64s:
    """How many elements of each packed row are kept."""
    before = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum(kept, out=before[1:])
    sizes: Int64s = before[rows.starts + rows.sizes] - before[rows.starts]
    return sizes


def concatenated(parts: list[tuple[Ranges, pa.Array]]) -> tuple[Ranges, pa.Array]:
    """Rows of several packed lists, row by row one behind another; a row is NULL where one of them is."""
    valid = both_valid(*(rows.valid for rows, _ in parts))
    starts, all_sizes = _stacked(parts, valid)
    pieces = Ranges(starts.T.reshape(-1), all_sizes.T.reshape(-1), None)
    values = pc.take(pa.concat_arrays([values for _, values in parts]), pa.array(pieces.positions()), boundscheck=False)
    sizes = all_sizes.sum(axis=0)
    return Ranges(np.cumsum(sizes) - sizes, sizes, valid), values


def both_valid(*masks: Bools | None) -> Bools | None:
    """Where all masks hold; None for everywhere."""
    made: Bools | None = None
    for mask in masks:
        if mask is not None:
            made = mask if made is None else made & mask
    return made


# Elements as integers


class Equality(enum.Enum):
    """When two FLOATs or DOUBLEs, also as fields of rows, are one element.

    VALUE: as SQL's ``=`` has it: -0.0 is 0.0, no NaN equals another. HASHED: their hashes are equal, too: the zeros are
    two. STORED: their bits are equal: the zeros are two, NaN is one. Inside of arrays and maps that are elements only
    the bits count.
    """

    VALUE = 1
    HASHED = 2
    STORED = 3


def element_codes(array: pa.Array, equality: Equality = Equality.VALUE) -> Int64s:
    """Integers that are equal exactly where the values are, (n,); :data:`NULL_CODE` at NULL, others are not negative.

    Nested values are equal by their parts, a NULL part equals a NULL part; the order of a map's entries does not count.
    """
    type_ = array.type
    if pa.types.is_null(type_):
        return np.full(len(array), NULL_CODE, dtype=np.int64)
    if pa.types.is_struct(type_):
        columns = [element_codes(pc.struct_field(array, [index]), equality) for index in range(type_.num_fields)]
        codes = _row_codes(columns, len(array))
    elif pa.types.is_map(type_):
        codes = _map_codes(array)
    elif pa.types.is_list(type_):
        rows, values = packed(array)
        codes = _list_codes(rows, element_codes(values, Equality.STORED))
    elif pa.types.is_floating(type_):
        return _float_codes(array, equality)
    elif _is_counted(type_) and (near := _near_codes(array)) is not None:
        codes = near
    else:
        encoded, _ = values_and_validity(pc.dictionary_encode(array).indices)
        codes = encoded.astype(np.int64)
    valid = validity(array)
    return codes if valid is None else np.where(valid, codes, NULL_CODE)


def _is_counted(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_temporal(type_))


def _near_codes(array: pa.Array) -> Int64s | None:
    """Distances from the smallest number; None where they need more than 31 bits."""
    values, valid = values_and_validity(array)
    known = values if valid is None else values[valid]
    if not len(known):
        return np.zeros(len(values), dtype=np.int64)
    low, high = int(known.min()), int(known.max())
    return values.astype(np.int64) - low if high - low < 2**31 else None


def _float_codes(array: pa.Array, equality: Equality) -> Int64s:
    values, valid = values_and_validity(array)
    codes = _codes_of(floating_bits(values + values.dtype.type(0) if equality is Equality.VALUE else values))
    if equality is not Equality.STORED:
        strange = np.flatnonzero(np.isnan(values))
        # A code of its own for each NaN.
        codes[strange] = len(codes) + np.arange(len(strange))
    return codes if valid is None else np.where(valid, codes, NULL_CODE)


def _codes_of(values: Int64s) -> Int64s:
    encoded, _ = values_and_validity(pc.dictionary_encode(pa.array(values)).indices)
    return encoded.astype(np.int64)


def _row_codes(columns: list[Int64s], n: int) -> Int64s:
    if not columns:
        return np.zeros(n, dtype=np.int64)
    codes = columns[0]
    for column in columns[1:]:
        high = int(column.max(initial=0)) + 2
        codes = _codes_of((codes + 1) * high + column + 1)
    return codes if len(columns) > 1 else codes + 1


def _list_codes(rows: Ranges, codes: Int64s) -> Int64s:
    """Codes of packed rows: the bytes of their elements' codes, dictionary-encoded."""
    offsets = np.zeros(len(rows.sizes) + 1, dtype=np.int32)
    np.cumsum(rows.sizes * 8, out=offsets[1:])
    texts = pa.Array.from_buffers(
        pa.binary(), len(rows.sizes), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(codes))]
    )
    encoded, _ = values_and_validity(pc.dictionary_encode(texts).indices)
    return encoded.astype(np.int64)


def _map_codes(array: pa.Array) -> Int64s:
    rows = ranges_of(array)
    places = pa.array(rows.positions())
    keys = element_codes(pc.take(array.keys, places, boundscheck=False), Equality.STORED)
    items = element_codes(pc.take(array.items, places, boundscheck=False), Equality.STORED)
    pairs = _row_codes([keys, items], len(keys))
    ordered = pairs[np.lexsort((pairs, rows.owners()))]
    return _list_codes(Ranges(np.cumsum(rows.sizes) - rows.sizes, rows.sizes, None), ordered)


def row_keys(owners: Int64s, codes: Int64s, width: int) -> Int64s:
    """One integer for each (row, element code); ``width``: more than any code."""
    return owners * (width + 1) + codes + 1


def first_of_equals(owners: Int64s, codes: Int64s) -> Bools:
    """Where an element is the first of its kind in its row."""
    if not len(codes):
        return np.zeros(0, dtype=np.bool_)
    seen = _codes_of(row_keys(owners, codes, int(codes.max()) + 1))
    # Dictionary codes are given in order of appearance: a new value raises the highest one so far.
    highest = np.maximum.accumulate(seen)
    first = np.ones(len(seen), dtype=np.bool_)
    first[1:] = seen[1:] > highest[:-1]
    return first


def united(
    parts: list[tuple[Ranges, pa.Array]], equality: Equality = Equality.VALUE
) -> tuple[Ranges, Int64s, Int64s] | None:
    """The different values of each row over several packed lists; a row is NULL where one of them is.

    Returns:
        The rows, and the places of each value among the flat values of all lists, one list behind another: where it
        stands first in its row and where it stands last. None for short columns and those of long rows.
    """
    n = len(parts[0][0].sizes)
    if n < KERNEL_ROWS or not all(_are_short(KERNEL_ROWS, rows) for rows, _ in parts):
        return None
    from flowsql_compute.kernels import lists

    valid = both_valid(*(rows.valid for rows, _ in parts))
    starts, sizes = _stacked(parts, valid)
    values = pa.concat_arrays([values for _, values in parts])
    firsts, lasts, counts = (np.empty(size, dtype=np.int64) for size in (len(values), len(values), n))
    if values.null_count or not _is_text(values.type):
        written = lists.unite_codes(starts, sizes, for_kernel(element_codes(values, equality)), firsts, lasts, counts)
    else:
        offsets, data = string_buffers(values)
        written = lists.unite_texts(starts, sizes, for_kernel(offsets), for_kernel(data), firsts, lasts, counts)
    return Ranges(np.cumsum(counts) - counts, counts, valid), firsts[:written], lasts[:written]


def _stacked(parts: list[tuple[Ranges, pa.Array]], valid: Bools | None) -> tuple[Int64s, Int64s]:
    """Starts among the flat values of all lists, one list behind another, and sizes; (lists, n) each."""
    sizes = np.stack([rows.sizes if valid is None else np.where(valid, rows.sizes, 0) for rows, _ in parts])
    bases = np.cumsum([0, *(len(values) for _, values in parts[:-1])])
    return np.stack([rows.starts + base for (rows, _), base in zip(parts, bases, strict=True)]), sizes


def first_places(rows: Ranges, values: pa.Array, equality: Equality = Equality.VALUE) -> Int64s:
    """For each value of packed rows, the place of the first one in its row that equals it; NULL equals NULL."""
    if not _are_short(len(values), rows) or values.null_count or not _is_text(values.type):
        return first_places_of_codes(rows, element_codes(values, equality))
    from flowsql_compute.kernels.lists import first_equal_texts

    offsets, data = string_buffers(values)
    firsts = np.empty(len(values), dtype=np.int64)
    first_equal_texts(for_kernel(rows.starts), for_kernel(rows.sizes), for_kernel(offsets), for_kernel(data), firsts)
    return firsts


def first_places_of_codes(rows: Ranges, codes: Int64s) -> Int64s:
    """The same by the values' codes."""
    firsts = np.empty(len(codes), dtype=np.int64)
    if _are_short(len(codes), rows):
        from flowsql_compute.kernels.lists import first_equals

        first_equals(for_kernel(rows.starts), for_kernel(rows.sizes), for_kernel(codes), firsts)
        return firsts
    if not len(codes):
        return firsts
    groups = _codes_of(row_keys(rows.owners(), codes, int(codes.max()) + 1))
    first = np.empty(int(groups.max()) + 1, dtype=np.int64)
    first[groups[::-1]] = np.arange(len(codes))[::-1]
    return first[groups]


def are_among(rows: Ranges, codes: Int64s, others: Ranges, other_codes: Int64s) -> Bools:
    """Whether each value of packed rows is among those of the same row of another column."""
    if _are_short(len(codes), rows, others):
        from flowsql_compute.kernels.lists import among

        found = np.empty(len(codes), dtype=np.bool_)
        among(
            for_kernel(rows.starts), for_kernel(rows.sizes), for_kernel(codes), for_kernel(others.starts),
            for_kernel(others.sizes), for_kernel(other_codes), found,
        )  # fmt: skip
        return found
    width = max(int(codes.max(initial=0)), int(other_codes.max(initial=0))) + 1
    known = pc.is_in(
        pa.array(row_keys(rows.owners(), codes, width)),
        value_set=pa.array(row_keys(others.owners(), other_codes, width)),
    )
    return values_and_validity(known)[0]


def greatest_places(rows: Ranges, keys: Int64s, counted: Bools) -> Int64s:
    """The place of the first value of each packed row with the greatest key among the counted ones; -1 without one."""
    n = len(rows.sizes)
    best = np.full(n, -1, dtype=np.int64)
    if n >= KERNEL_ROWS:
        from flowsql_compute.kernels import lists

        lists.greatest_places(for_kernel(rows.starts), for_kernel(rows.sizes), for_kernel(keys), counted, best)
        return best
    picked = np.flatnonzero(counted)
    if len(picked):
        keys, groups = keys[picked], rows.owners()[picked]
        starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
        top = np.maximum.reduceat(keys, starts)
        hits = picked[keys == np.repeat(top, np.diff(np.append(starts, len(keys))))]
        # The first one is written last.
        best[rows.owners()[hits[::-1]]] = hits[::-1]
    return best


def sorted_places(rows: Ranges, keys: Int64s, edges: npt.NDArray[np.int8]) -> Int64s:
    """Places of the values of packed rows, row by row in ascending order of ``edges``, then of ``keys``."""
    if not _are_short(len(keys), rows):
        return np.lexsort((keys, edges, rows.owners()))
    from flowsql_compute.kernels import lists

    places = np.empty(len(keys), dtype=np.int64)
    lists.sorted_places(for_kernel(rows.starts), for_kernel(rows.sizes), for_kernel(keys), edges, places)
    return places


#: Longer rows are not compared one element with another.
_SHORT = 64


def _are_short(values: int, *columns: Ranges) -> bool:
    return values >= KERNEL_ROWS and all(int(rows.sizes.max(initial=0)) <= _SHORT for rows in columns)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def ranks(array: pa.Array) -> Int64s:
    """Integers ordered as the values are (bytes of texts, NaN above all numbers), (n,); undefined at NULL.

    Equal values have equal integers, -0.0 and 0.0 too.
    """
    if pa.types.is_integer(array.type) or pa.types.is_temporal(array.type) or pa.types.is_boolean(array.type):
        values, _ = values_and_validity(array)
        return values.astype(np.int64)
    if pa.types.is_floating(array.type):
        numbers = values_and_validity(array)[0].astype(np.float64) + 0.0
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        # As integers, negative doubles stand the wrong way around.
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    encoded = pc.dictionary_encode(array)
    words = encoded.dictionary
    order, _ = values_and_validity(pc.sort_indices(words))
    rank = np.empty(len(words), dtype=np.int64)
    rank[order.astype(np.int64)] = np.arange(len(words))
    indices, valid = values_and_validity(encoded.indices)
    if not len(words):
        return np.zeros(len(array), dtype=np.int64)
    return rank[indices if valid is None else np.where(valid, indices, 0)]


def make_map(keys: pa.Array, values: pa.Array, rows: Ranges, type_: pa.DataType) -> pa.Array:
    """The map column of packed rows; of a row's equal keys the first one's place and the last one's value stay.

    Raises:
        NotSupportedYetError: a key is NULL.
    """
    if keys.null_count:
        # Arrow has no such maps; making one would end the process.
        raise NotSupportedYetError("a map with a NULL key")
    made = united([(Ranges(rows.starts, rows.sizes, None), keys)], Equality.STORED)
    if made is not None:
        different, first, last = made
        if len(first) < len(keys):
            keys = pc.take(keys, pa.array(first), boundscheck=False)
            values = pc.take(values, pa.array(last), boundscheck=False)
        return list_of_entries(keys, values, Ranges(different.starts, different.sizes, rows.valid), type_)
    sizes = rows.sizes
    firsts = first_places(rows, keys, Equality.STORED)
    places = np.arange(len(firsts))
    if not np.array_equal(firsts, places):
        # The last of equal keys stays: it is written last.
        last = np.empty(len(firsts), dtype=np.int64)
        last[firsts] = places
        stay = firsts == places
        first = np.flatnonzero(stay)
        keys = pc.take(keys, pa.array(first), boundscheck=False)
        values = pc.take(values, pa.array(last[first]), boundscheck=False)
        sizes = _kept_sizes(rows, stay)
    return list_of_entries(keys, values, Ranges(rows.starts, sizes, rows.valid), type_)


def list_of_entries(keys: pa.Array, values: pa.Array, rows: Ranges, type_: pa.DataType) -> pa.Array:
    """The map column of packed rows of entries whose keys differ and are not NULL."""
    offsets = np.zeros(len(rows.sizes) + 1, dtype=np.int32)
    np.cumsum(rows.sizes, out=offsets[1:])
    entry = pa.struct([type_.key_field, type_.item_field])
    child = pa.StructArray.from_arrays([keys, values], fields=list(entry))
    return pa.Array.from_buffers(
        type_, len(rows.sizes), [pack_validity(rows.valid), pa.py_buffer(offsets)], children=[child]
    )
