"""What flows beside batches, in order with them (engine contract: elements)."""

from __future__ import annotations

import enum
from typing import Final

from flowsql_core.record import record

MIN_WATERMARK: Final = -(2**63)
MAX_WATERMARK: Final = 2**63 - 1


@record
class Watermark:
    """No row with a row time <= ``timestamp_ms`` follows. Stand-alone form: idle sources, end of input."""

    timestamp_ms: int


@record
class WatermarkStatus:
    """Whether a channel takes part in the minimum of watermarks."""

    active: bool


ACTIVE: Final = WatermarkStatus(True)
IDLE: Final = WatermarkStatus(False)


class SnapshotKind(enum.Enum):
    """Why a snapshot is taken. The two that stop end the job once the savepoint is complete.

    ``DRAIN`` sends the last watermark before it, so that all event-time windows fire.
    """

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"
    SUSPEND = "suspend"
    DRAIN = "drain"

    @property
    def is_savepoint(self) -> bool:
        """Whether somebody asked for it: it never expires and is always aligned."""
        return self is not SnapshotKind.CHECKPOINT

    @property
    def stops(self) -> bool:
        """Whether the job ends behind it."""
        return self in (SnapshotKind.SUSPEND, SnapshotKind.DRAIN)


@record
class CheckpointBarrier:
    """Cuts the stream into what a snapshot holds and what follows it.

    ``unaligned_after_ms``: a task that has waited so long since ``timestamp_ms`` for the barrier on all its channels
    takes its snapshot at once, with the elements that the barrier overtakes; None: it waits for ever.
    """

    checkpoint_id: int
    timestamp_ms: int
    kind: SnapshotKind = SnapshotKind.CHECKPOINT
    unaligned_after_ms: int | None = None


@record
class LatencyMarker:
    """Travels with the data to measure how long that takes."""

    marked_ms: int
    source_id: str
    subtask: int


@record
class EndOfInput:
    """The channel has no more elements."""


END_OF_INPUT: Final = EndOfInput()
