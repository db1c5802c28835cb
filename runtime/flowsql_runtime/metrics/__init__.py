"""Counters and gauges of running tasks under Flink's names."""
