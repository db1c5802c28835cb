"""Fixtures of these tests."""

from .databases import place as place
