"""The time zone of the machine, as Java finds it: ``TZ``, then ``/etc/localtime``. Every part of FlowSQL asks here.

Source: ``java.util.TimeZone.setDefaultZone`` and ``TimeZone_md.c`` of OpenJDK.
"""

from __future__ import annotations

import datetime
import filecmp
import os
import re
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: Three-letter names that only Java's old ``TimeZone`` knows.
JAVA_ZONES: Final = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip

_LOCAL_TIME: Final = Path("/etc/localtime")
_ZONE_FILES: Final = Path("/usr/share/zoneinfo")
_UTC_NAMES: Final = frozenset(
    f"{head}{name}" for head in ("", "Etc/") for name in ("UTC", "UCT", "Universal", "Zulu", "GMT", "GMT0", "Greenwich")
)
_CUSTOM: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?([0-5]\d))?")


def machine_zone() -> str:
    """An IANA name, an offset such as ``+02:00`` for a ``TZ`` that names no zone, or ``UTC``."""
    name = os.environ.get("TZ") or _local_time_name() or "UTC"
    name = name.removeprefix(":").removeprefix("posix/")
    return _known(name) or _offset_text(datetime.datetime.now().astimezone().utcoffset() or datetime.timedelta())


def _known(name: str) -> str | None:
    """The zone of a name that Java knows."""
    if name in _UTC_NAMES:
        return "UTC"
    if name in JAVA_ZONES:
        return JAVA_ZONES[name]
    custom = _CUSTOM.fullmatch(name)
    if custom is not None and int(custom[2]) <= 23:
        distance = datetime.timedelta(hours=int(custom[2]), minutes=int(custom[3] or 0))
        return _offset_text(-distance if custom[1] == "-" else distance)
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return name


def _offset_text(offset: datetime.timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    if not minutes:
        return "UTC"
    return f"{'+' if minutes > 0 else '-'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _local_time_name() -> str | None:
    """The zone that ``/etc/localtime`` is a link to, or a copy of."""
    try:
        if _LOCAL_TIME.is_symlink():
            return os.readlink(_LOCAL_TIME).partition("zoneinfo/")[2] or None
        size = _LOCAL_TIME.stat().st_size
        for path in _zone_files():
            if path.stat().st_size == size and filecmp.cmp(path, _LOCAL_TIME, shallow=False):
                return path.relative_to(_ZONE_FILES).as_posix()
    except OSError:
        pass
    return None


def _zone_files() -> Iterator[Path]:
    """Files that name a zone, the usual ones first."""
    yield from (path for name in ("UTC", "GMT") if (path := _ZONE_FILES / name).is_file())
    for folder, folders, names in os.walk(_ZONE_FILES):
        folders[:] = sorted(set(folders) - {"posix", "right"})
        yield from (
            Path(folder, name)
            for name in sorted(names)
            if name not in ("ROC", "posixrules", "localtime") and not name.startswith(".")
        )
