"""Calendars, zones and moments over columns."""
