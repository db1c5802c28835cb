"""``CheckpointingMode``, under the name of PyFlink's module."""

from __future__ import annotations

import enum


class CheckpointingMode(enum.Enum):
    """What checkpoints promise: after a failure each row counts exactly once, or at least once."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
