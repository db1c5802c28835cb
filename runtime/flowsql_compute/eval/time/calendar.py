"""Calendars and zones on columns: epoch days to years and months and back, local wall clock to UTC and back.

Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (proleptic Gregorian calendar).
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.time.machine_zone import JAVA_ZONES
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError

Int64s = npt.NDArray[np.int64]
DAY_MS = 86_400_000
#: Columns of so many rows are worth the load time of a kernel.
_LONG = 4096
UNITS_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_FIXED_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


def civil_from_days(days: npt.NDArray[Any]) -> tuple[Int64s, Int64s, Int64s]:
    """Year, month (1-12) and day (1-31) of epoch days, shape (n,) each."""
    if days.ndim == 1 and len(days) >= _LONG:
        from flowsql_compute.kernels.calendar import dates_of_days

        parts = np.empty((3, len(days)), dtype=np.int64)
        dates_of_days(np.ascontiguousarray(days, dtype=np.int64), *parts)
        return parts[0], parts[1], parts[2]
    z = days.astype(np.int64) + 719_468
    era = z // 146_097
    day_of_era = z - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + np.where(shifted < 10, 3, -9)
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day


def historic_from_days(days: npt.NDArray[Any]) -> tuple[Int64s, Int64s, Int64s]:
    """Year, month and day of epoch days, shape (n,) each: before 15 October 1582 those of the Julian calendar."""
    year, month, day = civil_from_days(days)
    early = days < _NEW_CALENDAR
    if not early.any():
        return year, month, day
    # Years of 365.25 days from March on.
    shifted = 4 * (days[early].astype(np.int64) + 719_470) + 3
    of_year = shifted % 1461 // 4
    months = (5 * of_year + 2) // 153
    year[early] = shifted // 1461 + (months >= 10)
    month[early] = months + np.where(months < 10, 3, -9)
    day[early] = of_year - (153 * months + 2) // 5 + 1
    return year, month, day


#: 15 October 1582 as epoch days.
_NEW_CALENDAR = -141_427


def days_from_civil(year: npt.NDArray[Any], month: npt.NDArray[Any], day: npt.NDArray[Any]) -> Int64s:
    """Epoch days of a date; ``month`` 1-12, ``day`` may run over."""
    if year.ndim == 1 and len(year) >= _LONG:
        from flowsql_compute.kernels.calendar import days_of_dates

        made = np.empty(len(year), dtype=np.int64)
        days_of_dates(*(np.ascontiguousarray(part, dtype=np.int64) for part in (year, month, day)), made)
        return made
    y = year - (month <= 2)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return np.asarray(era * 146_097 + day_of_era - 719_468, dtype=np.int64)


def month_length(year: npt.NDArray[Any], month: npt.NDArray[Any]) -> Int64s:
    """Days of a month."""
    lengths = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)[month - 1]
    return np.asarray(lengths + ((month == 2) & is_leap(year)), dtype=np.int64)


def is_leap(year: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether years have 366 days."""
    return np.asarray((year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0)))


def add_months(days: npt.NDArray[Any], months: npt.NDArray[Any]) -> Int64s:
    """Epoch days so many months later; the day of month is clamped to the month's end."""
    year, month, day = civil_from_days(days)
    total = year * 12 + (month - 1) + months
    new_year, new_month = total // 12, total % 12 + 1
    return days_from_civil(new_year, new_month, np.minimum(day, month_length(new_year, new_month)))


def time_text(array: Any, precision: int) -> pa.StringArray:
    """``HH:mm:ss`` and, for a precision above 0, the milliseconds without zeros at their end, but for one digit."""
    texts = pc.cast(array, pa.string())
    if precision == 0:
        return pc.utf8_slice_codeunits(texts, 0, 8)
    shortened = pc.utf8_rtrim(pc.utf8_slice_codeunits(texts, 0, 9 + min(precision, 3)), "0")
    return pc.replace_substring_regex(shortened, r"\.$", ".0")


def date_text(days: pa.Array, whole: bool) -> pa.Array:
    """Dates as text. Years of five and more digits carry a sign, or, not ``whole``, only their last four digits."""
    numbers = pc.cast(days, pa.int32())
    far = pc.any(pc.or_(pc.less(numbers, _FIRST_DAY), pc.greater(numbers, _LAST_DAY))).as_py()
    if not far:
        return pc.cast(days, pa.string())

    def shown(day: int) -> str:
        year, month, rest = (int(part[0]) for part in civil_from_days(np.array([day])))
        sign = "-" if year < 0 else "+" if year > 9999 else ""
        shown_year = f"{sign}{abs(year):04d}" if whole else f"{year % 10_000:04d}"
        return f"{shown_year}-{month:02d}-{rest:02d}"

    return map_distinct(numbers, shown, pa.string())


#: Epoch days of 0001-01-01 and 9999-12-31.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896


def iso_week(days: npt.NDArray[Any]) -> tuple[Int64s, Int64s]:
    """ISO year and week (1-53) of epoch days."""
    days = days.astype(np.int64)
    thursday = days - (days + 3) % 7 + 3
    year, _, _ = civil_from_days(thursday)
    one = np.ones_like(year)
    return year, (thursday - days_from_civil(year, one, one)) // 7 + 1


@lru_cache(maxsize=64)
def zone_of(name: str) -> datetime.tzinfo:
    """The zone of an IANA name or an offset such as ``UTC+02:00``.

    Raises:
        BindError: no such zone.
    """
    if name in ("UTC", "Z", "GMT", "Etc/UTC"):
        return datetime.UTC
    fixed = _FIXED_OFFSET.fullmatch(name)
    if fixed is not None:
        seconds = int(fixed[2]) * 3600 + int(fixed[3] or 0) * 60 + int(fixed[4] or 0)
        return datetime.timezone(datetime.timedelta(seconds=-seconds if fixed[1] == "-" else seconds))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BindError(
            "unknown-time-zone",
            f"The supported Zone ID is either a full name such as 'America/Los_Angeles', or a custom timezone id such "
            f"as 'GMT-08:00', but configured Zone ID is '{name}'.",
        ) from error


@lru_cache(maxsize=256)
def java_zone(name: str) -> str:
    """The zone that ``java.util.TimeZone.getTimeZone`` finds: offsets need ``GMT`` before them, else it is UTC."""
    fixed = re.fullmatch(r"GMT[+-](\d{1,2})(?::?([0-5]\d))?", name)
    if fixed is not None:
        return name if int(fixed[1]) <= 23 else "UTC"
    if name in JAVA_ZONES:
        return JAVA_ZONES[name]
    try:
        return "UTC" if _FIXED_OFFSET.fullmatch(name) or zone_of(name) is datetime.UTC else name
    except BindError:
        return "UTC"


def utc_to_local(values: npt.NDArray[Any], per_second: int, zone: str) -> Int64s:
    """Points in time as wall clock of a zone, both counted from the epoch in 1/``per_second`` seconds."""
    return _shift(values, per_second, zone, to_local=True)


def local_to_utc(values: npt.NDArray[Any], per_second: int, zone: str, later: bool = False) -> Int64s:
    """Wall clock of a zone as points in time. In a gap the clock is read as before it.

    Of two points in time with one wall clock the first counts, with ``later`` the second (Java's old calendars).
    """
    made = _shift(values, per_second, zone, to_local=False)
    if not later or not made.size or isinstance(zone_of(zone), datetime.timezone):
        return made
    # By the offset of three hours on, the clock of an overlap shows the same time again; elsewhere it never does.
    ahead = made + 3 * 3600 * per_second
    second = values - (utc_to_local(ahead, per_second, zone) - ahead)
    again = (second > made) & (utc_to_local(second, per_second, zone) == values)
    return np.where(again, second, made)


def old_calendar_local(values: Int64s, zone: str, per_second: int = 1) -> Int64s:
    """Points in time as wall clock of Java's old zones: the standard time before 1900, no local mean times."""
    made = utc_to_local(values, per_second, zone)
    early = values < _ZONES_BEGIN * per_second
    return np.where(early, values + standard_offset(zone) * per_second, made) if early.any() else made


def old_calendar_utc(walls: Int64s, zone: str) -> Int64s:
    """The inverse of :func:`old_calendar_local`; of two points in time the later one."""
    offset = standard_offset(zone)
    made = local_to_utc(walls, 1, zone, later=True)
    return np.where(walls - offset < _ZONES_BEGIN, walls - offset, made)


#: 1900-01-01 00:00:00 UTC, before which Java's old zones stand still.
_ZONES_BEGIN = -2_208_988_800


@lru_cache(maxsize=256)
def standard_offset(zone: str) -> int:
    """Seconds east of UTC without daylight saving time."""
    seasons = (1_704_067_200, 1_719_792_000)
    return min(_offset(second, zone, True) for second in seasons)


def _shift(values: npt.NDArray[Any], per_second: int, zone: str, to_local: bool) -> Int64s:
    values = values.astype(np.int64, copy=False)
    info = zone_of(zone)
    if info is datetime.UTC or not values.size:
        return values
    if isinstance(info, datetime.timezone):
        seconds = int(info.utcoffset(None).total_seconds())
        return values + (seconds if to_local else -seconds) * per_second
    # Since 1970 zones change at quarters of an hour; before, at any second.
    step = 900 if int(values.min()) >= 0 else 1
    buckets = values // (per_second * step)
    low, high = int(buckets.min()), int(buckets.max())
    if high - low < 4 * len(buckets.reshape(-1)) + 65536:
        # A table of all buckets between the first and the last is made faster than the buckets are sorted.
        places = buckets - low
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        seen[places] = True
        table = np.zeros(high - low + 1, dtype=np.int64)
        for place in np.flatnonzero(seen):
            table[place] = _offset((low + int(place)) * step, zone, to_local)
        moved: Int64s = table[places] * per_second
    else:
        distinct, inverse = np.unique(buckets, return_inverse=True)
        offsets = np.array([_offset(int(bucket) * step, zone, to_local) for bucket in distinct], dtype=np.int64)
        moved = offsets[inverse.reshape(values.shape)] * per_second
    return values + moved if to_local else values - moved


@lru_cache(maxsize=65536)
def _offset(second: int, zone: str, from_utc: bool) -> int:
    info = zone_of(zone)
    epoch = datetime.datetime(1970, 1, 1)
    # Years that Python's datetime lacks have the offset of its first and last year.
    second = min(max(second, -62_135_000_000), 253_402_000_000)
    moment = epoch + datetime.timedelta(seconds=second)
    if from_utc:
        offset = moment.replace(tzinfo=datetime.UTC).astimezone(info).utcoffset()
    else:
        offset = moment.replace(tzinfo=info).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


#: Seconds from the epoch that 64 bits of nanoseconds hold.
_NANOSECOND_RANGE = 2**63 // 10**9


def require_range(seconds: npt.NDArray[np.int64], type_: pa.DataType) -> None:
    """ExecutionError where a moment does not fit a timestamp of nanoseconds; coarser units hold all years of SQL."""
    if type_.unit == "ns" and len(seconds) and np.abs(seconds).max() >= _NANOSECOND_RANGE:
        raise ExecutionError(
            "timestamp-range",
            "a timestamp of 7 to 9 fractional digits must lie between the years 1678 and 2261",
            hint="TIMESTAMP(6) holds all years",
        )
