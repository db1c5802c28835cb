"""Which time zone a session lives in when nobody says: the machine's, by name, so that daylight saving time counts."""

from __future__ import annotations

from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration


def session_zone(configuration: Configuration) -> str:
    """``table.local-time-zone`` as an IANA name or an offset; the machine's for ``default``."""
    zone = configuration.get(LOCAL_TIME_ZONE)
    return machine_zone() if zone == "default" else zone
