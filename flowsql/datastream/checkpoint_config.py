"""``CheckpointConfig``, under the name of PyFlink's module: refused until there are checkpoints."""

from __future__ import annotations

from flowsql.common.refused import Refused

__all__ = ["CheckpointConfig"]


class CheckpointConfig(metaclass=Refused, construct="checkpoints", hint="leave it out: a job that failed begins anew"):
    """How checkpoints are taken."""
