"""``SqlDialect``: which SQL a session reads."""

from __future__ import annotations

import enum


class SqlDialect(enum.Enum):
    """Flink's own SQL is the one that FlowSQL reads; HIVE is named so that programs find it refused."""

    DEFAULT = 0
    HIVE = 1
