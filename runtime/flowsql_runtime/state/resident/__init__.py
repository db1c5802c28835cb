"""Stores in memory: hash index, rows of words by slot, linked lists. The bodies of every backend."""
