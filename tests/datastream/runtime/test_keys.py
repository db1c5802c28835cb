"""Canonical bytes of Python keys."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from flowsql.common.row import Row
from flowsql_compute.keys import key_hash64
from flowsql_compute.object_keys import xxh64
from flowsql_core.stream.keys import encode_key, key_token, key_tokens, token_bytes
from flowsql_runtime.stream.emitter import object_column


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.IntEnum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Place:
    name: str
    numbers: tuple[int, ...]


class Name(str):
    __slots__ = ()


SAME: list[tuple[Any, Any]] = [
    (0.0, -0.0),
    (float("nan"), -float("nan")),
    (Decimal("1.0"), Decimal("1.00")),
    (Decimal("0"), Decimal("-0.000")),
    (1, np.int32(1)),
    ("a", np.str_("a")),
    ("a", Name("a")),
    (2.5, np.float64(2.5)),
    ((1, 2), Point(1, 2)),
    (b"x", bytearray(b"x")),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (frozenset("abc"), frozenset("cba")),
    (Row(1, "a"), Row(id=1, name="a")),
    (Place("x" * 3, (1, 2)), Place("".join(["x", "xx"]), (1, 2))),
    (
        dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 1, 1, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    ),
]

DIFFERENT: list[Any] = [
    None, True, False, 1, 0, -1, 1.0, "1", b"1", "", b"", (), (1,), ((1,),), [1], {1}, {1: 1}, Decimal(1), Colour.RED,
    ("a", "b"), ("ab",), ("a", ("b",)), dt.date(1970, 1, 2), dt.timedelta(days=1), dt.time(1), Place("1", ()), Row(1),
    dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.UTC), 1 << 70, "i1;",
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_key_in_two_shapes(one: Any, other: Any) -> None:
    assert encode_key(one) == encode_key(other)
    assert key_token(one) == key_token(other)


def test_different_keys_differ() -> None:
    assert len({encode_key(key) for key in DIFFERENT}) == len(DIFFERENT)
    assert len({key_token(key) for key in DIFFERENT}) == len(DIFFERENT)


KEYS = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text() | some.binary() | some.floats(allow_nan=False),
    lambda inner: some.lists(inner, max_size=3) | some.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


def typed(key: Any) -> Any:
    """A key with its types, so that 1, True and 1.0 differ."""
    if isinstance(key, list | tuple):
        return type(key).__name__, [typed(item) for item in key]
    return type(key).__name__, key


@given(KEYS, KEYS)
def test_bytes_are_equal_exactly_for_equal_keys(one: Any, other: Any) -> None:
    assert (encode_key(one) == encode_key(other)) == (typed(one) == typed(other))
    assert token_bytes(key_token(one)) == encode_key(one)


def test_usual_keys_are_their_own_tokens() -> None:
    keys = ["a", 1, "b"]
    assert key_tokens(keys) is keys
    assert key_tokens(["a", None]) == ["a", b"N"]


def test_columns_of_objects_are_hashed_by_their_bytes() -> None:
    hashes = key_hash64([object_column(["a", 1, ("a", 1), "a", True, np.int64(1)])]).tolist()
    assert hashes[0] == hashes[3]
    assert hashes[1] == hashes[5]
    assert len(set(hashes)) == 4


def test_hashes_are_those_of_the_canonical_bytes() -> None:
    """By hand, by the kernel, and remembered: one hash for a key, whatever the others of its batch are."""
    few = [1, "a", "x" * 100, None, True, (1, "b"), 1.5, b"", "", -1]
    many = [*few, *(f"key {number}" for number in range(5_000)), *few]
    for keys in (few, many, few):
        column = object_column(keys)
        wanted = key_hash64([pa.array([encode_key(key) for key in keys], pa.binary())])
        assert key_hash64([column]).tolist() == wanted.tolist()
        # A second column of keys that are known by now.
        assert key_hash64([column]).tolist() == wanted.tolist()


@given(some.binary(max_size=200))
def test_the_hash_by_hand_is_the_kernels(raw: bytes) -> None:
    assert xxh64(raw + len(raw).to_bytes(8, "little")) == int(key_hash64([pa.array([raw], pa.binary())])[0])
