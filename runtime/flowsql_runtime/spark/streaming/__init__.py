"""Unbounded jobs on Spark Structured Streaming."""
