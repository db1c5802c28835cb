"""EXPLAIN: plans as text."""
