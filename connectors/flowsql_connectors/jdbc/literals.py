"""Constants as SQL text."""

from __future__ import annotations

import datetime

from flowsql_core.types.logical import DateType, LogicalType

_EPOCH = datetime.datetime(1970, 1, 1)


def sql_text(text: str) -> str:
    """A character string, for databases in which a backslash is one character."""
    return "'" + text.replace("'", "''") + "'"


def sql_moment(value: int, type_: LogicalType) -> str | None:
    """Days of a DATE or nanoseconds of a TIMESTAMP as a text; None beyond the years 1 to 9999 or microseconds."""
    try:
        if isinstance(type_, DateType):
            return (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
        if value % 1000:
            return None
        return (_EPOCH + datetime.timedelta(microseconds=value // 1000)).isoformat(" ")
    except OverflowError:
        return None


def posix_zone(zone: str) -> str:
    """A zone as PostgreSQL names it, whose own offsets count to the west."""
    if zone[:1] not in "+-":
        return zone
    return f"<{zone}>{'-' if zone[0] == '+' else '+'}{zone[1:]}"
