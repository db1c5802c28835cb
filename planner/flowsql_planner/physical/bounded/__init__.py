"""Logical -> physical in batch mode, where the answer is given once, when all inputs have ended."""
