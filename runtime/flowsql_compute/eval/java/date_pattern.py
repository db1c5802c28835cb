"""Java's date patterns (``yyyy-MM-dd HH:mm:ss``): their pieces, and columns of moments as texts.

Formatting works on the distinct days, minutes or seconds of a column, whichever is the finest unit of the pattern, or
writes the digits of a numeric pattern for all rows at once. Source: ``java.time.format.DateTimeFormatter`` and
``java.text.SimpleDateFormat``, locale US.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, make_strings
from flowsql_compute.eval.time.calendar import civil_from_days, days_from_civil
from flowsql_compute.eval.time.civil import civil_days
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NANOS = 1_000_000_000
_DAY_NS = 86_400 * _NANOS
#: The coarsest unit, in nanoseconds, that each letter's text is constant in.
_GRAIN = {
    **dict.fromkeys("yuMLdDEecQqYwWGFg", _DAY_NS),
    **dict.fromkeys("ahHkK", 3600 * _NANOS),
    **dict.fromkeys("mB", 60 * _NANOS),
    "s": _NANOS,
}
_CANONICAL = "yyyy-MM-dd HH:mm:ss.SSS"
_NUMERIC_LETTERS = "yuMdDHhkKmsS"


_OPTIONAL = {"[": 1, "]": 2}


@record
class Token:
    """A pattern letter with its count, or literal text (``letter`` is '').

    Brackets of optional parts have neither letter nor text; ``count`` is 1 for the opening one and 2 for the other.
    ``pad`` is the width that spaces fill up, 0 without.
    """

    letter: str
    count: int
    text: str = ""
    pad: int = 0


@lru_cache(maxsize=256)
def pattern_tokens(pattern: str) -> tuple[Token, ...]:
    """The pattern in pieces; quoted text and everything that is no letter is literal.

    Raises:
        ExecutionError: an unknown letter or an open quote.
    """
    tokens: list[Token] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == "'":
            quoted = re.compile(r"'((?:[^']|'')*)'").match(pattern, place)
            if quoted is None:
                raise ExecutionError("bad-pattern", f"Pattern ends with an incomplete string literal: {pattern}")
            tokens.append(Token("", 0, quoted[1].replace("''", "'") or "'"))
            place = quoted.end()
        elif character.isascii() and character.isalpha():
            end = place
            while end < len(pattern) and pattern[end] == character:
                end += 1
            tokens.append(Token(character, end - place))
            place = end
        elif character in "[]":
            # An optional part: what a moment has is always written.
            tokens.append(Token("", _OPTIONAL[character]))
            place += 1
        elif character in "{}#":
            raise ExecutionError("bad-pattern", f"Pattern includes reserved character: '{character}'")
        else:
            tokens.append(Token("", 0, character))
            place += 1
    return tuple(tokens)


# Formatting


def format_moments(values: Int64s, valid: Bools | None, per_second: int, pattern: str) -> pa.Array:
    """Wall-clock moments, counted in 1/``per_second`` seconds from the epoch, as text of a pattern.

    Raises:
        ExecutionError: the pattern is malformed or asks for a zone.
    """
    tokens = _padded(pattern_tokens(pattern), pattern)
    _check(tokens, pattern)
    n = len(values)
    if not n:
        return pa.array([], pa.string())
    if not tokens:
        return make_strings(np.zeros(n + 1, dtype=np.int32), np.zeros(0, dtype=np.uint8), valid, pa.string())
    part = _canonical_part(pattern, per_second)
    grain = min((_GRAIN.get(token.letter, 1) for token in tokens if token.letter), default=_DAY_NS)
    step = max(1, grain * per_second // _NANOS)
    if valid is not None:
        values = np.where(valid, values, values[int(np.argmax(valid))] if valid.any() else 0)
    buckets = values // step
    low, high = int(buckets.min()), int(buckets.max())
    if high - low < max(16, n // 4):
        # A stream's batch spans few days or minutes: all units between first and last are made once.
        distinct, index = np.arange(low, high + 1), buckets - low
    elif part is not None and _four_digit_years(low * step, high * step, per_second):
        return _as_arrow_prints(values, valid, per_second, part)
    elif _fixed_width(tokens):
        distinct, index = buckets, None
    else:
        distinct, index = np.unique(buckets, return_inverse=True)
    shown = _format_all(distinct * step, per_second, tokens)
    if index is not None:
        return pc.take(shown, pa.array(index, mask=None if valid is None else ~valid), boundscheck=False)
    return (
        shown if valid is None else pc.if_else(make_array(valid, None, pa.bool_()), shown, pa.scalar(None, pa.string()))
    )


def _as_arrow_prints(values: Int64s, valid: Bools | None, per_second: int, part: tuple[int, int]) -> pa.Array:
    """A part of ``yyyy-MM-dd HH:mm:ss.SSS``, cut out of what Arrow prints unless Arrow prints just that."""
    if part == (0, 10):
        days = (values // (86_400 * per_second)).astype(np.int32)
        return pc.cast(make_array(days, valid, pa.date32()), pa.string())
    if part == (0, 19):
        return pc.cast(make_array(values // per_second, valid, pa.timestamp("s")), pa.string())
    unit = {1000: "ms", 1_000_000: "us", _NANOS: "ns"}[per_second]
    return pc.utf8_slice_codeunits(pc.cast(make_array(values, valid, pa.timestamp(unit)), pa.string()), *part)


def _canonical_part(pattern: str, per_second: int) -> tuple[int, int] | None:
    """Where a pattern stands in what Arrow prints (``yyyy-MM-dd HH:mm:ss.SSS``), if it does, cut at whole fields."""
    start = _CANONICAL.find(pattern)
    end = start + len(pattern)
    whole = start in (0, 5, 8, 11, 14, 17) and end in (4, 7, 10, 13, 16, 19, 23)
    return (start, end) if start >= 0 and whole and per_second >= 1000 else None


def _four_digit_years(low: int, high: int, per_second: int) -> bool:
    return low // per_second >= -62_135_596_800 and high // per_second < 253_402_300_800


def _padded(tokens: tuple[Token, ...], pattern: str) -> tuple[Token, ...]:
    """The letters with the pads before them (``ppH``)."""
    if not any(token.letter == "p" for token in tokens):
        return tokens
    made: list[Token] = []
    pad = 0
    for token in tokens:
        if token.letter == "p":
            pad = token.count
            continue
        if pad and not token.letter:
            break
        made.append(Token(token.letter, token.count, token.text, pad))
        pad = 0
    if pad:
        message = f"Pad letter 'p' must be followed by valid pad pattern: {pattern}"
        raise ExecutionError("bad-pattern", message)
    return tuple(made)


#: How often a letter may stand in a row, where not 19 times.
_MOST = {
    **dict.fromkeys("dHhkKmsw", 2), **dict.fromkeys("aWF", 1), **dict.fromkeys("MLQqEeGB", 5), "c": 5, "D": 3, "S": 9,
}  # fmt: skip


def _check(tokens: tuple[Token, ...], pattern: str) -> None:
    for token in tokens:
        if token.letter and token.letter in "VvzOXxZ":
            raise ExecutionError("bad-pattern", f"Unable to extract ZoneId from temporal for pattern '{pattern}'")
        if token.letter and token.letter not in "yuMLdDEecaBhHkKmsSnANQqYwWGFg":
            raise ExecutionError("bad-pattern", f"Unknown pattern letter: {token.letter}")
        if token.letter and token.count > _MOST.get(token.letter, 19):
            raise ExecutionError("bad-pattern", f"Too many pattern letters: {token.letter}")
        if token.letter == "B" and token.count in (2, 3):
            raise ExecutionError("bad-pattern", "Wrong number of pattern letters: B")


def _fixed_width(tokens: tuple[Token, ...]) -> bool:
    for token in tokens:
        if not token.letter:
            continue
        padded = token.count == (4 if token.letter in "yu" else 2) or (token.letter in "yu" and token.count == 2)
        if token.pad or token.letter not in _NUMERIC_LETTERS or not (padded or token.letter == "S"):
            return False
    return True


def _format_all(values: Int64s, per_second: int, tokens: tuple[Token, ...]) -> pa.Array:
    fields = _Fields(values, per_second)
    if _fixed_width(tokens) and values.size and fields.year.min() >= 0 and fields.year.max() <= 9999:
        return _digits(fields, tokens, len(values))
    rows = fields.rows()
    return pa.array(["".join(_filled(token, row) for token in tokens) for row in rows], pa.string())


class _Fields:
    """Parts of moments as columns."""

    def __init__(self, values: Int64s, per_second: int) -> None:
        per_day = 86_400 * per_second
        self.days = values // per_day
        self.nanos = (values - self.days * per_day) * (_NANOS // per_second)
        self.year, self.month, self.day = civil_from_days(self.days)
        self.seconds = self.nanos // _NANOS

    def number(self, letter: str) -> Int64s:
        match letter:
            case "y":
                # Years of an era: what is before the year 1 counts backwards.
                return np.where(self.year > 0, self.year, 1 - self.year)
            case "u":
                return self.year
            case "M" | "L":
                return self.month
            case "d":
                return self.day
            case "D":
                one = np.ones_like(self.year)
                return self.days - days_from_civil(self.year, one, one) + 1
            case "H":
                return self.seconds // 3600
            case "k":
                return (self.seconds // 3600 + 23) % 24 + 1
            case "K":
                return self.seconds // 3600 % 12
            case "h":
                return (self.seconds // 3600 + 11) % 12 + 1
            case "m":
                return self.seconds // 60 % 60
        return self.seconds % 60

    def rows(self) -> list[dict[str, int]]:
        columns = {letter: self.number(letter) for letter in "yuMdDHkKhms"}
        columns["weekday"] = (self.days + 3) % 7
        columns["nanos"] = self.nanos
        columns["days"] = self.days
        names = list(columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]


def _digits(fields: _Fields, tokens: tuple[Token, ...], n: int) -> pa.Array:
    """A pattern of fixed width, digit by digit for all rows."""
    pieces: list[npt.NDArray[np.uint8]] = []
    for token in tokens:
        if not token.letter:
            raw = np.frombuffer(token.text.encode(), dtype=np.uint8)
            pieces.append(np.broadcast_to(raw, (n, len(raw))))
            continue
        if token.letter == "S":
            count = token.count
            number = fields.nanos % _NANOS // 10 ** max(0, 9 - count) * 10 ** max(0, count - 9)
        else:
            number, count = fields.number(token.letter), token.count
        powers = 10 ** np.arange(count - 1, -1, -1, dtype=np.int64)
        pieces.append((number[:, None] // powers % 10 + 48).astype(np.uint8))
    matrix = np.concatenate(pieces, axis=1)
    width = matrix.shape[1]
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(
        pa.string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(matrix))]
    )


def _filled(token: Token, row: dict[str, int]) -> str:
    text = _shown(token, row)
    if token.pad and len(text) > token.pad:
        message = f"Cannot print as output of {len(text)} characters exceeds pad width of {token.pad}"
        raise ExecutionError("bad-pattern", message)
    return text.rjust(token.pad)


def _day_period(row: dict[str, int], short: bool) -> str:
    """The part of the day in words, as the US say it."""
    hour = row["H"]
    if row["m"] == 0 and hour in (0, 12):
        names = ("mi", "n") if short else ("midnight", "noon")
        return names[hour // 12]
    if hour < 6 or hour >= 21:
        return "at night"
    return "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"


def _shown(token: Token, row: dict[str, int]) -> str:
    letter, count = token.letter, token.count
    match letter:
        case "":
            return token.text
        case "y" | "u":
            return _year(row[letter], count)
        case "M" | "L":
            return str(row["M"]).rjust(count, "0") if count <= 2 else _name(MONTH_NAMES[row["M"] - 1], count)
        case "E":
            return _name(DAY_NAMES[row["weekday"]], max(count, 3))
        case "e" | "c":
            return (
                str((row["weekday"] + 1) % 7 + 1).rjust(count, "0")
                if count <= 2
                else _name(DAY_NAMES[row["weekday"]], count)
            )
        case "a":
            return "AM" if row["H"] < 12 else "PM"
        case "B":
            return _day_period(row, count == 5)
        case "F":
            return str((row["d"] - 1) % 7 + 1)
        case "g":
            # Days of the modified Julian calendar.
            return str(row["days"] + 40_587).rjust(count, "0")
        case "S":
            return str(row["nanos"] % _NANOS).rjust(9, "0")[:count].ljust(count, "0")
        case "n":
            return str(row["nanos"] % _NANOS).rjust(count, "0")
        case "N":
            return str(row["nanos"]).rjust(count, "0")
        case "A":
            return str(row["nanos"] // 1_000_000).rjust(count, "0")
        case "Q" | "q":
            quarter = (row["M"] + 2) // 3
            longer = {3: f"Q{quarter}", 4: f"{quarter}{('st', 'nd', 'rd', 'th')[quarter - 1]} quarter"}
            return longer.get(count, str(quarter).rjust(count, "0"))
        case "G":
            short, full = ("AD", "Anno Domini") if row["u"] > 0 else ("BC", "Before Christ")
            return short if count <= 3 else full if count == 4 else short[0]
        case "Y" | "w" | "W":
            return _week(row, letter, count)
    return str(row[letter]).rjust(count, "0")


def _year(year: int, count: int) -> str:
    return str(year % 100).rjust(2, "0") if count == 2 else str(year).rjust(count, "0")


def _name(full: str, count: int) -> str:
    return full[:3] if count == 3 else full if count == 4 else full[0]


def _week(row: dict[str, int], letter: str, count: int) -> str:
    """Weeks of the US: from Sunday, the one with January 1st is the first."""
    sunday = row["days"] - (row["days"] + 4) % 7
    if letter == "W":
        first = row["days"] - row["d"] + 1
        return str((sunday - (first - (first + 4) % 7)) // 7 + 1)
    year = row["u"]
    following = civil_days(year + 1, 1, 1)
    if sunday >= following - (following + 4) % 7:
        year, start = year + 1, following
    else:
        start = civil_days(year, 1, 1)
    if letter == "Y":
        # The years of weeks have a sign where they are longer than asked for.
        sign = "+" if count >= 4 and len(str(year)) > count else ""
        return sign + _year(year, count)
    return str((sunday - (start - (start + 4) % 7)) // 7 + 1).rjust(count, "0")
