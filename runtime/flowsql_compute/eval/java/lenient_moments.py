"""Texts to moments by the rules of ``java.text.SimpleDateFormat`` and ``GregorianCalendar``, locale US.

Fields may overflow, text behind is ignored, weeks and days of the week make dates, a zone moves the moment.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache

from flowsql_compute.eval.java.date_pattern import DAY_NAMES, MONTH_NAMES, Token, pattern_tokens
from flowsql_compute.eval.java.zone_names import named_offset, zone_names
from flowsql_compute.eval.time.civil import civil_days, historic_days, historic_month
from flowsql_core.errors import ExecutionError

_NANOS = 1_000_000_000
_NUMBERS = "yYuMLwWDdFHkKhmsS"
_ZONES = "zZX"
_LETTERS = _NUMBERS + _ZONES + "GEa"


def reads_zone(pattern: str) -> bool:
    """Whether moments of the pattern are those of a zone that stands in the text."""
    return any(token.letter and token.letter in _ZONES for token in pattern_tokens(pattern))


def parse_leniently(text: str, pattern: str) -> int | None:
    """Nanoseconds from the epoch; None when the text does not fit.

    Those of the wall clock, or of the point in time if the pattern ``reads_zone``.

    Raises:
        ExecutionError: Java refuses the pattern.
    """
    found = _compiled(pattern).match(text)
    # What reads nothing fails.
    if found is None or not found.end():
        return None
    fields: dict[str, int] = {}
    for place, token in enumerate(pattern_tokens(pattern)):
        if token.letter:
            field, value = _value(token, found[f"g{place}"].strip(" \t"))
            # What was read last decides which fields make the date.
            fields.pop(field, None)
            fields[field] = value
    seconds = _date(fields) * 86_400 + _clock(fields) - fields.get("z", 0)
    return seconds * _NANOS + fields.get("S", 0) * 1_000_000


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    tokens = pattern_tokens(pattern)
    parts: list[str] = []
    for token, following in zip(tokens, (*tokens, None)[1:], strict=True):
        if token.letter:
            parts.append(f"(?P<g{len(parts)}>{_blanks_and_field(token, following)})")
        else:
            # Brackets are text here.
            parts.append(re.escape(token.text or "[]"[token.count - 1 : token.count]))
    return re.compile("".join(parts), re.ASCII | re.IGNORECASE)


def _field_regex(token: Token) -> str:
    letter, count = token.letter, token.count
    if letter not in _LETTERS:
        raise ExecutionError("bad-pattern", f"Illegal pattern character '{letter}'")
    match letter:
        case "a":
            return "AM|PM"
        case "G":
            return "BC|AD"
        case "E":
            return _either(DAY_NAMES)
        case "M" | "L" if count >= 3:
            return _either(MONTH_NAMES)
        case "X":
            digits = {1: r"\d\d", 2: r"\d\d[0-5]\d"}.get(count, r"\d\d:[0-5]\d")
            return f"Z|[+-]{digits}"
        case "z" | "Z":
            return rf"[+-]\d\d[0-5]\d|GMT[+-]\d\d?:[0-5]\d|{zone_names()}"
    return r"-?\d++"


def _blanks_and_field(token: Token, following: Token | None) -> str:
    """A field behind blanks. Before another number it has as many characters as letters, blanks and sign with them."""
    if following is None or not _is_number(token) or not _is_number(following):
        return rf"[ \t]*+(?:{_field_regex(token)})"
    widths = []
    for blanks in range(token.count):
        left = token.count - blanks
        digits = rf"\d{{1,{left}}}+" + (rf"|-\d{{1,{left - 1}}}+" if left > 1 else "")
        widths.append(rf"[ \t]{{{blanks}}}(?:{digits})")
    return f"(?>{'|'.join(widths)})"


def _is_number(token: Token) -> bool:
    return token.letter != "" and token.letter in _NUMBERS and (token.letter not in "ML" or token.count < 3)


def _either(names: tuple[str, ...]) -> str:
    return "|".join((*names, *(name[:3] for name in names)))


def _value(token: Token, text: str) -> tuple[str, int]:
    """The field of a token, as the calendar calls it, and its value."""
    letter = token.letter
    match letter:
        case "a":
            return "a", int(text.upper() == "PM")
        case "G":
            return "G", int(text.upper() == "AD")
        case "E":
            return "E", (_index(DAY_NAMES, text) + 1) % 7 + 1
        case "z" | "Z" | "X":
            return "z", _offset(text)
        case "M" | "L" if token.count >= 3:
            return "M", _index(MONTH_NAMES, text) + 1
    value = _java_int(int(text))
    match letter:
        case "y" | "Y":
            return letter, _pivot(value) if token.count <= 2 and len(text) == 2 and text.isdigit() else value
        case "L":
            return "M", value
        case "u":
            return "E", value % 7 + 1
        case "k":
            return "H", 0 if value == 24 else value
        case "h":
            return "K", 0 if value == 12 else value
    return letter, value


def _index(names: tuple[str, ...], text: str) -> int:
    return [name[:3].lower() for name in names].index(text[:3].lower())


def _offset(text: str) -> int:
    """Seconds east of UTC."""
    named = named_offset(text)
    if named is not None:
        return named
    digits = re.fullmatch(r"(?:GMT)?([+-])(\d\d?):?(\d\d)?", text, re.IGNORECASE)
    if digits is None:
        return 0
    return (-60 if digits[1] == "-" else 60) * (60 * int(digits[2]) + int(digits[3] or 0))


def _java_int(value: int) -> int:
    """``Number.intValue``: the low 32 bits of a long; longer numbers are doubles, which stop at the ends."""
    if -(2**63) <= value < 2**63:
        return (value + 2**31) % 2**32 - 2**31
    return 2**31 - 1 if value > 0 else -(2**31)


def _pivot(two_digits: int) -> int:
    """The year within 80 years before and 20 years after now."""
    today = datetime.date.today().year
    year = today - today % 100 + two_digits
    return year - 100 if year > today + 20 else year + 100 if year < today - 80 else year


# The calendar


def _clock(fields: dict[str, int]) -> int:
    order = list(fields)
    by_half = "K" in fields and "a" in fields
    hour = fields.get("H")
    if by_half and (hour is None or max(order.index("K"), order.index("a")) > order.index("H")):
        hour = fields["K"] + 12 * fields["a"]
    elif hour is None:
        hour = fields.get("K", 0) + 12 * fields.get("a", 0)
    return (hour * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0)


def _date(fields: dict[str, int]) -> int:
    """Epoch days by the group of fields that was read last: day, week or day of the week of a month, or of a year."""
    stamp = {field: place + 1 for place, field in enumerate(fields)}
    if stamp.get("Y", 0) > stamp.get("y", 0):
        return _sunday(civil_days(fields["Y"], 1, 1)) + 7 * (fields.get("w", 1) - 1) + fields.get("E", 1) - 1
    year = fields.get("y", 1970)
    if not fields.get("G", 1):
        year = 1 - year
    weekday = stamp.get("E", 0)
    kinds = {
        "d": stamp.get("d", 0),
        "W": max(stamp["W"], weekday) if "W" in stamp and weekday else 0,
        "F": max(stamp["F"], weekday) if "F" in stamp and weekday else 0,
        "D": stamp.get("D", 0),
        "w": max(stamp["w"], weekday) if "w" in stamp and weekday else 0,
    }
    if not any(kinds.values()):
        kinds = {"d": 0, "W": stamp.get("W", 0), "F": max(stamp.get("F", 0), weekday), "w": stamp.get("w", 0)}
    best = max(kinds, key=lambda kind: kinds[kind])
    month = fields.get("M", 1)
    match best if kinds[best] else "d":
        case "W":
            first = _sunday(historic_month(year, month))
            return first + 7 * (fields["W"] - 1) + fields.get("E", 1) - 1
        case "F":
            return _nth(historic_month(year, month), fields.get("F", 1), fields.get("E", 1), year, month)
        case "D":
            return historic_month(year, 1) + fields["D"] - 1
        case "w":
            return _sunday(historic_month(year, 1)) + 7 * (fields["w"] - 1) + fields.get("E", 1) - 1
    return historic_days(year, month, fields.get("d", 1))


def _sunday(days: int) -> int:
    """The Sunday on or before a day."""
    return days - (days + 4) % 7


def _nth(first: int, nth: int, weekday: int, year: int, month: int) -> int:
    """The nth day of the week (1 is Sunday) of a month; negative ones count from its end."""
    latest = first + 7 * nth - 1 if nth >= 0 else historic_month(year, month + 1) + 7 * (nth + 1) - 1
    return latest - ((latest + 4) % 7 + 1 - weekday) % 7
