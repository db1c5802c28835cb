"""Environments and small functions that the tests of the API share."""

from __future__ import annotations

import pytest

from flowsql.datastream import StreamExecutionEnvironment


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()
