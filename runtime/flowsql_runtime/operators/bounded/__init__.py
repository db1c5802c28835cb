"""Operators of batch mode: they answer once, when their inputs have ended."""
