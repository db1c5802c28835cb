"""``lookup.*`` options of tables, as Flink's connectors have them."""

from __future__ import annotations

import datetime
import enum
from typing import Any, Final

from flowsql_connectors.options import (
    ConnectorOption,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
    parse_positive,
)
from flowsql_connectors.spi.lookup import PartialCache
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError
from flowsql_core.record import record


class ReloadMode(enum.Enum):
    """From when the interval to the next reload counts."""

    FIXED_DELAY = "FIXED_DELAY"
    FIXED_RATE = "FIXED_RATE"


def _time(text: str) -> datetime.time:
    try:
        return datetime.time.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        raise ValueError("expected a time as 10:15 or 10:15:30, UTC with a 'Z' behind it") from None


CACHE = ConnectorOption(
    "lookup.cache", parse_choice("NONE", "PARTIAL", "FULL"), "NONE",
    "What lookup joins keep: nothing, the rows of keys that were asked for, or the whole table.",
)  # fmt: skip
EXPIRE_AFTER_ACCESS: ConnectorOption[int | None] = ConnectorOption(
    "lookup.partial-cache.expire-after-access", optional(parse_duration_ms), None,
    "A key that was not asked for so long leaves the cache.",
)  # fmt: skip
EXPIRE_AFTER_WRITE: ConnectorOption[int | None] = ConnectorOption(
    "lookup.partial-cache.expire-after-write", optional(parse_duration_ms), None,
    "A key leaves the cache so long after its rows were read.",
)  # fmt: skip
CACHE_MISSING_KEY = ConnectorOption(
    "lookup.partial-cache.cache-missing-key", parse_boolean, True, "Whether the cache also knows keys without rows."
)
MAX_ROWS: ConnectorOption[int | None] = ConnectorOption(
    "lookup.partial-cache.max-rows", optional(parse_positive), None,
    "How many keys the cache holds; those that were not asked for longest leave first.",
)  # fmt: skip
RELOAD_STRATEGY = ConnectorOption(
    "lookup.full-cache.reload-strategy", parse_choice("PERIODIC", "TIMED"), "PERIODIC",
    "Whether the whole table is read again in intervals, or at a time of day.",
)  # fmt: skip
RELOAD_INTERVAL: ConnectorOption[int | None] = ConnectorOption(
    "lookup.full-cache.periodic-reload.interval", optional(parse_duration_ms), None,
    "How long to wait until the whole table is read again.",
)  # fmt: skip
RELOAD_MODE = ConnectorOption(
    "lookup.full-cache.periodic-reload.schedule-mode", parse_choice("FIXED_DELAY", "FIXED_RATE"), "FIXED_DELAY",
    "Whether the interval counts from the end of a reload or from its start.",
)  # fmt: skip
RELOAD_TIME: ConnectorOption[datetime.time | None] = ConnectorOption(
    "lookup.full-cache.timed-reload.iso-time", optional(_time), None,
    "Time of day at which the whole table is read again, as 10:15.",
)  # fmt: skip
RELOAD_DAYS = ConnectorOption(
    "lookup.full-cache.timed-reload.interval-in-days", parse_positive, 1, "After how many days that is done again."
)

LOOKUP_OPTIONS: Final = (
    CACHE, EXPIRE_AFTER_ACCESS, EXPIRE_AFTER_WRITE, CACHE_MISSING_KEY, MAX_ROWS, RELOAD_STRATEGY, RELOAD_INTERVAL,
    RELOAD_MODE, RELOAD_TIME, RELOAD_DAYS,
)  # fmt: skip


#: Of tables that are not read whole for lookups.
PARTIAL_CACHE = ConnectorOption(
    CACHE.key, parse_choice("NONE", "PARTIAL"), "NONE",
    "What lookup joins keep: nothing, or the rows of keys that were asked for.",
)  # fmt: skip
PARTIAL_CACHE_OPTIONS: Final = (PARTIAL_CACHE, EXPIRE_AFTER_ACCESS, EXPIRE_AFTER_WRITE, CACHE_MISSING_KEY, MAX_ROWS)

#: Of tables that have no lookups by key.
FULL_CACHE = ConnectorOption(
    CACHE.key,
    parse_choice("NONE", "FULL"),
    "NONE",
    "What lookup joins keep: the whole table; by default there are none.",
)
FULL_CACHE_OPTIONS: Final = (FULL_CACHE, RELOAD_STRATEGY, RELOAD_INTERVAL, RELOAD_MODE, RELOAD_TIME, RELOAD_DAYS)


@record
class Reload:
    """When a whole table is read again: every ``interval_ms``, or each ``days`` at ``time_of_day_ms`` UTC."""

    interval_ms: int | None = None
    mode: ReloadMode = ReloadMode.FIXED_DELAY
    time_of_day_ms: int | None = None
    days: int = 1


def cache_of(values: OptionValues) -> PartialCache | Reload | None:
    """What the options say; None: nothing is kept.

    Raises:
        BindError: ``lookup.cache`` = FULL without a time for reloads, or PARTIAL without a bound.
    """
    match values.get(CACHE):
        case "PARTIAL":
            bounds = (EXPIRE_AFTER_ACCESS, EXPIRE_AFTER_WRITE, MAX_ROWS)
            if not any(values.has(bound) for bound in bounds):
                raise BindError(
                    "missing-option",
                    f"Missing '{EXPIRE_AFTER_ACCESS.key}', '{EXPIRE_AFTER_WRITE.key}' or '{MAX_ROWS.key}' in the "
                    "configuration. The cache will not have evictions under this configuration and could lead to "
                    "potential memory issues as the cache size may grow indefinitely.",
                    hint=f"'{MAX_ROWS.key}' = '10000', for example",
                )
            return PartialCache(
                values.get(EXPIRE_AFTER_ACCESS),
                values.get(EXPIRE_AFTER_WRITE),
                values.get(MAX_ROWS),
                values.get(CACHE_MISSING_KEY),
            )
        case "FULL":
            return _reload(values)
    return None


def _reload(values: OptionValues) -> Reload:
    if values.get(RELOAD_STRATEGY) == "PERIODIC":
        interval = values.get(RELOAD_INTERVAL)
        if interval is None:
            raise _missing(RELOAD_INTERVAL, "PERIODIC")
        return Reload(interval, ReloadMode(values.get(RELOAD_MODE)))
    time = values.get(RELOAD_TIME)
    if time is None:
        raise _missing(RELOAD_TIME, "TIMED")
    return Reload(
        time_of_day_ms=((time.hour * 60 + time.minute) * 60 + time.second) * 1000, days=values.get(RELOAD_DAYS)
    )


def _missing(option: ConnectorOption[Any], strategy: str) -> BindError:
    return BindError(
        "missing-option",
        f"Missing '{option.key}' in specified lookup full caching strategy {strategy}.",
        hint=f"'{option.key}': {option.doc}",
    )
