"""Epoch days rounded to units as Flink rounds them.

Days before 15 October 1582 are taken apart in the Julian calendar and put together in the new one: the first of their
month is the day of that name in the new calendar. A ceiling stays on a day that starts a unit, but for DAY, DECADE and
longer units.

Source: Flink and Calcite, ``DateTimeUtils.julianDateFloor``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.time.calendar import days_from_civil, historic_from_days
from flowsql_core.errors import BindError

Int64s = npt.NDArray[np.int64]

#: Years of a unit, and the first of them within the unit's years.
_YEARS = {"YEAR": (1, 0), "DECADE": (10, 0), "CENTURY": (100, 1), "MILLENNIUM": (1000, 1)}


def rounded_days(days: Int64s, unit: str, up: bool) -> Int64s:
    """Return the epoch days of the start of a unit: the last one, or the next one for ``up``.

    Raises:
        BindError: days have no such unit.
    """
    year, month, day = historic_from_days(days)
    one = np.ones_like(year)
    if unit == "DAY":
        return days_from_civil(year, month, day) + up
    if unit == "WEEK":
        after = (days + 4) % 7
        return days_from_civil(year, month, day) - after + np.where(up & (after > 0), 7, 0)
    first_of_year = (month == 1) & (day == 1)
    if unit == "MONTH":
        return _month_start(year, month - 1 + (up & (day > 1)))
    if unit == "QUARTER":
        return _month_start(year, (month - 1) // 3 * 3 + np.where(up & ~first_of_year, 3, 0))
    if unit not in _YEARS:
        raise BindError("bad-unit", f"a moment can not be rounded to {unit}")
    size, shift = _YEARS[unit]
    later = up & ~first_of_year if unit == "YEAR" else np.full(len(year), up)
    return days_from_civil((year - shift) // size * size + shift + np.where(later, size, 0), one, one)


def _month_start(year: Int64s, months: Int64s) -> Int64s:
    """The first day of a month so many months after January."""
    return days_from_civil(year + months // 12, months % 12 + 1, np.ones_like(year))
