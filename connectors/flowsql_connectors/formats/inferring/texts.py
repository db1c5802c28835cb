"""Which type texts of a file have: the narrowest one that reads every one of them without loss.

BOOLEAN, BIGINT, DOUBLE, DATE, TIMESTAMP(3, 6 or 9), TIMESTAMP_LTZ for moments with ``Z`` or an offset, else STRING.
Whole numbers are BIGINT, however small those of the sample are. Numbers with zeros in front (``007``) and those too
long for BIGINT stay STRING: a number would not keep them.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.record import record
from flowsql_core.types.logical import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    LogicalType,
    TimestampLtzType,
    TimestampType,
)

_BOOLEAN: Final = r"^(true|false|TRUE|FALSE|True|False)$"
_NUMBER: Final = r"^(-?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?|NaN|-?Infinity)$"
_DIGIT: Final = r"[0-9]|NaN|Infinity"
#: More digits than a DOUBLE is sure to keep.
_LONG: Final = r"^-?[0-9]{17,}$"
_STAMP: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_OFFSET: Final = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
#: As Flink's formats write and read timestamps.
_SQL: Final = r"^[0-9-]{10} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z?$"
#: The same with T; JSON takes Z and no offset.
_ISO: Final = r"^[0-9-]{10}T[0-9:.]+Z?$"


@record
class TextType:
    """The type of texts. ``sql`` and ``iso``: timestamps all of which have Flink's form of that name."""

    type: LogicalType
    sql: bool = False
    iso: bool = False

    @property
    def is_text(self) -> bool:
        """Whether only STRING holds them."""
        return self.type == STRING


def type_of_texts(texts: Any) -> TextType:
    """The type of a string array without NULLs; STRING where there is no value."""
    if not len(texts):
        return TextType(STRING)
    # One text tells for most columns what they are not.
    first = texts.slice(0, 1)
    for type_, fits in ((BOOLEAN, _all_booleans), (BIGINT, _all_integers), (DOUBLE, _all_numbers), (DATE, _all_dates)):
        if fits(first) and fits(texts):
            return TextType(type_)
    if matches(first, _STAMP) and matches(texts, _STAMP):
        return _timestamps(texts)
    return TextType(STRING)


def matches(texts: Any, pattern: str) -> bool:
    """Whether every text has a part of this form."""
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _all_booleans(texts: Any) -> bool:
    return matches(texts, _BOOLEAN)


def _all_integers(texts: Any) -> bool:
    try:
        # What reads and writes back alike has neither signs nor zeros too many.
        return bool(pc.all(pc.equal(pc.cast(pc.cast(texts, pa.int64()), pa.string()), texts)).as_py())
    except pa.ArrowInvalid:
        return False


def _all_numbers(texts: Any) -> bool:
    return matches(texts, _NUMBER) and matches(texts, _DIGIT) and not _some(texts, _LONG)


def _all_dates(texts: Any) -> bool:
    try:
        return bool(pc.all(pc.equal(pc.cast(pc.cast(texts, pa.date32()), pa.string()), texts)).as_py())
    except pa.ArrowInvalid:
        return False


def _timestamps(texts: Any) -> TextType:
    moments = matches(texts, _STAMP + _OFFSET + "$")
    if not moments and not matches(texts, _STAMP + "$"):
        return TextType(STRING)
    precision = 9 if _some(texts, r"\.[0-9]{7}") else 6 if _some(texts, r"\.[0-9]{4}") else 3
    try:
        pc.cast(texts, pa.timestamp("ns" if precision == 9 else "us", "UTC" if moments else None))
    except pa.ArrowInvalid:
        return TextType(STRING)
    made: LogicalType = TimestampLtzType(precision=precision) if moments else TimestampType(precision=precision)
    return TextType(made, sql=matches(texts, _SQL), iso=matches(texts, _ISO))


def _some(texts: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())
