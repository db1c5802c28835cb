"""Logical plan -> better logical plan: ordered rules, one a file."""
