"""What flows beside batches, in order with them (engine contract: elements)."""

from __future__ import annotations

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


@record
class CheckpointBarrier:
    """Cuts the stream into what a snapshot holds and what follows it."""

    checkpoint_id: int
    timestamp_ms: int


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
