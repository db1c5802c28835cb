"""Joins over time, lookups and joins of several inputs: which logical node becomes which."""
