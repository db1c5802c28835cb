"""Formats of change data capture: lines of JSON, each of which tells changes of rows."""
