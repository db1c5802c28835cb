"""Expressions: names, literals, calls, aggregates, OVER and queries inside of expressions, to typed expressions."""
