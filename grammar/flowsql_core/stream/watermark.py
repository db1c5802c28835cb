"""``WatermarkStrategy``: how timestamps and watermarks of a stream are made. Data only; the runtime acts on it."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from flowsql_core.graph.specs import UPDATE_INTERVAL_MS, WatermarkAlignment
from flowsql_core.record import record
from flowsql_core.stream.time import Span, span_ms


class TimestampAssigner(ABC):
    """Says at what time an element happened."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Epoch milliseconds; ``record_timestamp`` is what the element has, the smallest long where it has none."""


class WatermarkGenerator(enum.Enum):
    """Kinds of generators."""

    NO_WATERMARKS = "no watermarks"
    BOUNDED_OUT_OF_ORDERNESS = "bounded out of orderness"


@record
class WatermarkStrategy:
    """Immutable: each ``with_...`` answers a new strategy.

    ``out_of_orderness_ms``: the watermark stands so much (and one more millisecond) behind the latest timestamp.
    ``idle_timeout_ms``: after so much silence of a subtask the watermarks of others count without it; 0: never.
    ``alignment``: sources of a group that are far ahead wait for the others; only ``from_source`` heeds it.
    """

    generator: WatermarkGenerator
    out_of_orderness_ms: int = 0
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout_ms: int = 0
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps do not fall."""
        return WatermarkStrategy(WatermarkGenerator.BOUNDED_OUT_OF_ORDERNESS)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Span) -> WatermarkStrategy:
        """Timestamps fall by no more than ``max_out_of_orderness``."""
        return WatermarkStrategy(WatermarkGenerator.BOUNDED_OUT_OF_ORDERNESS, span_ms(max_out_of_orderness))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No watermark before the end of the input."""
        return WatermarkStrategy(WatermarkGenerator.NO_WATERMARKS)

    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner) -> WatermarkStrategy:
        """Take timestamps from the elements."""
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: Span) -> WatermarkStrategy:
        """Do not wait for a subtask that is silent for so long."""
        timeout_ms = span_ms(idle_timeout)
        if timeout_ms <= 0:
            raise ValueError("idle timeout must be positive")
        return replace(self, idle_timeout_ms=timeout_ms)

    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Span, update_interval: Span | None = None
    ) -> WatermarkStrategy:
        """Do not read a source, subtask or split whose watermark is further ahead of the group's lowest one than this.

        Args:
            update_interval: how often what waits looks again; 1 s by default.

        Raises:
            ValueError: the drift is negative, or the interval not positive.
        """
        drift_ms = span_ms(max_allowed_watermark_drift)
        interval_ms = UPDATE_INTERVAL_MS if update_interval is None else span_ms(update_interval)
        if drift_ms < 0:
            raise ValueError("the allowed watermark drift must not be negative")
        if interval_ms <= 0:
            raise ValueError("the update interval of watermark alignment must be positive")
        return replace(self, alignment=WatermarkAlignment(watermark_group, drift_ms, interval_ms))
