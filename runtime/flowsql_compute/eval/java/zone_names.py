"""Names of time zones as Java's date patterns read them: ``PST``, ``Pacific Standard Time``, ``GMT+2``."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_HALF = 30
#: Minutes east of UTC by what Java calls a zone in English.
_NAMES = {
    "UTC": 0, "Coordinated Universal Time": 0, "GMT": 0, "Greenwich Mean Time": 0,
    "EST": -300, "Eastern Standard Time": -300, "EDT": -240, "Eastern Daylight Time": -240,
    "CST": -360, "Central Standard Time": -360, "CDT": -300, "Central Daylight Time": -300,
    "MST": -420, "Mountain Standard Time": -420, "MDT": -360, "Mountain Daylight Time": -360,
    "PST": -480, "Pacific Standard Time": -480, "PDT": -420, "Pacific Daylight Time": -420,
    "AKST": -540, "Alaska Standard Time": -540, "AKDT": -480, "Alaska Daylight Time": -480,
    "HST": -600, "Hawaii-Aleutian Standard Time": -600, "AST": -240, "Atlantic Standard Time": -240,
    "ADT": -180, "Atlantic Daylight Time": -180,
    "WET": 0, "Western European Standard Time": 0, "WEST": 60, "Western European Summer Time": 60,
    "CET": 60, "Central European Standard Time": 60, "CEST": 120, "Central European Summer Time": 120,
    "EET": 120, "Eastern European Standard Time": 120, "EEST": 180, "Eastern European Summer Time": 180,
    "BST": 60, "British Summer Time": 60, "MSK": 180, "Moscow Standard Time": 180,
    "IST": 300 + _HALF, "India Standard Time": 300 + _HALF, "PKT": 300, "Pakistan Standard Time": 300,
    "HKT": 480, "Hong Kong Standard Time": 480, "China Standard Time": 480, "SGT": 480, "Singapore Standard Time": 480,
    "JST": 540, "Japan Standard Time": 540, "KST": 540, "Korean Standard Time": 540,
    "AWST": 480, "Australian Western Standard Time": 480, "ACST": 540 + _HALF, "AEST": 600,
    "Australian Eastern Standard Time": 600, "AEDT": 660, "Australian Eastern Daylight Time": 660,
    "NZST": 720, "New Zealand Standard Time": 720, "NZDT": 780, "New Zealand Daylight Time": 780,
    "SAST": 120, "South Africa Standard Time": 120, "WIB": 420,
}  # fmt: skip


#: Long names by the abbreviations that stand before them.
LONG_NAMES = {
    short: long for short, long in pairwise(_NAMES) if short.isupper() and not long.isupper()
}  # fmt: skip


def zone_names(long: bool | None = None) -> str:
    """A regular expression of names, the longer ones first: of all, or of the abbreviations or long ones alone."""
    names = [name for name in _NAMES if long is None or name.isupper() is not long]
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def named_offset(name: str) -> int | None:
    """Seconds east of UTC of a name in any case; None when it is none."""
    minutes = _BY_LOWER.get(name.lower())
    return None if minutes is None else minutes * 60


_BY_LOWER = {name.lower(): minutes for name, minutes in _NAMES.items()}


@lru_cache(maxsize=1)
def region_names() -> str:
    """A regular expression of all regions (``Europe/Berlin``), the longer ones first."""
    from zoneinfo import available_timezones

    return "|".join(re.escape(name) for name in sorted(available_timezones(), key=len, reverse=True))
