"""Kernels of the proleptic Gregorian calendar: epoch days to dates and back.

Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
"""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel


@device(inline=True)
def date_of_day(day):
    """Year, month (1-12) and day of month (1-31) of an epoch day, as ``year * 512 + month * 32 + date``."""
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    date = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return (year + era * 400 + (1 if month <= 2 else 0)) * 512 + month * 32 + date


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1])")
def dates_of_days(days, years, months, dates):
    """Year, month (1-12) and day of month (1-31) of epoch days."""
    for row in range(days.size):
        code = date_of_day(days[row])
        years[row] = code >> 9
        months[row] = code >> 5 & 15
        dates[row] = code & 31


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1])")
def days_of_dates(years, months, dates, days):
    """Epoch days of dates; the day of month may run over."""
    for row in range(days.size):
        month = months[row]
        year = years[row] - (1 if month <= 2 else 0)
        era = year // 400
        of_era = year - era * 400
        of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + dates[row] - 1
        days[row] = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
