"""Hashes of text: message digests in hexadecimal digits, and Java's hash code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, spread, values_and_validity
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.text.columns import KERNEL_ROWS, java_hash_codes
from flowsql_compute.eval.text.digests import digests
from flowsql_compute.functions.registry import Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.types import logical as t


def _digests(text: pa.Array, algorithm: str) -> pa.Array:
    raw = pc.cast(text, pa.binary())
    by_kernel = digests(raw, algorithm)
    if by_kernel is not None:
        return by_kernel
    make: Callable[[Any], Any] = getattr(hashlib, algorithm)
    return map_distinct(raw, lambda word: make(word).hexdigest(), pa.string())


def _hash_function(name: str, length: int) -> None:
    def kernel(text: Any) -> Any:
        return _digests(text, name.lower())

    kernel.__doc__ = f"The {name} hash of the UTF-8 bytes in lower-case hexadecimal digits."
    # Spark's own digests of text: md5, sha1 and sha2 alone.
    spark = {"MD5": "md5({0})", "SHA1": "sha1({0})"}.get(name, f"sha2({{0}}, {name.removeprefix('SHA')})")
    scalar(f"{name}(STRING) -> CHAR({length})", f"{name}(BINARY) -> CHAR({length})", spark=spark)(kernel)


for _name, _length in (("MD5", 32), ("SHA1", 40), ("SHA224", 56), ("SHA256", 64), ("SHA384", 96), ("SHA512", 128)):
    _hash_function(_name, _length)


@scalar("SHA2(STRING, INTEGER) -> VARCHAR(128)", "SHA2(BINARY, INTEGER) -> VARCHAR(128)", raises=True, spark=None)
def sha2(call: Invocation, text: Any, bits: Any) -> Any:
    """The SHA-2 hash of 224, 256, 384 or 512 bits in lower-case hexadecimal digits. Fails on other lengths."""
    column = spread(text, call.n) if isinstance(text, pa.Scalar) else text
    made = pa.nulls(call.n, pa.string())
    sizes = [bits] if isinstance(bits, pa.Scalar) else pc.unique(bits.filter(pc.is_valid(column)))
    for size in sizes:
        if not size.is_valid:
            continue
        if size.as_py() not in (224, 256, 384, 512):
            if column.null_count == len(column):
                continue
            raise ExecutionError("bad-argument", "Unsupported algorithm.")
        hashed = _digests(column, f"sha{size.as_py()}")
        if isinstance(bits, pa.Scalar):
            return hashed
        made = pc.if_else(pc.fill_null(pc.equal(bits, size), False), hashed, made)
    return made


@scalar(
    "HASH_CODE(STRING) -> INT",
    "HASH_CODE(NUMERIC) -> INT",
    "HASH_CODE(BOOLEAN) -> INT",
    "HASH_CODE(DATE) -> INT",
    "HASH_CODE(TIME) -> INT",
    "HASH_CODE(TIMESTAMP_NTZ) -> INT",
    spark=None,
)
def hash_code(call: Invocation, value: Any) -> Any:
    """Java's hash code of the value; of a text its absolute value."""
    match call.arg_types[0]:
        case t.CharacterType():
            if len(value) >= KERNEL_ROWS:
                return pc.abs(java_hash_codes(value))
            return pc.abs(map_distinct(value, java_string_hash, pa.int32()))
        case t.TimestampType():
            return _moment_hashes(value)
        case t.DecimalType():
            return _decimal_hashes(value)
        case t.BooleanType():
            return pc.if_else(value, pa.scalar(1231, pa.int32()), pa.scalar(1237, pa.int32()))
    numbers, valid = values_and_validity(value)
    if isinstance(call.arg_types[0], t.BigIntType | t.DoubleType):
        bits = (numbers + 0.0 if numbers.dtype == np.float64 else numbers).view(np.int64)
        bits = np.where(np.isnan(numbers), 0x7FF8 << 48, bits) if numbers.dtype == np.float64 else bits
        return make_array((bits ^ (bits >> 32)).astype(np.int32), valid, pa.int32())
    if numbers.dtype == np.float32:
        numbers = np.where(np.isnan(numbers), 0x7FC0 << 16, numbers.view(np.int32))
    return make_array(numbers.astype(np.int32), valid, pa.int32())


def _decimal_hashes(column: pa.Array) -> pa.Array:
    """``BigDecimal.hashCode``: 31 times the hash of the unscaled value, plus the scale."""
    values, valid = values_and_validity(column)
    low = values[:, 0] if values.ndim == 2 else values
    high = values[:, 1] if values.ndim == 2 else low >> 63
    negative = high < 0
    low_word, high_word = low.astype(np.uint64), high.astype(np.uint64)
    # The absolute value, in four words of 32 bits; the hash is a polynomial of base 31 over them.
    high_word = np.where(negative, ~high_word + (low_word == 0), high_word)
    low_word = np.where(negative, ~low_word + np.uint64(1), low_word)
    made = np.zeros(len(low), dtype=np.uint64)
    for word in (high_word >> np.uint64(32), high_word, low_word >> np.uint64(32), low_word):
        made = (made * np.uint64(31) + (word & _WORD)) & _WORD
    made = np.where(negative, (~made + np.uint64(1)) & _WORD, made)
    hashed = made * np.uint64(31) + np.uint64(column.type.scale)
    return make_array(hashed.astype(np.uint32).view(np.int32), valid, pa.int32())


_WORD = np.uint64(0xFFFFFFFF)
_PER_MILLISECOND = {"s": 0, "ms": 1, "us": 1_000, "ns": 1_000_000}


def _moment_hashes(column: pa.Array) -> pa.Array:
    """``TimestampData.hashCode``: 31 times the hash of the milliseconds, plus the nanoseconds of the last one."""
    values, valid = values_and_validity(column)
    ticks = values.view(np.int64)
    per = _PER_MILLISECOND[column.type.unit]
    milliseconds, rest = (ticks * 1_000, np.zeros_like(ticks)) if per == 0 else np.divmod(ticks, per)
    nanoseconds = rest * (1_000_000 // max(per, 1))
    hashed = ((milliseconds ^ (milliseconds >> 32)) & 0xFFFFFFFF) * 31 + nanoseconds
    return make_array(hashed.astype(np.uint64).astype(np.uint32).view(np.int32), valid, pa.int32())


def java_string_hash(word: str) -> int:
    """``String.hashCode``: a polynomial of base 31 over UTF-16 units, modulo 2 to the 32."""
    made = 0
    for unit in memoryview(word.encode("utf-16-le", "surrogatepass")).cast("H"):
        made = (31 * made + unit) & 0xFFFFFFFF
    return _wrapped(made)


def java_hash_order(keys: list[str], asked: int) -> list[str]:
    """Different keys as a Java HashMap gives them that was made for ``asked`` entries.

    >>> java_hash_order(["k", "x"], 2)
    ['x', 'k']
    """
    buckets = 1
    while buckets < asked or len(keys) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        spread = java_string_hash(key) & 0xFFFFFFFF
        return (spread ^ (spread >> 16)) & (buckets - 1)

    return sorted(keys, key=bucket)


def _wrapped(number: int) -> int:
    """The low 32 bits as a signed number."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)
