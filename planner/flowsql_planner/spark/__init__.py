"""Bounded plans as Spark jobs: SQL text printed from a sqlglot tree, every type and order explicit."""
