"""Whether this machine can start Spark; tests that need it skip where it cannot."""

from __future__ import annotations

import os

import pytest

from flowsql_core.config import Configuration
from flowsql_runtime.spark.sessions.current import missing

LACK = missing(Configuration())

#: All tests with a session run in one process: starting a second one costs more than all of them.
ON_SPARK = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(LACK is not None, reason=f"no Spark on this machine: {LACK}"),
]


def hurry() -> None:
    """Java compiles less while it starts: the tests are short."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
