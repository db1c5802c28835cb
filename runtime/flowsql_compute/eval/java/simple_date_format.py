"""``java.text.SimpleDateFormat`` for columns of seconds: FROM_UNIXTIME, DATE_FORMAT of text, CONVERT_TZ.

Most letters mean the same as in ``java_time``; the others are rendered one by one. Locale US.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.java.date_pattern import Token, format_moments, pattern_tokens
from flowsql_compute.eval.java.zone_names import LONG_NAMES
from flowsql_compute.eval.time.calendar import (
    civil_from_days,
    days_from_civil,
    historic_from_days,
    old_calendar_local,
    zone_of,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError

Int64s = npt.NDArray[np.int64]

_LETTERS = "GyYMLwWDdFEuaHkKhmsSzZX"
_NUMBERS = "wWDdHkKhms"


def format_seconds(seconds: Int64s, valid: Bools | None, zone: str, pattern: str) -> pa.Array:
    """Epoch seconds as text of a pattern, shown in a zone.

    Raises:
        ExecutionError: a letter that the pattern language lacks.
    """
    tokens = pattern_tokens(pattern)
    local = old_calendar_local(seconds, zone)
    wall = _historic(local)
    for token in tokens:
        if token.letter and token.letter not in _LETTERS:
            raise ExecutionError("bad-pattern", f"Illegal pattern character '{token.letter}'")
    early = bool(len(local)) and int(local.min()) < HISTORIC_DAYS * 86_400
    if early:
        # Columns of our days do not load what few dates need.
        from flowsql_compute.eval.java.historic_dates import historic_texts

        texts = [
            historic_texts(token, local // 86_400, valid, _piece(token, seconds, wall, valid, zone)) for token in tokens
        ]
        return pc.binary_join_element_wise(*texts, "")
    if all(_is_shared(token) for token in tokens):
        # Arrow prints milliseconds in the usual pattern faster than digits are made here.
        near = not len(wall) or (int(wall.min()) > -(2**50) and int(wall.max()) < 2**50)
        return format_moments(wall * 1000, valid, 1000, pattern) if near else format_moments(wall, valid, 1, pattern)
    texts = [_piece(token, seconds, wall, valid, zone) for token in tokens]
    return pc.binary_join_element_wise(*texts, "")


def _historic(wall: Int64s) -> Int64s:
    """Wall clock moved so that the new calendar shows the dates of the old one, before 15 October 1582."""
    early = np.flatnonzero(wall < _CUTOVER * 86_400)
    if not len(early):
        return wall
    days = wall[early] // 86_400
    made = wall.copy()
    made[early] += (days_from_civil(*historic_from_days(days)) - days) * 86_400
    return made


#: 15 October 1582 as epoch days.
_CUTOVER = -141_427
#: The first day of 1583: days of years before it are counted otherwise than in the new calendar.
HISTORIC_DAYS = -141_349


def _is_shared(token: Token) -> bool:
    """Whether ``DateTimeFormatter`` writes the same."""
    if not token.letter:
        return True
    if token.letter in "FuYzZXS":
        return False
    most = {"D": 3, "M": 4, "L": 4, "E": 4, "y": 9}.get(token.letter, 2)
    return token.count <= most


def _piece(token: Token, seconds: Int64s, wall: Int64s, valid: Bools | None, zone: str) -> pa.Array:
    letter = token.letter
    if not letter:
        return _text(token, wall, valid)
    if letter in _NUMBERS and token.count > 2:
        return _padded(format_moments(wall, valid, 1, letter), token.count)
    if letter in "MLE":
        return format_moments(wall, valid, 1, letter * min(token.count, 4))
    if letter == "Y":
        return pc.utf8_ltrim(format_moments(wall, valid, 1, letter * token.count), characters="+")
    if letter == "S":
        return _padded(_number(np.zeros_like(wall), valid), token.count)
    if letter == "u":
        return _padded(_number((wall // 86_400 + 3) % 7 + 1, valid), token.count)
    if letter == "F":
        return _padded(_number((civil_from_days(wall // 86_400)[2] - 1) // 7 + 1, valid), token.count)
    if letter in "zZX":
        return map_distinct(make_array(seconds, valid, pa.int64()), _zone_text(token, zone), pa.string())
    return format_moments(wall, valid, 1, letter * token.count)


def _text(token: Token, wall: Int64s, valid: Bools | None) -> pa.Array:
    known = make_array(np.ones(len(wall), dtype=np.bool_), valid, pa.bool_())
    return pc.if_else(known, token.text, pa.scalar(None, pa.string()))


def _number(values: Int64s, valid: Bools | None) -> pa.Array:
    return pc.cast(make_array(values, valid, pa.int64()), pa.string())


def _padded(texts: pa.Array, count: int) -> pa.Array:
    return pc.utf8_lpad(texts, count, padding="0")


def _zone_text(token: Token, zone: str) -> Callable[[int], str]:
    info = zone_of(zone)

    def shown(second: int) -> str:
        at = datetime.datetime.fromtimestamp(min(max(second, -62_000_000_000), 253_000_000_000), info)
        offset = at.utcoffset() or datetime.timedelta()
        minutes = abs(int(offset.total_seconds())) // 60
        sign = "-" if offset < datetime.timedelta() else "+"
        hours, rest = divmod(minutes, 60)
        if token.letter == "Z":
            return f"{sign}{hours:02d}{rest:02d}"
        if token.letter == "X":
            if not minutes:
                return "Z"
            return f"{sign}{hours:02d}" + {1: "", 2: f"{rest:02d}"}.get(token.count, f":{rest:02d}")
        name = at.tzname() or ""
        if token.count >= 4 and name in LONG_NAMES:
            return LONG_NAMES[name]
        return name if name.isalpha() else f"GMT{sign}{hours:02d}:{rest:02d}"

    return shown
