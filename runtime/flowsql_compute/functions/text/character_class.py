"""What a text consists of: IS_ALPHA, IS_DIGIT, IS_DECIMAL. They are never NULL."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.columns import all_ascii
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.functions.registry import NOT_NULL, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.types import logical as t

#: Java looks at UTF-16 units: letters and digits beyond the basic plane are none to it.
_BEYOND = r"[\x{10000}-\x{10FFFF}]"


def _only(text: pa.Array, fits: pa.Array) -> pa.Array:
    if all_ascii(text):
        return pc.fill_null(fits, False)
    return pc.fill_null(pc.and_(fits, pc.invert(pc.match_substring_regex(text, _BEYOND))), False)


def _constant(call: Invocation, number: pa.Array, when_valid: bool) -> pa.Array:
    return pc.and_(pc.is_valid(number), pa.scalar(when_valid))


@scalar("IS_ALPHA(STRING) -> BOOLEAN", nulls=NOT_NULL, spark=None)
def is_alpha(text: Any) -> Any:
    """Whether there are letters only, at least one."""
    return _only(text, pc.utf8_is_alpha(text))


@scalar("IS_ALPHA(NUMERIC) -> BOOLEAN", nulls=NOT_NULL, spark=None)
def is_alpha_number(call: Invocation, number: Any) -> Any:
    """FALSE: numbers are no letters."""
    return _constant(call, number, False)


@scalar("IS_DIGIT(STRING) -> BOOLEAN", nulls=NOT_NULL, spark=None)
def is_digit(text: Any) -> Any:
    """Whether there are digits only, at least one."""
    return _only(text, pc.match_substring_regex(text, r"^\p{Nd}+$"))


@scalar("IS_DIGIT(INTEGER) -> BOOLEAN", nulls=NOT_NULL, spark=None)
def is_digit_integer(call: Invocation, number: Any) -> Any:
    """TRUE for an integer that is not NULL."""
    return _constant(call, number, True)


@scalar("IS_DIGIT(NUMERIC) -> BOOLEAN", nulls=NOT_NULL, spark=None)
def is_digit_number(call: Invocation, number: Any) -> Any:
    """FALSE for numbers with a fraction."""
    return _constant(call, number, False)


_DECIMAL = (
    r"^[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?"
    r"|0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?)[\x00-\x20]*$"
)


@scalar("IS_DECIMAL(STRING) -> BOOLEAN", nulls=NOT_NULL, spark=None)
def is_decimal(text: Any) -> Any:
    """Whether Java reads the text as a number (``1e5``, ``NaN``, ``1d``)."""
    fits = pc.match_substring_regex(text, _DECIMAL)
    if not all_ascii(text):
        # Digits of other scripts make integers.
        fits = pc.or_(fits, map_distinct(text, _is_integer, pa.bool_()))
    return pc.fill_null(fits, False)


def _is_integer(word: str) -> bool:
    found = re.fullmatch(r"[+-]?\d+", word)
    return found is not None and max(word) <= "\uffff" and -(2**31) <= int(word) < 2**31


@scalar("IS_DECIMAL(NUMERIC) -> BOOLEAN", nulls=NOT_NULL, spark=None)
def is_decimal_number(call: Invocation, number: Any) -> Any:
    """TRUE for a number that is not NULL; FALSE for DECIMAL, as in Flink."""
    return _constant(call, number, not isinstance(call.arg_types[0], t.DecimalType))
