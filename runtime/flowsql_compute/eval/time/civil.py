"""Dates of single values: epoch days to year, month and day and back, in the new and in Java's old calendar.

Years count astronomically: 0 is 1 BC. Columns use ``eval/time.py``.
"""

from __future__ import annotations

import calendar

#: The first day of the new calendar (15 October 1582) as epoch days.
_CUTOVER = -141_427


def civil_days(year: int, month: int, day: int) -> int:
    """Epoch days in the new calendar, counted in years that begin in March; ``day`` may run over."""
    early = (14 - month) // 12
    years, months = year - early, month + 12 * early - 3
    return 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day - 719_469


def civil_date(days: int) -> tuple[int, int, int]:
    """Year, month and day of epoch days in the new calendar."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    """Days of a month, 1 to 12."""
    return 28 + calendar.isleap(year) if month == 2 else 30 + (month + month // 8) % 2


def historic_month(year: int, month: int) -> int:
    """Epoch days of a month's first day where what is before 15 October 1582 is Julian; any month number.

    The month of the change itself counts from its Julian first day.
    """
    carry, month = divmod(month - 1, 12)
    year, month = year + carry, month + 1
    first = civil_days(year, month, 1)
    if first >= _CUTOVER:
        return first
    early = (14 - month) // 12
    years, months = year + 4800 - early, month + 12 * early - 3
    return 1 + (153 * months + 2) // 5 + 365 * years + years // 4 - 32_083 - 2_440_588


def historic_days(year: int, month: int, day: int) -> int:
    """Epoch days of a date in Java's old calendar; months and days may run over."""
    carry, month = divmod(month - 1, 12)
    year, month = year + carry, month + 1
    modern = civil_days(year, month, 1) + day - 1
    return modern if modern >= _CUTOVER else historic_month(year, month) + day - 1
