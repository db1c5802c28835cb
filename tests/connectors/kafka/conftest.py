"""One mock broker for all tests of a process."""

from __future__ import annotations

import pytest

from flowsql_connectors.kafka.transactions import TransactionCommitter
from tests.connectors.kafka.broker import MockBroker


@pytest.fixture(scope="session")
def _mock() -> MockBroker:
    return MockBroker()


@pytest.fixture
def broker(_mock: MockBroker, monkeypatch: pytest.MonkeyPatch) -> MockBroker:
    # It forgets the offsets of transactions: nobody may wait for them.
    monkeypatch.setattr(TransactionCommitter, "_settle", lambda *_: None)
    return _mock
