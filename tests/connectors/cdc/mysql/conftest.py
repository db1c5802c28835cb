"""Fixtures of these tests."""

from .place import place as place
