"""``scan.watermark.*``: how the watermarks of a table leave, and which other sources it waits for."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.options import ConnectorOption, optional, parse_choice
from flowsql_core.config import parse_duration_ms

WATERMARK_OPTIONS: Final = (
    ConnectorOption(
        "scan.watermark.emit.strategy",
        parse_choice("on-periodic", "on-event"),
        "on-periodic",
        "Watermarks leave behind a row that lifts them by more than 'pipeline.auto-watermark-interval', or every "
        "one that lifts them.",
    ),
    ConnectorOption(
        "scan.watermark.idle-timeout",
        optional(parse_duration_ms),
        None,
        "A reader silent for longer does not hold watermarks back.",
    ),
    ConnectorOption(
        "scan.watermark.alignment.group",
        optional(str),
        None,
        "Sources of one group wait for each other.",
    ),
    ConnectorOption(
        "scan.watermark.alignment.max-drift",
        optional(parse_duration_ms),
        None,
        "How far the watermark of a reader may be ahead of the lowest one of the group before it waits.",
    ),
    ConnectorOption(
        "scan.watermark.alignment.update-interval",
        parse_duration_ms,
        1_000,
        "How often a reader that waits looks again.",
    ),
)
