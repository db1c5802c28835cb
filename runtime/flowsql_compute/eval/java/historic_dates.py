"""Parts of dates up to 1582 as ``java.text.SimpleDateFormat`` writes them: days, weeks and names of days.

The calendar is Julian before 15 October 1582, and ten days are missing in that month. Weeks are those of the US: they
begin on Sunday, and the one with January 1st is the first.

Source: Java, ``java.util.GregorianCalendar``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.java.date_pattern import Token, format_moments
from flowsql_compute.eval.time.calendar import historic_from_days
from flowsql_compute.eval.time.civil import historic_days
from flowsql_core.arrow import compute as pc

Int64s = npt.NDArray[np.int64]

#: The first day of 1583 as epoch days.
_END = -141_349


def historic_texts(token: Token, days: Int64s, valid: Bools | None, modern: pa.Array) -> pa.Array:
    """The texts of a part of a pattern: of days up to 1582 made here, of others those given.

    Args:
        token: a part of the pattern.
        days: epoch days on the wall clock, (n,).
        valid: (n,), None without NULLs.
        modern: the texts that the new calendar makes of the same clock, (n,).
    """
    if token.letter not in "MLdEuDFwWY" or not token.letter:
        return modern
    early = days < _END if valid is None else (days < _END) & valid
    numbers = make_array(np.where(early, days, 0), early, pa.int64())
    if token.letter == "E":
        # Names of days go on through the change of calendars.
        made = format_moments(days * 86_400, early, 1, "E" * min(token.count, 4))
    else:
        made = map_distinct(numbers, lambda day: _text(token, day), pa.string())
    return pc.coalesce(made, modern)


def _text(token: Token, day: int) -> str:
    parts = historic_from_days(np.array([day]))
    year, month, of_month = (int(part[0]) for part in parts)
    match token.letter:
        case "M" | "L":
            if token.count > 2:
                # Any day of the month has its name.
                named = format_moments(
                    np.array([(month - 1) * 31 * 86_400]), None, 1, token.letter * min(token.count, 4)
                )
                return str(named[0].as_py())
            number = month
        case "d":
            number = of_month
        case "u":
            number = (day + 3) % 7 + 1
        case "D":
            number = day - historic_days(year, 1, 1) + 1
        case "F":
            number = (day - historic_days(year, month, 1)) // 7 + 1
        case "W":
            number = _week(historic_days(year, month, 1), day)
        case "w":
            following = _first_sunday(historic_days(year + 1, 1, 1))
            whole = following > historic_days(year + 1, 1, 1) and day >= following - 7
            number = 1 if whole else _week(historic_days(year, 1, 1), day)
        case _:
            following = historic_days(year + 1, 1, 1)
            return _week_year(year, following - day, (following + 4) % 7, token.count)
    return str(number).rjust(token.count, "0")


def _first_sunday(day: int) -> int:
    return day + -(day + 4) % 7


def _week(first: int, day: int) -> int:
    """The week of a day in a year or month with such a first day."""
    return (day - (first - (first + 4) % 7)) // 7 + 1


def _week_year(year: int, days_left: int, next_starts: int, count: int) -> str:
    """The year of a week; ``next_starts``: the day of the week of next January 1st, 0 for Sunday."""
    found = year + (next_starts > 0 and days_left <= next_starts)
    return str(found % 100).rjust(2, "0") if count == 2 else str(found).rjust(count, "0")
