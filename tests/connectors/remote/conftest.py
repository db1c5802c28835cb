"""The storages that every test of remote files runs on."""

from __future__ import annotations

import pytest

from tests.connectors.remote.store import Store, memory, s3


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.servers)])
def store(request: pytest.FixtureRequest) -> Store:
    """An empty corner of a storage."""
    return memory() if request.param == "memory" else s3(request.getfixturevalue("s3_server"))
