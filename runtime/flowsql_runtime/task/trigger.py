"""``flowsql.trigger``: how long a streaming job reads."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode, option, parse_enum


class Trigger(enum.Enum):
    """How long a streaming job reads."""

    CONTINUOUS = "continuous"
    AVAILABLE_NOW = "available-now"


TRIGGER = option(
    "flowsql.trigger",
    parse_enum(Trigger),
    Trigger.CONTINUOUS,
    "How long a streaming job reads: 'continuous' until its inputs end, 'available-now' until it has taken what was "
    "there when it started; then it stops with a savepoint, from which the next run goes on.",
)


def reads_what_is_there(configuration: Mapping[str, str]) -> bool:
    """Whether a job stops once it has caught up. One of batch mode ends there anyway."""
    values = Configuration(values=configuration)
    return values.get(RUNTIME_MODE) is not RuntimeMode.BATCH and values.get(TRIGGER) is Trigger.AVAILABLE_NOW
