"""From accumulator words to results: one column per call, comparable before and after a change, then Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.cast import cast_array
from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_core.record import record
from flowsql_core.types.logical import DOUBLE, DecimalType
from flowsql_runtime.kernels import accumulate as kernels
from flowsql_runtime.state.arrow_words import array_of_words, word_count
from flowsql_runtime.state.stores import AccumulatorStore

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int64]

#: 10**38: a DECIMAL sum of that size or more does not fit 38 digits and becomes NULL.
_LIMIT_HIGH: Final = np.int64(10**38 >> 64)
_LIMIT_LOW: Final = np.uint64(10**38 & (2**64 - 1))

#: Below it a DOUBLE holds every half.
_EXACT: Final = 2.0**52


class ResultColumn(Protocol):
    """Results of one call for the recorded states: rows 2i before and 2i + 1 after change i."""

    def changed(self) -> Bools:
        """Per change, whether the result differs, (m,)."""
        ...

    def to_arrow(self, rows: npt.NDArray[Any]) -> Any:
        """The results of some rows."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class FixedResults:
    """Words and validity of fixed-width results.

    ``compared``: words whose change is a change although the results are equal.
    """

    words: tuple[Int64s, ...]
    valid: Bools | None
    type: Any
    compared: tuple[Int64s, ...] = ()

    def changed(self) -> Bools:
        """Whether value, validity or compared words differ; what stands under NULL does not count."""
        differs = self._result_changed()
        for word in self.compared:
            differs = differs | (word[0::2] != word[1::2])
        return differs

    def _result_changed(self) -> Bools:
        differs: Bools = self.words[0][0::2] != self.words[0][1::2]
        for word in self.words[1:]:
            differs |= word[0::2] != word[1::2]
        if self.valid is None:
            return differs
        before, after = self.valid[0::2], self.valid[1::2]
        differs = (before != after) | (before & differs)
        return differs

    def to_arrow(self, rows: npt.NDArray[Any]) -> Any:
        """Arrow array of the result type."""
        valid = None if self.valid is None else self.valid[rows]
        return array_of_words([word[rows] for word in self.words], valid, self.type)


@dataclass(frozen=True, eq=False, slots=True)
class ByteResults:
    """References to strings or binary values; 0 is NULL."""

    refs: Int64s
    store: AccumulatorStore
    type: Any

    def changed(self) -> Bools:
        """Whether the bytes differ."""
        return ~self.store.equal_bytes(self.refs[0::2], self.refs[1::2])

    def to_arrow(self, rows: npt.NDArray[Any]) -> Any:
        """Arrow array of the result type."""
        return self.store.bytes_at(self.refs[rows], self.type)


@record
class Count:
    """COUNT: the accumulator itself."""

    count: int
    type: Any

    def results(self, states: Words, store: AccumulatorStore) -> ResultColumn:
        """See the class."""
        return FixedResults((states[:, self.count],), None, self.type)


@record
class Plain:
    """MIN, MAX, FIRST, LAST, SINGLE, SUM: the accumulator's words, NULL while ``count`` is 0 (SUM0: 0)."""

    value: int
    count: int
    type: Any
    is_bytes: bool = False
    zero_if_empty: bool = False

    def results(self, states: Words, store: AccumulatorStore) -> ResultColumn:
        """See the class."""
        valid = states[:, self.count] != 0
        if self.is_bytes:
            return ByteResults(np.where(valid, states[:, self.value], np.int64(0)), store, self.type)
        words = tuple(states[:, self.value + part] for part in range(word_count(self.type)))
        return FixedResults(words, None if self.zero_if_empty else valid, self.type)


@record
class WideSum:
    """SUM of DECIMAL: NULL when the sum leaves 38 digits."""

    value: int
    count: int
    type: Any

    def results(self, states: Words, store: AccumulatorStore) -> ResultColumn:
        """See the class."""
        low, high = _column(states, self.value), _column(states, self.value + 1)
        return FixedResults((low, high), (states[:, self.count] != 0) & _fits(low, high), self.type)


def _fits(low: Int64s, high: Int64s) -> Bools:
    if not len(high) or (abs(int(high.min())) < int(_LIMIT_HIGH) and abs(int(high.max())) < int(_LIMIT_HIGH)):
        return np.ones(len(high), np.bool_)
    negative = high < 0
    size_low = np.where(negative, (~low.view(np.uint64)) + np.uint64(1), low.view(np.uint64))
    size_high = np.where(negative, ~high + (size_low == 0), high)
    fits: Bools = (size_high < _LIMIT_HIGH) | ((size_high == _LIMIT_HIGH) & (size_low < _LIMIT_LOW))
    fits &= high != kernels.OVERFLOWN
    return fits


@record
class Average:
    """AVG: integers truncate towards zero, DECIMAL rounds half up to ``digits`` more places, DOUBLE divides."""

    value: int
    count: int
    type: Any
    digits: int = 0

    def results(self, states: Words, store: AccumulatorStore) -> ResultColumn:
        """See the class."""
        counts = _column(states, self.count)
        valid = counts != 0
        if pa.types.is_floating(self.type):
            divisor = np.where(valid, counts, np.int64(1))
            quotient = _column(states, self.value).view(np.float64) / divisor
            return FixedResults((quotient.view(np.int64),), valid, self.type)
        if pa.types.is_decimal(self.type):
            low, high = _column(states, self.value), _column(states, self.value + 1)
            out_low, out_high = np.empty_like(low), np.empty_like(high)
            valid &= _fits(low, high)
            kernels.divide_wide(low, high, counts, self.digits, out_low, out_high)
            return FixedResults((out_low, out_high), valid & _fits(out_low, out_high), self.type)
        sums = _column(states, self.value)
        divisor = np.where(valid, counts, np.int64(1))
        floor = sums // divisor
        # Floor division rounds down; Java's rounds towards zero.
        quotient = floor + ((floor < 0) & (floor * divisor != sums))
        return FixedResults((quotient,), valid, self.type)


@record
class Deviation:
    """VAR_* and STDDEV_* of (count, mean, squares); ``samples`` divides by n - 1, ``root`` takes the square root.

    Flink computes these above its aggregate, from COUNT and two SUMs: a change of those goes out as an update even
    where the deviation, cut to an integer, stays what it was.
    """

    value: int
    type: Any
    samples: bool
    root: bool
    nullable: bool = True

    def results(self, states: Words, store: AccumulatorStore) -> ResultColumn:
        """See the class."""
        n = states[:, self.value] - (1 if self.samples else 0)
        compared = tuple(_column(states, self.value + place) for place in range(3))
        squares = _column(states, self.value + 2).view(np.float64)
        valid = n > 0
        # Rows that were taken back may leave less than nothing: NULL, which Flink reads as -1 where the type has none.
        lost = squares < 0.0
        if self.nullable or pa.types.is_decimal(self.type):
            valid &= ~lost
            lost = np.zeros_like(lost)
        result = squares / np.where(valid, n, np.int64(1))
        if self.root:
            result = np.power(np.where(valid & ~lost, result, 0.0), 0.5)
        result[lost] = -1.0
        if pa.types.is_decimal(self.type):
            result = np.where(valid, result, 0.0)
            size = np.abs(result) * 10.0**self.type.scale
            if len(size) and float(size.max()) >= _EXACT:
                low, high, fits = _wide_words(result, self.type)
                return FixedResults((low, high), valid & fits, self.type, compared)
            low = (np.floor(size + 0.5) * np.sign(result)).astype(np.int64)
            return FixedResults((low, low >> 63), valid, self.type, compared)
        if pa.types.is_integer(self.type):
            whole = _whole(result)
            if self.type.bit_width == 32:
                whole = np.clip(whole, np.iinfo(np.int32).min, np.iinfo(np.int32).max)
            return FixedResults((whole,), valid, self.type, compared)
        return FixedResults((result.view(np.int64),), valid, self.type, compared)


def _wide_words(numbers: npt.NDArray[np.float64], type_: Any) -> tuple[Int64s, Int64s, Bools]:
    """Low and high words of numbers as DECIMALs, by their shortest digits, and which of them fit the type."""
    array = cast_array(
        pa.array(numbers), DOUBLE, DecimalType(precision=type_.precision, scale=type_.scale), False, EvalContext()
    )
    words, valid = values_and_validity(array)
    fits: Bools = np.ones(len(numbers), np.bool_) if valid is None else valid
    if words.ndim == 1:
        return np.ascontiguousarray(words), np.ascontiguousarray(words >> 63), fits
    return np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1]), fits


def _whole(numbers: npt.NDArray[np.float64]) -> Int64s:
    """Doubles as Java casts them to long: towards zero, what is too large as the largest."""
    too_large = numbers >= 2.0**63
    whole: Int64s = np.where(too_large | np.isnan(numbers), 0.0, numbers).astype(np.int64)
    whole[too_large] = np.iinfo(np.int64).max
    return whole


Finisher = Count | Plain | WideSum | Average | Deviation


def _column(states: Words, word: int) -> Int64s:
    return np.ascontiguousarray(states[:, word])
