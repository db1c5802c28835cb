"""Where text stands in text, and text taken apart: POSITION, INSTR, STARTSWITH, SPLIT, ELT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import all_ascii, make_array, spread, validity, values_and_validity
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.java.utf16 import joined, units
from flowsql_compute.eval.text.columns import KERNEL_ROWS, at_edge, first_byte, nth_place
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.expr import Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import common_type


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


#: Where texts are searched from, and which occurrence is looked for, if that is not given.
_ONE = pa.scalar(1, pa.int32())


@scalar("POSITION(STRING, STRING, [INTEGER]) -> INT", aliases=("LOCATE",), spark=None)
def position(call: Invocation, needle: Any, text: Any, start: Any = None) -> Any:
    """Where the first argument stands in the second, from ``start`` on; 0 when nowhere."""
    if isinstance(needle, pa.Array) and len(needle) == 1 and not any(isinstance(d, pa.Array) for d in (text, start)):
        return pa.array([_find(text.as_py(), needle[0].as_py(), 1 if start is None else start.as_py())], pa.int32())
    if start is None and isinstance(needle, pa.Scalar):
        if not needle.is_valid:
            return pa.nulls(call.n, pa.int32())
        return _first_position(text, needle.as_py())
    if call.n >= KERNEL_ROWS:
        return nth_place(*(_column(datum, call.n) for datum in (text, needle, _ONE if start is None else start, _ONE)))
    columns = [datum for datum in (_column(text, call.n), needle, start) if datum is not None]
    return map_rows(columns, _find, pa.int32())


def _first_position(text: pa.Array, needle: str) -> pa.Array:
    if needle and len(text) >= KERNEL_ROWS:
        found = make_array(first_byte(text, needle), validity(text), pa.int32())
    else:
        found = pc.find_substring(text, needle)
    ascii_only = all_ascii(text)
    if ascii_only:
        return pc.add(found, pa.scalar(1, pa.int32()))
    # Bytes before the match as characters.
    return map_distinct(text, lambda word: word.find(needle) + 1, pa.int32())


def _find(word: str | None, needle: str | None, start: int | None = 1) -> int | None:
    if word is None or needle is None or start is None:
        return None
    if not needle:
        return 1
    # Java's start - 1 of the smallest INT is the greatest.
    return 0 if start == -(2**31) else word.find(needle, max(start - 1, 0)) + 1


@scalar("INSTR(STRING, STRING, [INTEGER], [INTEGER]) -> INT", spark=None)
def instr(call: Invocation, text: Any, needle: Any, start: Any = None, nth: Any = None) -> Any:
    """Where the ``nth`` occurrence stands, from ``start`` on (backwards when negative); 0 when nowhere."""
    if start is None and isinstance(needle, pa.Scalar) and needle.is_valid:
        return _first_position(text, needle.as_py())
    given = [datum for datum in (text, needle, start, nth) if datum is not None]
    if call.n >= KERNEL_ROWS:
        first, count = (_column(_ONE if datum is None else datum, call.n) for datum in (start, nth))
        # What is counted from the end and what fails is left to the slow way.
        if _at_least(first, 0) and _at_least(count, 1):
            return nth_place(_column(text, call.n), _column(needle, call.n), first, count, zero_finds_nothing=True)
    return map_rows([_column(given[0], call.n), *given[1:]], _instr_one, pa.int32())


def _at_least(numbers: pa.Array, low: int) -> bool:
    least = pc.min(numbers).as_py()
    return least is None or least >= low


def _instr_one(word: str, needle: str, start: int = 1, nth: int = 1) -> int:
    if not needle:
        return len(word) + 1 if start < 0 else 1
    if nth <= 0:
        raise ExecutionError("bad-argument", f"nthAppearance must be positive: {nth}")
    if start == 0:
        return 0
    if start > 0:
        place = start - 2
        for _ in range(nth):
            place = word.find(needle, place + 1)
            if place < 0:
                return 0
        return place + 1
    place = len(word) + start + len(needle)
    for _ in range(nth):
        place = word.rfind(needle, 0, max(place, 0))
        if place < 0:
            return 0
        place += len(needle) - 1
    return place - len(needle) + 2


@scalar("STARTSWITH(STRING, STRING) -> BOOLEAN", "STARTSWITH(BINARY, BINARY) -> BOOLEAN", spark=None)
def startswith(call: Invocation, text: Any, start: Any) -> Any:
    """Whether the first argument begins with the second."""
    if isinstance(start, pa.Scalar) and start.is_valid:
        return pc.starts_with(text, start.as_py())
    return _at_edge(_column(text, call.n), _column(start, call.n), behind=False)


@scalar("ENDSWITH(STRING, STRING) -> BOOLEAN", "ENDSWITH(BINARY, BINARY) -> BOOLEAN", spark=None)
def endswith(call: Invocation, text: Any, end: Any) -> Any:
    """Whether the first argument ends with the second."""
    if isinstance(end, pa.Scalar) and end.is_valid:
        return pc.ends_with(text, end.as_py())
    return _at_edge(_column(text, call.n), _column(end, call.n), behind=True)


def _at_edge(text: pa.Array, part: pa.Array, behind: bool) -> pa.Array:
    if len(text) >= KERNEL_ROWS:
        return at_edge(text, part, behind)
    fits = (lambda word, piece: word.endswith(piece)) if behind else (lambda word, piece: word.startswith(piece))
    return map_rows([text, part], fits, pa.bool_())


@scalar("SPLIT(STRING, STRING) -> ARRAY<STRING>", spark=None)
def split(call: Invocation, text: Any, separator: Any) -> Any:
    """All pieces between separators; every character when the separator is empty, none of the empty text."""
    type_ = pa.list_(pa.string())

    def pieces_of(word: str, mark: str) -> list[str]:
        return [] if not word else word.split(mark) if mark else [joined(unit) for unit in units(word)]

    if isinstance(separator, pa.Scalar):
        if not separator.is_valid:
            return pa.nulls(call.n, type_)
        if separator.as_py() and pc.min(pc.binary_length(text)).as_py():
            return pc.split_pattern(text, separator.as_py())
        return map_distinct(text, lambda word: pieces_of(word, separator.as_py()), type_)
    return map_rows([_column(text, call.n), separator], pieces_of, type_)


def _choice_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return common_type([arg.type for arg in args[1:]])


def _check_index(args: Sequence[Expr], span: Span | None) -> None:
    index = args[0]
    if isinstance(index, Literal) and isinstance(index.value, int) and index.value < 0:
        raise BindError("bad-index", f"Index must be an integer starting from '0', but was '{index.value}'.", span)


@scalar(
    "ELT(INTEGER, STRING, STRING...) -> STRING",
    "ELT(INTEGER, BINARY, BINARY...) -> BYTES",
    nulls=NULLABLE,
    returns=_choice_type,
    check=_check_index,
    spark="ELT({..., })",
)
def elt(call: Invocation, index: Any, *choices: Any) -> Any:
    """The argument at a position (from 1); NULL where there is none."""
    values, valid = values_and_validity(_column(index, call.n))
    place = values.astype(np.int64)
    known = (place >= 1) & (place <= len(choices))
    known = known if valid is None else known & valid
    columns = [_column(choice, call.n) for choice in choices]
    rows = np.where(known, place - 1, 0) * call.n + np.arange(call.n)
    return pc.take(pa.concat_arrays(columns), pa.array(rows, mask=~known), boundscheck=False)
