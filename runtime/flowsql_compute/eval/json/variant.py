"""VARIANT columns: texts that hold the printed JSON and, where it differs, a NUL and the JSON as it was written.

What is printed has its keys sorted and its numbers in canonical form (``1.50`` is ``1.5``); values are equal only where
they were written alike, keys in the same order. Parts are taken from the written form.
"""

from __future__ import annotations

import json
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
    if contains_bytes(column, _MARK) or (isinstance(step, str) and _PLAIN_KEY.fullmatch(step) is None):
        return pa.nulls(n, pa.string()), np.ones(n, dtype=np.bool_)
    offsets, data = string_buffers(column)
    opening = np.zeros(n, dtype=np.uint8)
    filled = np.diff(offsets) > 0
    opening[filled] = data[offsets[:-1][filled]]
    holds = opening == ord("{" if isinstance(step, str) else "[")
    # No array has as many elements as that.
    place = step if isinstance(step, str) else step - 1 if 1 <= step < 2**31 else 2**31
    found = json_kernels.find(column, (place,))
    texts, others = found.kind == json_kernels.STRING, np.isin(found.kind, _READ)
    there = holds & (texts | others)
    # A string's range lies between its quotes.
    made = gather(data, np.where(there, found.low - texts, 0), np.where(there, found.high + texts, 0), there)
    return made, found.left(~holds | ~(texts | others | (found.kind == json_kernels.MISSING)))


#: What the kernel finds as it is stored.
_READ: Final = (
    json_kernels.NULL, json_kernels.TRUTH, json_kernels.INTEGER, json_kernels.DECIMAL, json_kernels.OBJECT,
    json_kernels.ARRAY,
)  # fmt: skip
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_ ]+")


def stored(value: Any) -> str:
    """The stored form of a value: dict, list, str, int, :class:`Number`, bool or None."""
    shown, written = _write(value, _canonical, ordered=True), _write(value, _number_text, ordered=False)
    return shown if shown == written else f"{shown}{_MARK}{written}"


def value_of(text: str) -> Any:
    """The value behind a stored form."""
    shown, _, written = text.partition(_MARK)
    return read_json(written or shown, _LENIENT)


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
    return str(value)


def _canonical(value: int | Number) -> str:
    """Integers and decimals of up to 38 digits exactly; longer numbers and those with an exponent as a double."""
    if isinstance(value, int):
        text = str(value)
        return text if len(text.lstrip("-")) <= _MOST_DIGITS else java_double(float(value))
    if "e" in value or "E" in value:
        return java_double(float(value))
    exact = Decimal(value)
    _, digits, exponent = exact.as_tuple()
    if len(digits) > _MOST_DIGITS or -int(exponent) > _MOST_DIGITS:
        return java_double(float(value))
    return format(abs(exact) if exact.is_zero() else exact, "f").rstrip("0").rstrip(".")
