"""Which time zone a session lives in when nobody says: the machine's, by name, so that daylight saving time counts."""

from __future__ import annotations

from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration
from flowsql_core.errors import BindError, did_you_mean


def session_zone(configuration: Configuration) -> str:
    """``table.local-time-zone`` as an IANA name or an offset; the machine's for ``default``.

    Raises:
        BindError: there is no such zone.
    """
    zone = configuration.get(LOCAL_TIME_ZONE)
    if zone == LOCAL_TIME_ZONE.default:
        return machine_zone()
    check_zone(zone)
    return zone


def check_zone(zone: str) -> None:
    """Raise BindError for a zone that nobody knows."""
    if zone in (LOCAL_TIME_ZONE.default, "UTC"):
        return
    # Imported on use: most sessions name UTC or no zone.
    from flowsql_compute.eval.time.calendar import zone_of

    try:
        zone_of(zone)
    except BindError as error:
        from zoneinfo import available_timezones

        error.message = f"Invalid value for option '{LOCAL_TIME_ZONE.key}': {error.message}"
        error.hint = did_you_mean(zone, sorted(available_timezones()))
        raise
