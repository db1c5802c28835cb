"""What marks the end of a mini-batch."""

from __future__ import annotations

import enum


class MiniBatchMode(enum.Enum):
    """What marks the end of a mini-batch; the values are what EXPLAIN prints."""

    PROC_TIME = "ProcTime"
    ROW_TIME = "RowTime"
    #: Nothing: no assigner is planned.
    NONE = "None"
