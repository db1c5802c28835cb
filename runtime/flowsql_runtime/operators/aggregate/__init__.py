"""Aggregation: programs of accumulators, per key, per window, in one or two phases."""
