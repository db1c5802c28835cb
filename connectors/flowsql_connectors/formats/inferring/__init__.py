"""Columns and options of files that nobody declared, from a sample of their rows; a module a format."""
