"""Texts to moments by the rules of ``java.time.format.DateTimeFormatter``, locale US, smart resolving.

A pattern becomes one regular expression; what its groups hold is resolved as ``java.time.format.Parsed`` does: clock
fields to a time, date fields to a date, and what is left over must agree with both. A zone must be one, but does not
move the moment: Flink takes the wall clock.
"""

from __future__ import annotations

import calendar
import re
from functools import lru_cache

from flowsql_compute.eval.java.date_pattern import DAY_NAMES, MONTH_NAMES, Token, pattern_tokens
from flowsql_compute.eval.java.zone_names import region_names, zone_names
from flowsql_compute.eval.time.civil import civil_date, civil_days, month_length
from flowsql_core.errors import ExecutionError, NotSupportedYetError

_NANOS = 1_000_000_000
_DAY_NS = 86_400 * _NANOS
_ERAS = {"short": ("BC", "AD"), "full": ("Before Christ", "Anno Domini"), "narrow": ("B", "A")}
_QUARTERS = {
    "short": ("Q1", "Q2", "Q3", "Q4"), "full": ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter"),
}  # fmt: skip
_HOURS = r"(?:0\d|1[0-8])"
_SIXTY = r"[0-5]\d"
_OFFSETS = {
    1: rf"[+-]{_HOURS}(?:{_SIXTY})?", 2: rf"[+-]{_HOURS}{_SIXTY}", 3: rf"[+-]{_HOURS}:{_SIXTY}",
    4: rf"[+-]{_HOURS}{_SIXTY}(?:{_SIXTY})?", 5: rf"[+-]{_HOURS}:{_SIXTY}(?::{_SIXTY})?",
}  # fmt: skip
_LONG_GMT = rf"GMT(?:[+-]{_HOURS}:{_SIXTY}(?::{_SIXTY})?)?"
_LIMITS = {
    "M": (1, 12), "d": (1, 31), "D": (1, 366), "H": (0, 24), "h": (0, 12), "k": (0, 24), "K": (0, 11), "m": (0, 59),
    "s": (0, 59), "y": (1, 999_999_999), "u": (-999_999_999, 999_999_999), "n": (0, _NANOS - 1), "Q": (1, 4),
    "N": (0, _DAY_NS - 1), "A": (0, 86_399_999), "e": (1, 7), "w": (1, 54), "W": (0, 6), "F": (1, 7),
    "Y": (-999_999_999, 999_999_999),
}  # fmt: skip
#: Letters that mean the field of another one.
_SAME = {"L": "M", "q": "Q", "S": "n", "E": "E", "c": "e"}
#: How often letters may stand one behind another.
_MOST_LETTERS = (("aW", 1), ("dHhKkmsw", 2), ("D", 3), ("MLEecQqG", 5))


class _ConflictError(Exception):
    """Two fields of one text contradict each other."""


def parse_strictly(text: str, pattern: str) -> int | None:
    """Nanoseconds from the epoch of the wall clock that a text shows; None when it does not fit the pattern.

    Fields that the pattern lacks are those of 1970-01-01 00:00.

    Raises:
        ExecutionError: Java refuses the pattern.
    """
    found = _compiled(pattern).fullmatch(text)
    if found is None:
        return None
    try:
        return _resolved(_fields(pattern_tokens(pattern), found))
    except (_ConflictError, ValueError):
        return None


# Patterns


def check_pattern(pattern: str) -> None:
    """Find out whether texts can be read by a pattern.

    Raises:
        ExecutionError: Java refuses the pattern.
    """
    _compiled(pattern)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    tokens = pattern_tokens(pattern)
    parts: list[str] = []
    open_parts = 0
    for place, token in enumerate(tokens):
        if token.letter:
            parts.append(f"(?P<g{place}>{_field_regex(token)})")
        elif token.count == 1:
            parts.append("(?>(?:")
            open_parts += 1
        elif token.count == 2:
            if not open_parts:
                raise ExecutionError("bad-pattern", "Pattern invalid as it contains ] without previous [")
            parts.append(")?)")
            open_parts -= 1
        else:
            parts.append(re.escape(token.text))
    parts.append(")?)" * open_parts)
    return re.compile("".join(parts), re.ASCII)


def _field_regex(token: Token) -> str:
    letter, count = token.letter, token.count
    if count > next((most for letters, most in _MOST_LETTERS if letter in letters), count):
        raise ExecutionError("bad-pattern", f"Too many pattern letters: {letter}")
    if letter == "S" and count > 9:
        raise ExecutionError("bad-pattern", f"Minimum width must be from 0 to 9 inclusive but was {count}")
    if letter in "yuYAnN" and count > 19:
        raise ExecutionError("bad-pattern", f"The minimum width must be from 1 to 19 inclusive but was {count}")
    names = _names(token)
    if names is not None:
        return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    match letter:
        case "y" | "u" | "Y":
            if count == 2:
                return r"\d{2}"
            return _signed(count) if count < 4 else _padded_year(count)
        case "M" | "L" | "d" | "H" | "h" | "k" | "K" | "m" | "s" | "Q" | "q":
            return r"\d{2}" if count == 2 else _signed(1)
        case "E" | "F" | "g":
            # Initials of days are no text that can be read: numbers are.
            return _signed(1)
        case "D":
            return rf"\d{{{count},3}}" if count > 1 else _signed(1)
        case "w" | "W" | "e" | "c":
            return rf"\d{{{count},2}}" if count <= 2 else _signed(1)
        case "S":
            return rf"\d{{{count}}}"
        case "A" | "n" | "N":
            return rf"\d{{{count},19}}"
    return _zone_regex(letter, count)


def _signed(least: int) -> str:
    return rf"-?\d{{{least},19}}"


def _padded_year(count: int) -> str:
    """More digits than asked for need a sign."""
    return rf"\d{{{count}}}|-\d{{{count},19}}|\+\d{{{count + 1},19}}"


def _zone_regex(letter: str, count: int) -> str:
    match letter:
        case "X" | "x" if count <= 5:
            return ("Z|" if letter == "X" else "") + _OFFSETS[count]
        case "Z" if count <= 5:
            return {4: _LONG_GMT, 5: f"Z|{_OFFSETS[5]}"}.get(count, _OFFSETS[2])
        case "O" if count in (1, 4):
            return _LONG_GMT if count == 4 else rf"GMT(?:[+-]1?\d(?::{_SIXTY}(?::{_SIXTY})?)?)?"
        case "V" if count == 2:
            return f"(?:UTC|GMT|UT)(?:{_OFFSETS[5]})|{region_names()}|Z|{_OFFSETS[5]}|{_OFFSETS[1]}"
        case "z" | "v" if count <= 4:
            return f"{zone_names(long=count == 4)}|{_zone_regex('V', 2)}"
        case "V":
            raise ExecutionError("bad-pattern", f"Pattern letter count must be 2: {letter}")
        case "B" | "p":
            raise NotSupportedYetError(f"the letter {letter} in a pattern to parse with")
        case "X" | "x" | "Z" | "O" | "z" | "v":
            raise ExecutionError("bad-pattern", f"Too many pattern letters: {letter}")
    raise ExecutionError("bad-pattern", f"Unknown pattern letter: {letter}")


def _names(token: Token) -> tuple[str, ...] | None:
    """The texts that a field is written with; None for numbers."""
    letter, count = token.letter, token.count
    style = {1: "short", 2: "short", 3: "short", 4: "full", 5: "narrow"}.get(count, "")
    match letter:
        case "M" | "L" if 3 <= count <= 4:
            return MONTH_NAMES if count == 4 else tuple(name[:3] for name in MONTH_NAMES)
        case "E" | "e" | "c" if 3 <= count <= 4 or (letter == "E" and count < 3):
            return DAY_NAMES if count == 4 else tuple(name[:3] for name in DAY_NAMES)
        case "G" if style:
            return _ERAS[style]
        case "Q" | "q" if 3 <= count <= 4:
            return _QUARTERS[style]
        case "a":
            return ("AM", "PM")
    return None


# Fields


def _fields(tokens: tuple[Token, ...], found: re.Match[str]) -> dict[str, int]:
    fields: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if not token.letter or (text := found[f"g{place}"]) is None or token.letter in "XxZOVzv":
            continue
        field, value = _SAME.get(token.letter, token.letter), _value(token, text)
        if token.letter in "ec" and token.count >= 3:
            field = "E"
        low, high = _LIMITS.get(field, (-(10**19), 10**19))
        if not low <= value <= high:
            raise _ConflictError
        _put(fields, field, value)
    return fields


def _value(token: Token, text: str) -> int:
    names = _names(token)
    if names is not None:
        place = names.index(text)
        return place if token.letter in "Ga" else place + 1
    if token.letter == "S":
        return int(text.ljust(9, "0")[:9])
    return 2000 + int(text) if token.letter in "yuY" and token.count == 2 else int(text)


def _put(fields: dict[str, int], field: str, value: int) -> None:
    if fields.setdefault(field, value) != value:
        raise _ConflictError


def _resolved(fields: dict[str, int]) -> int:
    _resolve_clock(fields)
    days = _resolve_date(fields)
    extra = 0
    if fields.get("H") == 24:
        # Midnight at the end of the day.
        if fields.get("m", 0) or fields.get("s", 0) or fields.get("n", 0):
            raise _ConflictError
        fields["H"], extra = 0, 1 if days is not None else 0
    if days is None:
        year, month, day = fields.get("u", 1970), fields.get("M", 1), fields.get("d", 1)
        if day > month_length(year, month):
            raise _ConflictError
        days = civil_days(year, month, day)
    else:
        _check_date(fields, days)
    seconds = (fields.get("H", 0) * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0)
    return ((days + extra) * 86_400 + seconds) * _NANOS + fields.get("n", 0)


def _resolve_clock(fields: dict[str, int]) -> None:
    if "k" in fields:
        _put(fields, "H", fields.pop("k") % 24)
    if "h" in fields:
        _put(fields, "K", fields.pop("h") % 12)
    if "a" in fields and "K" in fields:
        _put(fields, "H", fields.pop("a") * 12 + fields.pop("K"))
    if "A" in fields:
        _put_clock(fields, fields.pop("A") * 1_000_000)
    if "N" in fields:
        _put_clock(fields, fields.pop("N"))
    hour = fields.get("H")
    if hour is not None and fields.get("a", hour // 12) != hour // 12 % 2:
        raise _ConflictError
    if hour is not None and fields.get("K", hour % 12) != hour % 12:
        raise _ConflictError


def _put_clock(fields: dict[str, int], nanos: int) -> None:
    seconds, rest = divmod(nanos, _NANOS)
    for field, value in (("H", seconds // 3600), ("m", seconds // 60 % 60), ("s", seconds % 60), ("n", rest)):
        _put(fields, field, value)


def _resolve_date(fields: dict[str, int]) -> int | None:
    """Epoch days where the fields make a date; years of an era become years."""
    if "y" in fields:
        value = fields.pop("y")
        _put(fields, "u", value if fields.get("G", 1) else 1 - value)
    if "e" in fields:
        # Days of the week count from Sunday here, from Monday in E.
        _put(fields, "E", (fields.pop("e") + 5) % 7 + 1)
    if "g" in fields:
        return fields.pop("g") - 40_587
    if "u" in fields and "M" in fields and "d" in fields:
        return civil_days(fields["u"], fields["M"], min(fields["d"], month_length(fields["u"], fields["M"])))
    if "u" in fields and "D" in fields:
        if fields["D"] > 365 + calendar.isleap(fields["u"]):
            raise _ConflictError
        return civil_days(fields["u"], 1, 1) + fields["D"] - 1
    if "Y" in fields and "w" in fields and "E" in fields:
        return _week_start(civil_days(fields["Y"], 1, 1)) + 7 * (fields["w"] - 1) + fields["E"] % 7
    if "u" in fields and "M" in fields and "W" in fields and "E" in fields:
        first = _week_start(civil_days(fields["u"], fields["M"], 1))
        return first + 7 * (fields["W"] - 1) + fields["E"] % 7
    return None


def _week_start(days: int) -> int:
    """The Sunday on or before a day: weeks of the US."""
    return days - (days + 4) % 7


def _check_date(fields: dict[str, int], days: int) -> None:
    """What was read beside the date must agree with it."""
    year, month, day = civil_date(days)
    following = _week_start(civil_days(year + 1, 1, 1))
    week_year = year + 1 if days >= following else year
    known = {
        "u": year, "M": month, "d": day, "E": (days + 3) % 7 + 1, "Q": (month + 2) // 3,
        "D": days - civil_days(year, 1, 1) + 1, "Y": week_year,
        "w": (days - _week_start(civil_days(week_year, 1, 1))) // 7 + 1,
        "W": (days - _week_start(civil_days(year, month, 1))) // 7 + 1, "F": (day - 1) % 7 + 1,
    }  # fmt: skip
    smart = {"d": min(fields.get("d", day), month_length(year, month))}
    if any(value != {**fields, **smart}.get(field, value) for field, value in known.items()):
        raise _ConflictError
