"""``ExternalizedCheckpointRetention``, under the name of PyFlink's module."""

from __future__ import annotations

import enum


class ExternalizedCheckpointRetention(enum.Enum):
    """What becomes of checkpoints when a job ends. There are none yet: ``enable_checkpointing`` refuses."""

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
