"""Which time zone a session lives in when nobody says: the machine's, by name, so that daylight saving time counts."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from flowsql_core.config import LOCAL_TIME_ZONE, Configuration

_LOCAL_TIME = Path("/etc/localtime")


def session_zone(configuration: Configuration) -> str:
    """``table.local-time-zone`` as an IANA name or an offset; the machine's for ``default``."""
    zone = configuration.get(LOCAL_TIME_ZONE)
    return machine_zone() if zone == "default" else zone


def machine_zone() -> str:
    """The machine's zone: ``$TZ``, the target of /etc/localtime, or at least today's offset from UTC."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named and not named.startswith("/"):
        return named
    if _LOCAL_TIME.is_symlink():
        _, found, name = os.readlink(_LOCAL_TIME).partition("zoneinfo/")
        if found:
            return "UTC" if name in ("Etc/UTC", "UTC") else name
    offset = datetime.datetime.now().astimezone().utcoffset() or datetime.timedelta()
    minutes = round(offset.total_seconds() / 60)
    if minutes == 0:
        return "UTC"
    return f"{'+' if minutes > 0 else '-'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
