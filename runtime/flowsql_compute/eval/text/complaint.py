"""What Java says of a text that is no number or moment: the messages of failing casts. Runs only after a failure."""

from __future__ import annotations

import re
from typing import Final

from flowsql_core.types import logical as t

_DATE: Final = ((4, 4), "-", (1, 2), "-", (1, 2))
_FIELDS: Final = (
    ("MonthOfYear", "1 - 12", 1, 12),
    ("DayOfMonth", "1 - 28/31", 1, 31),
    ("HourOfDay", "0 - 23", 0, 23),
    ("MinuteOfHour", "0 - 59", 0, 59),
    ("SecondOfMinute", "0 - 59", 0, 59),
)
_MOMENT: Final = re.compile(r"\d{4}-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d{0,9})?)?")


def float_complaint(word: str) -> str:
    """``Double.parseDouble``: no text at all, a second point in a number, or any other text."""
    trimmed = word.strip()
    if not trimmed:
        return "empty String"
    if re.match(r"[+-]?\d*\.\d*\.", trimmed):
        return "multiple points"
    return f'For input string: "{trimmed}"'


def decimal_complaint(word: str, type_: t.DecimalType) -> str:
    """Up to 18 digits Flink's own parser fails for any reason in one way, beyond them Java's names what it met."""
    if type_.precision > 18:
        odd = re.search(r"[^0-9.eE+-]", word.strip())
        if odd is not None:
            return (
                f'Character {odd[0]} is neither a decimal digit number, decimal point, nor "e" notation exponential '
                "mark."
            )
    return f"For input string: '{word}'. Overflow."


def timestamp_complaint(word: str) -> str:
    """What stands behind ``Text '...' could not be parsed``: where it is no moment, or which field is too big."""
    found = _MOMENT.match(word)
    if found is None:
        return f" at index {_broken_at(word)}"
    if found.end() < len(word):
        return f", unparsed text found at index {found.end()}"
    for text, (name, values, low, high) in zip(found.groups(), _FIELDS, strict=True):
        if text is not None and not low <= int(text) <= high:
            return f": Invalid value for {name} (valid values {values}): {int(text)}"
    return ""


def _broken_at(word: str) -> int:
    """The index of the first part of a date that is not there."""
    at = 0
    for part in _DATE:
        if isinstance(part, str):
            if word[at : at + 1] != part:
                return at
            at += 1
            continue
        least, most = part
        digits = re.match(r"\d*", word[at:])
        count = len(digits[0]) if digits is not None else 0
        if count < least or (least == most and count > most):
            return at
        at += min(count, most)
    return at
