"""Watermark strategies and timestamp assigners, under the name of PyFlink's module."""

from __future__ import annotations

from flowsql.common.refused import Refused
from flowsql_core.stream.watermark import TimestampAssigner, WatermarkStrategy

__all__ = ["AssignerWithPeriodicWatermarksWrapper", "TimestampAssigner", "WatermarkStrategy"]


class AssignerWithPeriodicWatermarksWrapper(
    metaclass=Refused, construct="timestamp assigners of Java", hint="use a WatermarkStrategy with a TimestampAssigner"
):
    """A timestamp assigner written in Java."""
