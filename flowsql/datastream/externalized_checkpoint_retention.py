"""``ExternalizedCheckpointRetention``, under the name of PyFlink's module."""

from __future__ import annotations

import enum


class ExternalizedCheckpointRetention(enum.Enum):
    """What becomes of checkpoints when a job ends.

    RETAIN_ON_CANCELLATION keeps the last ones unless the job finished, DELETE_ON_CANCELLATION when it failed,
    NO_EXTERNALIZED_CHECKPOINTS never.
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
