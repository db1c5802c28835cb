"""``CheckpointingMode``, under the name of PyFlink's module."""

from __future__ import annotations

import enum


class CheckpointingMode(enum.Enum):
    """What checkpoints promise. ``enable_checkpointing`` refuses both until there are checkpoints."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
