"""Operators that aggregate with Python functions."""
