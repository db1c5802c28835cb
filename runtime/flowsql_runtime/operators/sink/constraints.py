"""Judging batches by the constraints of a sink: whole columns at a time; one row by itself only once it broke one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, validity, values_and_validity
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.config import NOT_NULL_ENFORCER, TYPE_LENGTH_ENFORCER
from flowsql_core.errors import ExecutionError, FailedRow
from flowsql_core.graph.constraints import ELEMENT, KEY, VALUE, Constraint, InArrays, InMaps, InRows, Length, NotNull
from flowsql_core.types import logical as t

#: Rows that fail and rows to drop; None is none. Both for a row: its parts must be looked at in order.
_Verdict = tuple[Bools | None, Bools | None]


class Judge:
    """Applies constraints to batches of one schema, whose names are those that messages speak of."""

    def __init__(self, constraints: Sequence[Constraint], schema: t.Schema) -> None:
        self._constraints = tuple(constraints)
        self._schema = schema
        self._fits = any(_fits(constraint) for constraint in self._constraints)

    def check(self, batch: ChangelogBatch) -> tuple[ChangelogBatch, Bools | None]:
        """The batch without the rows to drop, its values cut and padded as demanded; which rows it kept, None for all.

        Raises:
            ExecutionError: a row breaks a constraint (Flink's message), with the first such row.
        """
        if not self._constraints or not batch.num_rows:
            return batch, None
        failing, dropped = _judged(self._constraints, batch.columns, batch.num_rows)
        if failing is not None:
            dropped = self._fail(batch, failing, dropped)
        kept = None if dropped is None else ~dropped
        if kept is not None:
            batch = batch.filter(kept)
        if self._fits and batch.num_rows:
            batch = batch.with_columns(_fitted(self._constraints, batch.columns))
        return batch, kept

    def _fail(self, batch: ChangelogBatch, failing: Bools, dropped: Bools | None) -> Bools | None:
        """Raise for the first row that fails. A row that an earlier part of it drops does not: those are returned."""
        for row in np.flatnonzero(failing):
            at = int(row)
            one = [column if isinstance(column, PyObjectColumn) else column.slice(at, 1) for column in batch.columns]
            try:
                _judge_one(self._constraints, one)
            except _BrokenError as broken:
                error = ExecutionError(broken.code, f"Column '{broken.column}' {broken.rule}")
                error.row = FailedRow(at, self._values(batch, at), names=tuple(c.name for c in self._schema))
                error.row.arrived_in(batch, at)
                raise error from None
        return dropped

    def _values(self, batch: ChangelogBatch, row: int) -> dict[int, str]:
        from flowsql_compute.eval.blame import value_text  # after a failure only

        return {at: value_text(batch.columns[at], column.type, row) for at, column in enumerate(self._schema)}


class _BrokenError(Exception):
    """A value broke a constraint: the path to its column, what the message says of it."""

    def __init__(self, code: str, column: str, rule: str) -> None:
        super().__init__(column)
        self.code = code
        self.column = column
        self.rule = rule

    def inside(self, column: str) -> _BrokenError:
        """The same, seen from a row around."""
        return _BrokenError(self.code, column, self.rule)


# Whole columns


def _judged(constraints: Iterable[Constraint], columns: Sequence[Any], n: int) -> _Verdict:
    verdict: _Verdict = (None, None)
    for constraint in constraints:
        for one in _verdicts(constraint, columns, n):
            verdict = _then(verdict, one)
    return verdict


def _then(first: _Verdict, second: _Verdict) -> _Verdict:
    """What becomes of rows that are judged twice: the first judgement that does not let a row pass counts."""
    failing, dropped = first
    later_failing, later_dropped = second
    if later_failing is not None and dropped is not None:
        later_failing = later_failing & ~dropped
    if later_dropped is not None and failing is not None:
        later_dropped = later_dropped & ~failing
    return _either(failing, later_failing), _either(dropped, later_dropped)


def _either(left: Bools | None, right: Bools | None) -> Bools | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right


def _verdicts(constraint: Constraint, columns: Sequence[Any], n: int) -> Iterable[_Verdict]:
    """The verdict on each column that a constraint speaks of."""
    match constraint:
        case NotNull(places=places, drops=drops):
            for place in places:
                broken = _nulls(columns[place.index])
                yield (None, broken) if drops else (broken, None)
        case Length():
            if not constraint.fits:
                for place, length, fixed in zip(constraint.places, constraint.lengths, constraint.fixed, strict=True):
                    yield _of_other_length(columns[place.index], length, fixed, constraint.binary), None
        case InRows(places=places, inner=inner):
            for place, own in zip(places, inner, strict=True):
                if own:
                    rows = columns[place.index]
                    yield _masked(_judged(own, rows.flatten(), n), validity(rows))
        case InArrays(places=places, inner=inner):
            for place, own in zip(places, inner, strict=True):
                if own:
                    lists = columns[place.index]
                    elements = lists.flatten()
                    yield _lifted(_judged(own, (elements,), len(elements)), lists)
        case InMaps(places=places, inner=inner):
            for place, own in zip(places, inner, strict=True):
                if own:
                    lists = _entries(columns[place.index])
                    entries = lists.flatten()
                    yield _lifted(_judged(own, entries.flatten(), len(entries)), lists)
        case _:
            assert_never(constraint)


def _nulls(column: Any) -> Bools | None:
    valid = None if isinstance(column, PyObjectColumn) else validity(column)
    return None if valid is None else ~valid


def _of_other_length(column: Any, length: int, fixed: bool, binary: bool) -> Bools | None:
    sizes = _sizes(column, binary)
    wrong = pc.not_equal(sizes, length) if fixed else pc.greater(sizes, length)
    if not pc.any(wrong).as_py():
        return None
    found, valid = values_and_validity(wrong)
    return found if valid is None else found & valid


def _sizes(column: Any, binary: bool) -> Any:
    return pc.binary_length(column) if binary else pc.utf8_length(column)


def _masked(verdict: _Verdict, valid: Bools | None) -> _Verdict:
    """Fields of a row that is NULL are not judged."""
    if valid is None:
        return verdict
    failing, dropped = verdict
    return None if failing is None else failing & valid, None if dropped is None else dropped & valid


def _lifted(verdict: _Verdict, lists: Any) -> _Verdict:
    """The verdict on rows by that on the elements of their lists."""
    failing, dropped = verdict
    if failing is None and dropped is None:
        return verdict
    parents, _ = values_and_validity(pc.list_parent_indices(lists))

    def lift(broken: Bools | None) -> Bools | None:
        if broken is None:
            return None
        rows = np.zeros(len(lists), np.bool_)
        rows[parents[broken]] = True
        return rows

    return lift(failing), lift(dropped)


def _entries(maps: Any) -> Any:
    """A column of maps as one of lists of keys and values."""
    pairs = pa.StructArray.from_arrays([maps.keys, maps.items], [KEY, VALUE])
    lists = pa.ListArray.from_arrays(maps.offsets, pairs)
    return pc.if_else(pc.is_valid(maps), lists, pa.scalar(None, lists.type)) if maps.null_count else lists


# One row


def _judge_one(constraints: Iterable[Constraint], columns: Sequence[Any]) -> bool:
    """Whether a row passes; ``columns`` hold it alone. Parts are looked at in Flink's order: the first one counts.

    Raises:
        _BrokenError: a constraint fails the job.
    """
    for constraint in constraints:
        match constraint:
            case NotNull(places=places, drops=drops):
                for place in places:
                    if _nulls(columns[place.index]) is not None:
                        if drops:
                            return False
                        raise _BrokenError("not-null-violation", place.name, _NOT_NULL_RULE)
            case Length():
                _measure_one(constraint, columns)
            case InRows(places=places, inner=inner):
                for place, own in zip(places, inner, strict=True):
                    row = columns[place.index]
                    if not row.null_count and not _part_passes(own, row.flatten(), place.name + ".{}"):
                        return False
            case InArrays(places=places, inner=inner):
                for place, own in zip(places, inner, strict=True):
                    elements = columns[place.index].flatten()
                    for at in range(len(elements)):
                        if not _part_passes(own, (elements.slice(at, 1),), f"{place.name}[{at}]{{}}"):
                            return False
            case InMaps(places=places, inner=inner):
                for place, own in zip(places, inner, strict=True):
                    entries = _entries(columns[place.index]).flatten()
                    for at in range(len(entries)):
                        if not _part_passes(own, entries.slice(at, 1).flatten(), f"{place.name}[{{}}"):
                            return False
            case _:
                assert_never(constraint)
    return True


_NOT_NULL_RULE = (
    "is NOT NULL, however, a null value is being written into it. You can set job configuration "
    f"'{NOT_NULL_ENFORCER.key}'='DROP' to suppress this exception and drop such records silently."
)


def _part_passes(constraints: tuple[Constraint, ...], columns: Sequence[Any], path: str) -> bool:
    """Whether a part of a row passes; ``path`` gets the name of the column inside."""
    try:
        return _judge_one(constraints, columns)
    except _BrokenError as broken:
        name = broken.column
        # A list's element has no name of its own; a map's key or value stands in brackets.
        if path.endswith("]{}"):
            name = name.removeprefix(ELEMENT)
        elif path.endswith("[{}"):
            part = KEY if name.startswith(KEY) else VALUE
            name = f"{part}]{name.removeprefix(part)}"
        raise broken.inside(path.removesuffix("{}") + name) from None


def _measure_one(constraint: Length, columns: Sequence[Any]) -> None:
    if constraint.fits:
        return
    for place, length, fixed in zip(constraint.places, constraint.lengths, constraint.fixed, strict=True):
        size = _sizes(columns[place.index], constraint.binary)[0].as_py()
        if size is None or (size == length if fixed else size <= length):
            continue
        kind = ("" if fixed else "VAR") + ("BINARY" if constraint.binary else "CHAR")
        raise _BrokenError(
            "length-violation",
            place.name,
            f"is {kind}({length}), however, a string of length {size} is being written into it. You can set job "
            f"configuration '{TYPE_LENGTH_ENFORCER.key}' to control this behaviour.",
        )


# Cutting and padding


def _fits(constraint: Constraint) -> bool:
    match constraint:
        case Length(fits=fits):
            return fits
        case InRows(inner=inner):
            return any(_fits(one) for own in inner for one in own)
    return False


def _fitted(constraints: Iterable[Constraint], columns: Sequence[Any]) -> list[Any]:
    """The columns with texts and bytes of the lengths that are declared."""
    made = list(columns)
    for constraint in constraints:
        match constraint:
            case Length(fits=True):
                for place, length, fixed in zip(constraint.places, constraint.lengths, constraint.fixed, strict=True):
                    made[place.index] = _of_length(made[place.index], length, fixed, constraint.binary)
            case InRows(places=places, inner=inner):
                for place, own in zip(places, inner, strict=True):
                    if any(map(_fits, own)):
                        made[place.index] = _fitted_rows(made[place.index], own)
    return made


def _fitted_rows(rows: Any, inner: tuple[Constraint, ...]) -> Any:
    fields = _fitted(inner, rows.flatten())
    return pa.StructArray.from_arrays(fields, fields=list(rows.type), mask=rows.is_null() if rows.null_count else None)


def _of_length(column: Any, length: int, fixed: bool, binary: bool) -> Any:
    found = pc.min_max(_sizes(column, binary))
    shortest, longest = found["min"].as_py(), found["max"].as_py()
    if longest is None:
        return column
    if fixed and shortest < length:
        column = _padded_bytes(column, length) if binary else pc.utf8_rpad(column, length)
    if longest > length:
        column = pc.binary_slice(column, 0, length) if binary else pc.utf8_slice_codeunits(column, 0, length)
    return column


def _padded_bytes(column: Any, length: int) -> Any:
    """Zeros behind what is shorter; what is longer stays."""
    zeros = pc.binary_join_element_wise(column, pa.scalar(bytes(length)), pa.scalar(b""))
    return pc.if_else(pc.less(pc.binary_length(column), length), pc.binary_slice(zeros, 0, length), column)
