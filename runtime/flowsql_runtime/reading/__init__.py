"""Snapshots as tables: what they hold, and the rows of one state as a bounded source."""
