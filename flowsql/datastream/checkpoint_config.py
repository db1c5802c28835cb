"""``CheckpointConfig``, under the name of PyFlink's module: refused until there are checkpoints."""

from __future__ import annotations

from flowsql.common.refused import Refused

__all__ = ["CheckpointConfig"]


class CheckpointConfig(metaclass=Refused, construct="checkpoints"):
    """How checkpoints are taken."""
