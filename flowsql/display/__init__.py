"""Answers as people look at them while their jobs run: rows kept up to date, progress, tables of HTML for notebooks."""
