"""VARIANT columns: texts that hold the printed JSON and, where they differ, a NUL and more of what was read.

What is printed has its keys sorted and its numbers in canonical form (``1.50`` is ``1.5``). After the first NUL comes
the JSON with its keys as they were written and its numbers as Flink tells them apart (``1.50``, ``1.0e0``), or nothing
where that is what is printed. After a second NUL come the names that Flink keeps with the value: a part of a document
keeps those of all the document, in the order in which they come first. They are left out where the value has just
these.

Values are equal where the whole texts are, as Flink compares bytes of values and of names.

Source: Flink, ``BinaryVariant`` and ``BinaryVariantInternalBuilder``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, string_buffers
from flowsql_compute.eval.json import plain_documents as json_kernels
from flowsql_compute.eval.json.document import json_string, read_json
from flowsql_compute.eval.text.columns import contains_bytes, gather
from flowsql_compute.eval.text.java_numbers import java_double
from flowsql_core.arrow import compute as pc
from flowsql_core.interpreter.large_stack import in_large_stack
from flowsql_core.record import record

_MARK: Final = "\0"
_MOST_DIGITS: Final = 38
#: Texts whose numbers may not be what the quick parser makes of them.
_INEXACT: Final = re.compile(r"[0-9][.eE]|[0-9]{19}|-0")


class Number(str):
    """A number with a fraction or an exponent, as it was written."""

    __slots__ = ()


class DuplicateKeyError(ValueError):
    """An object has a key twice."""


def variant_text(column: pa.Array) -> pa.Array:
    """The printed form of each value, pa.string; NULL stays NULL."""
    if not contains_bytes(column, _MARK):
        return column
    return pc.list_element(pc.split_pattern(column, _MARK, max_splits=1), 0)


def parse_variant(text: str, duplicates: bool) -> str:
    """The stored form of a JSON text.

    Args:
        duplicates: an object may have a key twice; the last one counts.

    Raises:
        ValueError: the text is no JSON, or an object has a key twice.
    """
    if _INEXACT.search(text) is None:
        # What comes out as it went in has no key twice and no blanks; most documents are so.
        try:
            value = orjson.loads(text)
            if "\\u00" not in text and orjson.dumps(value).decode() == text:
                shown = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
                return shown if shown == text else f"{shown}{_MARK}{text}"
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            # It is no JSON, or nested deeper than the quick parser writes.
            pass
    value = read_json(text, _LENIENT if duplicates else _STRICT)
    try:
        return stored(value)
    except RecursionError:
        return in_large_stack(lambda: stored(value))


def plain_variants(column: pa.Array) -> tuple[pa.Array, Bools]:
    """The stored forms of a text column by kernels, and which rows are left to :func:`parse_variant`."""
    data, low, high = json_kernels.whole(column)
    shown = json_kernels.compact(data, low, high, ordered=True, trimmed=True)
    left = (shown.state == 0) & (low >= 0)
    differ = shown.state == 2
    if not differ.any():
        return shown.text, left
    written = json_kernels.compact(data, np.where(differ, low, -1), high, ordered=False, trimmed=False)
    both = pc.binary_join_element_wise(shown.text, written.text, _MARK)
    return pc.if_else(make_array(differ, None, pa.bool_()), both, shown.text), left


def plain_parts(column: pa.Array, step: str | int) -> tuple[pa.Array, Bools]:
    """The member of each object, or the element (from 1) of each array, by kernels, NULL where there is none.

    Also which rows are left to the slow way: documents that were written otherwise than they are printed, and those
    that are no object or no array.
    """
    n = len(column)
    if isinstance(step, str) and _PLAIN_KEY.fullmatch(step) is None:
        return pa.nulls(n, pa.string()), np.ones(n, dtype=np.bool_)
    names = None
    otherwise = np.zeros(n, dtype=np.bool_)
    if contains_bytes(column, _MARK):
        column, otherwise, names = _split(column)
    offsets, data = string_buffers(column)
    opening = np.zeros(n, dtype=np.uint8)
    filled = np.diff(offsets) > 0
    opening[filled] = data[offsets[:-1][filled]]
    holds = opening == ord("{" if isinstance(step, str) else "[")
    # No array has as many elements as that.
    place = step if isinstance(step, str) else step - 1 if 1 <= step < 2**31 else 2**31
    found = json_kernels.find(column, (place,))
    texts, others = found.kind == json_kernels.STRING, np.isin(found.kind, _READ)
    there = holds & (texts | others) & ~otherwise
    # A string's range lies between its quotes.
    made = gather(data, np.where(there, found.low - texts, 0), np.where(there, found.high + texts, 0), there)
    made, many = _with_names(column, made, names, there)
    missing = found.kind == json_kernels.MISSING
    return made, found.left(~holds | ~(texts | others | missing) | otherwise | many)


def _split(column: pa.Array) -> tuple[pa.Array, Bools, pa.Array]:
    """What is printed of stored forms, which are written otherwise, and the names, '' where the form has none."""
    offsets, data = string_buffers(column)
    n = len(column)
    low, high = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    marks = np.flatnonzero(data[: offsets[-1]] == 0)
    marks = marks[marks >= offsets[0]]
    rows = np.searchsorted(high, marks, side="right")
    first, second = high.copy(), high.copy()
    first[rows[::-1]] = marks[::-1]
    twice = np.bincount(rows, minlength=n) == 2
    second[rows] = np.where(twice[rows], marks, second[rows])
    there = np.ones(n, dtype=np.bool_)
    names = gather(data, np.minimum(second + 1, high), high, there)
    return gather(data, low, first, there), second - first > 1, names


def _with_names(column: pa.Array, made: pa.Array, names: pa.Array | None, there: Bools) -> tuple[pa.Array, Bools]:
    """Parts of documents with the documents' names, and which rows have too many.

    ``names``: '' for those of the document itself.
    """
    all_names, many = json_kernels.member_names(column, ~there)
    if names is not None:
        kept = pc.not_equal(names, "")
        all_names, many = pc.if_else(kept, names, all_names), many & ~np.asarray(pc.fill_null(kept, False))
    own, of_part = json_kernels.member_names(made, ~there)
    longer = pc.binary_join_element_wise(made, all_names, _MARK * 2)
    return pc.if_else(pc.equal(own, all_names), made, longer), many | of_part


#: What the kernel finds as it is stored.
_READ: Final = (
    json_kernels.NULL, json_kernels.TRUTH, json_kernels.INTEGER, json_kernels.DECIMAL, json_kernels.OBJECT,
    json_kernels.ARRAY,
)  # fmt: skip
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_ ]+")


def stored(value: Any, names: str | None = None) -> str:
    """Return the stored form of a value: dict, list, str, int, :class:`Number`, bool or None.

    Args:
        names: of the document that the value is a part of, as :func:`names_of` gives them.
    """
    shown, written = _write(value, _canonical, ordered=True), _write(value, _number_text, ordered=False)
    if names is not None and names != _own_names(value):
        return f"{shown}{_MARK}{'' if shown == written else written}{_MARK}{names}"
    return shown if shown == written else f"{shown}{_MARK}{written}"


def value_of(text: str) -> Any:
    """Return the value of a stored form."""
    shown, _, rest = text.partition(_MARK)
    return read_json(rest.partition(_MARK)[0] or shown, _LENIENT)


def names_of(text: str, value: Any) -> str:
    """Return the names that a stored form keeps, as JSON strings one after another; ``value``: its value."""
    parts = text.split(_MARK)
    return parts[2] if len(parts) == 3 else _own_names(value)


def _own_names(value: Any) -> str:
    found: dict[str, None] = {}
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as members:
                # A name comes before what is in its member.
                waiting.extend(_Named(name, member) for name, member in reversed(members.items()))
            case _Named(name=name, value=member):
                found.setdefault(name)
                waiting.append(member)
            case list() as elements:
                waiting.extend(reversed(elements))
    return "".join(map(json_string, found))


@record
class _Named:
    name: str
    value: Any


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise DuplicateKeyError("VARIANT_DUPLICATE_KEY")
    return made


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"Non-standard token '{text}'")


_LENIENT: Final = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant)
_STRICT: Final = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant, object_pairs_hook=_once)


def _write(value: Any, number: Callable[[int | Number], str], ordered: bool) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Number() | int():
            return number(value)
        case str():
            return json_string(value)
        case dict():
            items = sorted(value.items()) if ordered else value.items()
            return "{" + ",".join(f"{json_string(key)}:{_write(item, number, ordered)}" for key, item in items) + "}"
    return "[" + ",".join(_write(item, number, ordered) for item in value) + "]"


def _number_text(value: int | Number) -> str:
    """A number as Flink tells it apart from others: decimals with their scale, doubles with an exponent."""
    if _is_double(value):
        double = float(value)
        if math.isinf(double):
            return "1e999" if double > 0 else "-1e999"
        text = repr(double)
        return text if "e" in text else f"{text}e0"
    text = str(value)
    return text.lstrip("-") if isinstance(value, Number) and Decimal(text).is_zero() else text


def _is_double(value: int | Number) -> bool:
    """True for numbers of more than 38 digits and those with an exponent."""
    if isinstance(value, int):
        return len(str(value).lstrip("-")) > _MOST_DIGITS
    if "e" in value or "E" in value:
        return True
    _, digits, exponent = Decimal(value).as_tuple()
    return len(digits) > _MOST_DIGITS or -int(exponent) > _MOST_DIGITS


def _canonical(value: int | Number) -> str:
    """Integers and decimals exactly, others as a double."""
    if _is_double(value):
        return java_double(float(value))
    if isinstance(value, int):
        return str(value)
    exact = Decimal(value)
    return format(abs(exact) if exact.is_zero() else exact, "f").rstrip("0").rstrip(".")
