"""Operators of DataStreams in batch mode: what waits until an input has ended."""
