"""Operators: one class per spec of ``flowsql_core.graph.specs``."""
