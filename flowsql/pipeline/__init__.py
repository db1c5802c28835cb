"""Pipelines: a folder of SQL files whose statements run in the order of their tables; ``flowsql run``."""
