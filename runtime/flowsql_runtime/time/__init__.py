"""Timers, processing time and watermark merging."""
