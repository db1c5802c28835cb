"""Partitions of file tables: which are read, where rows of them go, and when they are complete."""
