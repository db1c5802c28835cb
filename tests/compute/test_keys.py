"""Key hashing: the xxhash package is the judge; equal keys hash equally whatever their Arrow form."""

from __future__ import annotations

import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from flowsql_compute import keys


def _words(*values: int) -> bytes:
    return b"".join(struct.pack("<q", value) for value in values)


def _hash(data: bytes) -> int:
    return xxhash.xxh64_intdigest(data)


@pytest.mark.parametrize("width", range(1, 12))
def test_rows_of_integers_hash_as_their_words(width: int) -> None:
    rng = np.random.default_rng(width)
    rows = rng.integers(-(2**63), 2**63 - 1, size=(50, width))
    got = keys.key_hash64([pa.array(rows[:, j]) for j in range(width)])
    assert got.tolist() == [_hash(_words(*map(int, row))) for row in rows]


def test_null_rows_end_in_a_mask_word() -> None:
    got = keys.key_hash64([pa.array([1, None, None]), pa.array([5, 6, None], pa.int32()), pa.array([7, 7, 7])])
    want = [_hash(_words(1, 5, 7)), _hash(_words(0, 6, 7, 1)), _hash(_words(0, 0, 7, 3))]
    assert got.tolist() == want


def test_null_bits_of_columns_past_the_64th_stand_in_words_of_every_row() -> None:
    zeros = [pa.array([0, 0, 0])] * 64
    got = keys.key_hash64([*zeros, pa.array([0, None, None]), pa.array([0, 0, None])])
    assert got.tolist() == [_hash(_words(*[0] * 66, bits)) for bits in (0, 1, 3)]
    got = keys.key_hash64([pa.array(["a", None]), *[pa.array([0, 0])] * 128, pa.array(["b", None])])
    texts = b"a" + _words(1, *[0] * 128) + b"b" + _words(1, 0, 0), _words(*[0] * 131, 2, 1)
    assert got.tolist() == [_hash(text) for text in texts]
    assert len(set(keys.key_hash64([*zeros, pa.array([0, 0, 0])]).tolist())) == 1


def test_strings_of_every_length() -> None:
    texts = ["x" * n for n in range(100)] + ["ä", "", None]
    got = keys.key_hash64([pa.array(texts)])
    want = []
    for text in texts:
        data = (text or "").encode()
        want.append(_hash(data + _words(len(data)) + (b"" if text is not None else _words(1))))
    assert got.tolist() == want


def test_mixed_columns_keep_their_order() -> None:
    got = keys.key_hash64([pa.array([3]), pa.array(["ab"]), pa.array([4]), pa.array([5])])
    assert got.tolist() == [_hash(_words(3) + b"ab" + _words(2) + _words(4, 5))]


def test_forms_of_one_value_agree() -> None:
    one = keys.key_hash64([pa.array([7], pa.int8())])
    for type_ in (pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.time32("ms")):
        assert keys.key_hash64([pa.array([7], type_)]) == one
    assert keys.key_hash64([pa.array([0.0])]) == keys.key_hash64([pa.array([-0.0])])
    nans = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    assert len(set(keys.key_hash64([pa.array(nans)]).tolist())) == 1
    assert keys.key_hash64([pa.array([1.5], pa.float32())]) == keys.key_hash64([pa.array([1.5])])
    texts = pa.array(["a", "b", "a"])
    assert keys.key_hash64([texts.dictionary_encode()]).tolist() == keys.key_hash64([texts]).tolist()
    assert keys.key_hash64([texts.cast(pa.large_string())]).tolist() == keys.key_hash64([texts]).tolist()


def test_decimal_scale_does_not_count() -> None:
    values = [Decimal("1.50"), Decimal("-20"), Decimal("0.00"), Decimal("100"), Decimal("-1.2")]
    narrow = keys.key_hash64([pa.array(values, pa.decimal128(10, 2))])
    wide = keys.key_hash64([pa.array(values, pa.decimal128(38, 20))])
    assert narrow.tolist() == wide.tolist()
    assert narrow[0] == _hash(_words(15, 0, 1))
    assert narrow[1] == _hash(_words(-2, -1, -1))
    assert narrow[3] == _hash(_words(1, 0, -2))


def test_slices_read_their_own_rows() -> None:
    numbers = pa.array([1, None, 3, None, 5, 6, None, 8, 9, 10])
    texts = pa.array(["a", None, "ccc", "d", "", None, "g", "h", "i", "j"])
    flags = pa.array([True, False, None] * 3 + [True])
    whole = keys.key_hash64([numbers, texts, flags])
    for start in range(10):
        part = keys.key_hash64([column.slice(start) for column in (numbers, texts, flags)])
        assert part.tolist() == whole[start:].tolist()


def test_rows_and_no_columns() -> None:
    rows = pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": None}, None])
    assert len(set(keys.key_hash64([rows]).tolist())) == 3
    assert keys.key_hash64([], 2).tolist() == [_hash(b"")] * 2


def test_key_groups_are_the_top_bits() -> None:
    column = pa.array(np.arange(10_000))
    groups = keys.key_groups([column], 128)
    hashes = [_hash(_words(n)) for n in range(10_000)]
    assert groups.tolist() == [(h >> 32) * 128 >> 32 for h in hashes]
    assert groups.dtype == np.int32


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5, 100, 128])
@pytest.mark.parametrize("max_parallelism", [128, 256, 1024])
def test_ranges_part_the_groups_and_agree_with_owners(parallelism: int, max_parallelism: int) -> None:
    owners = keys.subtask_of(np.arange(max_parallelism, dtype=np.int32), max_parallelism, parallelism)
    for subtask in range(parallelism):
        assert np.flatnonzero(owners == subtask).tolist() == list(
            keys.key_group_range(max_parallelism, parallelism, subtask)
        )


def test_default_max_parallelism_is_flinks() -> None:
    assert [keys.default_max_parallelism(p) for p in (1, 85, 86, 170, 171, 20_000, 32_768)] == [
        128, 128, 256, 256, 256, 32_768, 32_768,
    ]  # fmt: skip
