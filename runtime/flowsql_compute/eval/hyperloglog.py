"""HyperLogLog++ in columns: which register a value sets to which rank, and what registers say of the number of values.

Source: Heule, Nunkesser, Hall, "HyperLogLog in Practice" (EDBT 2013), without its sparse form; hashes, registers and
the threshold of linear counting are those of Flink's ``BatchApproxCountDistinctAggFunctions``, for a relative standard
deviation of 0.01.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, string_buffers, validity, values_and_validity
from flowsql_compute.eval.hyperloglog_estimates import CARDINALITIES, RAW_ESTIMATES
from flowsql_core.types import logical as t

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Doubles = npt.NDArray[np.float64]

#: Bits of a hash that choose the register, and bits of a rank.
_PRECISION: Final = 14
_RANK_BITS: Final = 6
_REGISTERS: Final = 1 << _PRECISION
_SEED: Final = np.uint64(42)
#: Up to here empty registers tell more than ranks.
_LINEAR: Final = 15_500.0
_ALPHA: Final = 0.7213 / (1.0 + 1.079 / _REGISTERS) * _REGISTERS * _REGISTERS
_NEIGHBOURS: Final = 6
_RAW: Final = np.array(RAW_ESTIMATES)
#: The tables have four digits.
_BIAS: Final = np.round(_RAW - np.array(CARDINALITIES), 4)
_PER_MS: Final = {"s": None, "ms": 1, "us": 1_000, "ns": 1_000_000}


def register_codes(column: Any, type_: t.LogicalType) -> Any:
    """What each value sets: its register times 64, plus the rank. int32, NULL for NULL.

    Args:
        type_: of the column; see ``flowsql_compute.functions.aggregate.counts_approximately``.
    """
    hashes = _hashes(column, type_)
    registers = hashes >> np.uint64(64 - _PRECISION)
    # A one behind the hash's bits ends the run of zeros.
    rest = (hashes << np.uint64(_PRECISION)) | np.uint64(1 << (_PRECISION - 1))
    ranks = _leading_zeros(rest) + np.uint64(1)
    codes = ((registers << np.uint64(_RANK_BITS)) | ranks).astype(np.int32)
    return make_array(codes, validity(column), pa.int32())


def cardinalities(codes: Int32s, owners: Int64s, n: int) -> Int64s:
    """How many values each of ``n`` groups has seen.

    Args:
        codes: of :func:`register_codes`, (m,).
        owners: the group of each code, (m,).
    """
    words = np.sort((owners << 32) | codes)
    registers = words >> _RANK_BITS
    last = np.append(registers[1:] != registers[:-1], True) if len(words) else np.zeros(0, np.bool_)
    groups = words[last] >> 32
    ranks = (words[last] & ((1 << _RANK_BITS) - 1)).astype(np.float64)
    empty = (_REGISTERS - np.bincount(groups, minlength=n)).astype(np.float64)
    raw = _ALPHA / (empty + np.bincount(groups, np.exp2(-ranks), n))
    estimates = np.where(raw < 5.0 * _REGISTERS, raw - _bias(raw), raw)
    by_empty = _REGISTERS * np.log(_REGISTERS / np.maximum(empty, 1.0))
    linear = (empty > 0) & ((by_empty <= _LINEAR) | (raw <= 2.5 * _REGISTERS))
    counts: Int64s = np.floor(np.where(linear, by_empty, estimates) + 0.5).astype(np.int64)
    return counts


def _bias(raw: Doubles) -> Doubles:
    """The mean bias of the estimates of the table that are next to each of ``raw``."""
    most = len(_RAW)
    first = np.maximum(np.searchsorted(_RAW, raw) - _NEIGHBOURS + 1, 0)
    moving = np.ones(len(raw), np.bool_)
    while moving.any():
        end = first + _NEIGHBOURS
        nearer = (_RAW[np.minimum(end, most - 1)] - raw) ** 2 < (_RAW[np.minimum(first, most - 1)] - raw) ** 2
        moving = (end < most) & nearer
        first = first + moving
    total, count = np.zeros(len(raw)), np.zeros(len(raw))
    for place in range(_NEIGHBOURS):
        inside = first + place < most
        total += np.where(inside, _BIAS[np.minimum(first + place, most - 1)], 0.0)
        count += inside
    return total / count


def _leading_zeros(words: UInt64s) -> UInt64s:
    count = np.zeros(len(words), np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        short = words < (np.uint64(1) << np.uint64(64 - step))
        count += np.where(short, np.uint64(step), np.uint64(0))
        words = np.where(short, words << np.uint64(step), words)
    return count


def _hashes(column: Any, type_: t.LogicalType) -> UInt64s:
    """XXH64 of each value; anything for NULL."""
    from flowsql_compute.kernels.contiguous import for_kernel
    from flowsql_compute.kernels.hash import xxh64_rows

    data, starts = _bytes(column, type_)
    out = np.empty(len(column), np.uint64)
    xxh64_rows(for_kernel(data), for_kernel(starts), _SEED, out)
    return out


def _bytes(column: Any, type_: t.LogicalType) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """The bytes of each value, and where those of each row start, (n + 1,)."""
    n = len(column)
    match type_:
        case t.CharacterType():
            offsets, data = string_buffers(column)
            return data, offsets.astype(np.int64)
        case t.NullType():
            return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64)
        case t.DecimalType(precision=precision) if precision > 18:
            return _decimal_bytes(column)
        case t.DecimalType():
            words: npt.NDArray[Any] = _decimal_words(column)[:, 0]
        case t.ApproximateType():
            values, _ = values_and_validity(column)
            # One bit pattern for NaN, and one for zero.
            words = np.where(np.isnan(values), np.array(np.nan, values.dtype), values + np.array(0, values.dtype))
        case t.IntegerType(bits=bits):
            values, _ = values_and_validity(column)
            words = values.astype(np.int64 if bits == 64 else np.int32)
        case t.TimestampType() | t.TimestampLtzType():
            values, _ = values_and_validity(column)
            per_ms = _PER_MS[column.type.unit]
            words = values.astype(np.int64) * 1_000 if per_ms is None else values.astype(np.int64) // per_ms
        case t.TimeType():
            words = values_and_validity(column.cast(pa.time32("ms"), safe=False))[0].astype(np.int64)
        case _:
            words = values_and_validity(column)[0].astype(np.int64)
    data = np.ascontiguousarray(words).view(np.uint8)
    return data, np.arange(n + 1, dtype=np.int64) * words.dtype.itemsize


def _decimal_words(column: Any) -> Int64s:
    """Low and high halves of DECIMAL values, (n, 2)."""
    buffer = column.buffers()[1]
    words = np.zeros((len(column), 2), np.int64)
    if buffer is not None and len(column):
        words = np.frombuffer(buffer, np.int64, 2 * len(column), 16 * column.offset).reshape(-1, 2)
    return words


def _decimal_bytes(column: Any) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Unscaled values as Java's ``BigInteger.toByteArray`` writes them: the fewest bytes, the highest first."""
    wide = np.ascontiguousarray(_decimal_words(column)).view(np.uint8).reshape(-1, 16)[:, ::-1]
    sign = np.where(wide[:, 0] & 0x80, 0xFF, 0).astype(np.uint8)
    # A byte says nothing if it repeats the sign, and the next one has it too.
    repeats = (wide[:, :15] == sign[:, None]) & ((wide[:, 1:] & 0x80) == (sign[:, None] & 0x80))
    spare = np.logical_and.accumulate(repeats, axis=1)
    kept = np.concatenate((~spare, np.ones((len(wide), 1), np.bool_)), axis=1)
    starts = np.zeros(len(wide) + 1, np.int64)
    np.cumsum(kept.sum(axis=1), out=starts[1:])
    return wide[kept], starts
