"""``RuntimeExecutionMode``: streaming or batch."""

from __future__ import annotations

import enum


class RuntimeExecutionMode(enum.Enum):
    """Values are those of ``execution.runtime-mode``."""

    STREAMING = "streaming"
    BATCH = "batch"
    AUTOMATIC = "automatic"
