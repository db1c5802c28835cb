"""Merging the watermarks of channels: minimum over aligned channels, idleness.

Source: Flink, ``StatusWatermarkValve``.
"""

from __future__ import annotations

import numpy as np

from flowsql_core.batch import WatermarkTrack
from flowsql_core.element import ACTIVE, IDLE, MAX_WATERMARK, MIN_WATERMARK, WatermarkStatus
from flowsql_core.record import record


@record
class GateLevels:
    """Watermarks of one gate's channels, epoch ms, which of them are idle, and what they amount to."""

    levels_ms: tuple[int, ...]
    idle: tuple[bool, ...]
    combined_ms: int


class WatermarkMerger:
    """The combined watermark of several channels of one input.

    An idle channel does not hold the minimum back. One that becomes active again takes part only once its watermark has
    reached the combined one ("aligned"); until then it neither lifts nor holds it.
    """

    __slots__ = ("_aligned", "_idle", "_levels", "combined_ms", "idle")

    def __init__(self, channels: int) -> None:
        self._levels = [MIN_WATERMARK] * channels
        self._idle = [False] * channels
        self._aligned = [True] * channels
        self.combined_ms = MIN_WATERMARK
        self.idle = False

    def levels(self) -> GateLevels:
        """Where the channels stand, for a snapshot."""
        return GateLevels(tuple(self._levels), tuple(self._idle), self.combined_ms)

    def restore(self, levels: GateLevels) -> None:
        """The channels of a restored job go on where those of the snapshot stood."""
        self._levels = list(levels.levels_ms)
        self._idle = list(levels.idle)
        self.combined_ms = levels.combined_ms
        self.idle = all(self._idle)
        self._aligned = [
            not idle and level >= self.combined_ms for level, idle in zip(self._levels, self._idle, strict=True)
        ]

    def advance(self, channel: int, track: WatermarkTrack) -> WatermarkTrack | None:
        """The part of one channel's track that lifts the combined watermark; None when nothing does."""
        if self._idle[channel] or track.last_ms <= self._levels[channel]:
            return None
        new = track.at_least(self._levels[channel])
        assert new is not None
        self._levels[channel] = new.last_ms
        if not self._aligned[channel]:
            if new.last_ms < self.combined_ms:
                return None
            self._aligned[channel] = True
        ceiling_ms = self._minimum(without=channel)
        merged = new.capped(MAX_WATERMARK if ceiling_ms is None else ceiling_ms, self.combined_ms)
        if merged is not None:
            self.combined_ms = merged.last_ms
        return merged

    def advance_to(self, channel: int, watermark_ms: int) -> int | None:
        """The new combined watermark after a stand-alone watermark, or None."""
        merged = self.advance(channel, WatermarkTrack(np.zeros(1, np.int32), np.array([watermark_ms], np.int64)))
        return None if merged is None else merged.last_ms

    def set_status(self, channel: int, status: WatermarkStatus) -> tuple[WatermarkStatus | None, int | None]:
        """A channel becomes idle or active: ``(status to forward, watermark to forward before it)``."""
        if self._idle[channel] == (not status.active):
            return None, None
        self._idle[channel] = not status.active
        if status.active:
            self._aligned[channel] = self._levels[channel] >= self.combined_ms
            changed = ACTIVE if self.idle else None
            self.idle = False
            return changed, None
        self._aligned[channel] = False
        if all(self._idle):
            # The last active one leaves: what the others already reached counts now.
            lifted = self._lift(max(self._levels)) if self._levels[channel] == self.combined_ms else None
            self.idle = True
            return IDLE, lifted
        return None, self._lift(self._minimum())

    def _lift(self, level_ms: int | None) -> int | None:
        if level_ms is None or level_ms <= self.combined_ms:
            return None
        self.combined_ms = level_ms
        return level_ms

    def _minimum(self, without: int | None = None) -> int | None:
        return min(
            (level for index, level in enumerate(self._levels) if self._aligned[index] and index != without),
            default=None,
        )
