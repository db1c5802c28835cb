"""The time zone of the machine, by which Parquet's INT96 timestamps are written and read."""

from __future__ import annotations

import os
import time


def machine_zone() -> str | None:
    """The name of the machine's time zone; None when that is UTC."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        path = os.path.realpath("/etc/localtime")
        name = path.partition("zoneinfo/")[2]
    if not name:
        return None if time.timezone == 0 and not time.daylight else time.tzname[0]
    return None if name in ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Universal", "Zulu", "Etc/UCT", "UCT") else name
