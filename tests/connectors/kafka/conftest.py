"""One mock broker for all tests of a process."""

from __future__ import annotations

import pytest

from tests.connectors.kafka.broker import MockBroker


@pytest.fixture(scope="session")
def broker() -> MockBroker:
    return MockBroker()
