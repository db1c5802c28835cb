"""Precisions of moments that a database keeps: beyond them digits would be lost without a word."""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import BindError
from flowsql_core.types.logical import Schema, TimestampType

#: Name, least and greatest precision of TIMESTAMP, as the dialects of Flink's connector have them.
_TIMESTAMPS: Final = {
    "postgresql": ("PostgreSQL", 1, 6),
    "mysql": ("MySQL", 0, 6),
    "mariadb": ("MySQL", 0, 6),
}


def check_precisions(columns: Schema, scheme: str) -> None:
    """Refuse columns of other precisions.

    Raises:
        BindError: there is one.
    """
    if scheme not in _TIMESTAMPS:
        return
    name, least, greatest = _TIMESTAMPS[scheme]
    for column in columns:
        if isinstance(column.type, TimestampType) and not least <= column.type.precision <= greatest:
            fitting = min(max(column.type.precision, least), greatest)
            raise BindError(
                "column-type",
                f"The precision of field '{column.name}' is out of the TIMESTAMP precision range [{least}, {greatest}] "
                f"supported by {name} dialect.",
                hint=f"declare it as TIMESTAMP({fitting})",
            )
