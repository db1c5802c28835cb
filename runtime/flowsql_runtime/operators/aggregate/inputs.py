"""What the fold kernel reads of one batch: a sign vector and a word vector for each thing that a call asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_compute.functions.aggregate import Fold
from flowsql_compute.keys import is_bytes_type
from flowsql_core.record import record
from flowsql_core.types.logical import DecimalType, LogicalType
from flowsql_runtime.kernels import accumulate as kernels
from flowsql_runtime.state.arrow_words import value_words, word_count
from flowsql_runtime.state.stores import AccumulatorStore, ExtremeValues

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: Option of a call that takes only rows that came after a restore.
LATE: Final = ("rows", "after a restore")


@record
class Sign:
    """Which rows a fold takes: not NULL at ``not_null``, TRUE at ``filter``, first or last of DISTINCT ``group``.

    ``late``: only those that came after a restore, so that they are counted apart (``checkpoint/late_calls.py``).
    """

    not_null: tuple[int, ...] = ()
    filter: int | None = None
    group: int | None = None
    place: int = 0
    late: bool = False

    def __str__(self) -> str:
        """As part of the name of a stored accumulator: ``[2,filter 3]``; nothing where all rows are taken."""
        parts = [str(column) for column in self.not_null]
        if self.filter is not None:
            parts.append(f"filter {self.filter}")
        if self.group is not None:
            parts.append(f"distinct {self.group}.{self.place}")
        if self.late:
            parts.append("late")
        return "[" + ",".join(parts) + "]" if parts else ""


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """An op that only some rows take, before (``first``) or after those of the calls.

    ``signs`` int8 (n,): 0 where it takes no part. ``words`` int64 (n,): its argument; None where it has none.
    """

    code: int
    signs: Int8s
    words: Int64s | None = None
    first: bool = False


@record
class Argument:
    """Words of input column ``column``, or of the entry on top of sorted list ``column`` (``top``).

    ``presence``: 1 where the column is not NULL, or the sorted list not empty, instead.
    """

    column: int
    top: bool = False
    presence: bool = False


@record
class Extreme:
    """A MIN or MAX that keeps its values: their column, which end, and the rows that take part."""

    column: int
    largest: bool
    sign: Sign


@record
class DistinctGroup:
    """DISTINCT calls over the same argument columns; one place in ``filters`` for each different FILTER.

    ``nulls``: NULL is one of the values.
    """

    columns: tuple[int, ...]
    nulls: bool
    filters: tuple[int | None, ...]

    @property
    def not_null(self) -> tuple[int, ...]:
        """Columns whose NULLs keep a row out."""
        return () if self.nulls else self.columns


class SignRows:
    """Sign vectors of one batch, each computed once; row 0 is the rows' own sign."""

    def __init__(self, columns: Sequence[Any], base: Int8s) -> None:
        self._columns = columns
        self._rows: list[Int8s] = [base]
        self._places: dict[Sign, int] = {Sign(): 0}

    def add_group(self, group: int, signs: npt.NDArray[np.int8]) -> None:
        """Rows of a DISTINCT group, one a filter."""
        for place, row in enumerate(signs):
            self._places[Sign(group=group, place=place)] = len(self._rows)
            self._rows.append(row)

    def add(self, row: Int8s) -> int:
        """A vector of its own; returns its row number."""
        self._rows.append(row)
        return len(self._rows) - 1

    def place(self, sign: Sign) -> int:
        """Row number of a sign vector."""
        found = self._places.get(sign)
        if found is None:
            row = self._rows[0]
            for column in sign.not_null:
                valid = validity(self._columns[column])
                if valid is not None:
                    row = row * valid
            if sign.filter is not None:
                values, valid = values_and_validity(self._columns[sign.filter])
                row = row * (values if valid is None else values & valid)
            found = 0 if row is self._rows[0] else len(self._rows)
            if found:
                self._rows.append(row)
            self._places[sign] = found
        return found

    def row(self, sign: Sign) -> Int8s:
        """One sign vector."""
        return self._rows[self.place(sign)]

    def matrix(self) -> npt.NDArray[np.int8]:
        """All of them, (s, n)."""
        return self._rows[0].reshape(1, -1) if len(self._rows) == 1 else np.stack(self._rows)


class ArgumentRows:
    """Argument words of one batch, each column once."""

    def __init__(
        self,
        store: AccumulatorStore,
        kept: Sequence[ExtremeValues],
        columns: Sequence[Any],
        tops: Sequence[Int32s],
        n: int,
    ) -> None:
        self._store = store
        self._kept = kept
        self._columns = columns
        self._tops = tops
        self._n = n
        self._rows: list[Int64s] = []
        self._places: dict[tuple[Argument, bool], int] = {}

    def add(self, words: Int64s) -> int:
        """Words of its own; returns their row number."""
        self._rows.append(words)
        return len(self._rows) - 1

    def place(self, argument: Argument, part: int) -> int:
        """Row number of an argument's word ``part`` (-1: as a double whatever its type)."""
        key = (argument, part < 0)
        if key not in self._places:
            self._places[key] = len(self._rows)
            self._rows.extend(self._words(argument, as_double=part < 0))
        return self._places[key] + max(part, 0)

    def _words(self, argument: Argument, as_double: bool) -> list[Int64s]:
        if argument.top:
            return self._top_words(argument)
        array = self._columns[argument.column]
        if argument.presence:
            valid = validity(array)
            return [np.ones(self._n, np.int64) if valid is None else valid.astype(np.int64)]
        if is_bytes_type(array.type):
            return [self._store.store_bytes(array)]
        if as_double:
            return [_as_doubles(array).view(np.int64)]
        words = list(value_words(array).words)
        if pa.types.is_decimal(array.type) and len(words) == 1:
            words.append(words[0] >> 63)
        return words

    def _top_words(self, argument: Argument) -> list[Int64s]:
        tops = self._tops[argument.column]
        found = tops >= 0
        if argument.presence:
            return [found.astype(np.int64)]
        kept = self._kept[argument.column]
        if is_bytes_type(kept.type):
            return [self._store.store_bytes(kept.values_at(tops))]
        return kept.words_at(tops)

    def matrix(self) -> npt.NDArray[np.int64]:
        """All of them, (a, n)."""
        if not self._rows:
            return np.zeros((1, self._n), np.int64)
        if len(self._rows) == 1 and self._rows[0].flags.writeable and self._rows[0].flags.c_contiguous:
            return self._rows[0].reshape(1, -1)
        return np.stack(self._rows)


def _as_doubles(array: Any) -> npt.NDArray[np.float64]:
    words = value_words(array).words
    if pa.types.is_floating(array.type):
        return words[0].view(np.float64)
    if pa.types.is_decimal(array.type):
        result: npt.NDArray[np.float64] = words[0].astype(np.float64)
        if len(words) == 2:
            # Words of small negative numbers would lose their digits beside 2**64.
            wide = words[1] != words[0] >> 63
            whole = words[0].view(np.uint64).astype(np.float64) + words[1].astype(np.float64) * 2.0**64
            result = np.where(wide, whole, result)
        result = result / 10.0**array.type.scale
        return result
    return words[0].astype(np.float64)


def extreme_code(fold: Fold, type_: Any) -> int:
    """The kernel's code of a MIN or MAX over values of an Arrow type."""
    least = fold is Fold.MIN
    if is_bytes_type(type_):
        return kernels.MIN_BYTES if least else kernels.MAX_BYTES
    if pa.types.is_floating(type_):
        return kernels.MIN_DOUBLE if least else kernels.MAX_DOUBLE
    if word_count(type_) == 2:
        return kernels.MIN_WIDE if least else kernels.MAX_WIDE
    return kernels.MIN if least else kernels.MAX


def decimal_sum_code(function: str, argument: LogicalType) -> int:
    """The kernel's code of a sum of DECIMALs. Values of up to 28 digits need 10**10 rows to leave 38."""
    if not isinstance(argument, DecimalType) or argument.precision <= 28:
        return kernels.SUM_WIDE
    return kernels.SUM_RESTARTING if function == "SUM" else kernels.SUM_CHECKED
