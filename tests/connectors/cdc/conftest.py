"""Fixtures of these tests."""

from tests.connectors.cdc.server import database as database
