"""Connectors in plain Python: sources that iterate over rows, sinks that take batches."""
