"""Harnesses that drive operators and whole graphs in tests."""
