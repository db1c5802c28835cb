"""Binding: names and types resolved, the syntax tree turned into logical plans and catalog objects."""
