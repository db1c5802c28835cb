"""Columns of MySQL: their types, and their values out of the log and of queries."""
