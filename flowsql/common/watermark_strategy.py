"""Watermark strategies and timestamp assigners, under the name of PyFlink's module."""

from __future__ import annotations

from flowsql_core.stream.watermark import TimestampAssigner, WatermarkStrategy

__all__ = ["TimestampAssigner", "WatermarkStrategy"]
