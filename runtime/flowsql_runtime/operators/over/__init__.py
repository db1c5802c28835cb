"""Operators of OVER windows."""
