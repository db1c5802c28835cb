"""Options and profiles of the whole suite."""

from __future__ import annotations

import contextlib
import gc
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from .cold_state import cold_operators as cold_operators
from .cold_state import each_backend as each_backend
from .cold_state import leave_to_chaos
from .local_servers import mongodb_server as mongodb_server
from .local_servers import mqtt_server as mqtt_server
from .local_servers import nats_server as nats_server
from .local_servers import opensearch_server as opensearch_server
from .local_servers import redis_server as redis_server
from .servers import kafka_server as kafka_server
from .servers import mariadb_server as mariadb_server
from .servers import postgres_server as postgres_server
from .servers import registry_server as registry_server
from .servers import s3_server as s3_server

# Hypothesis repeats its examples by itself where it finds that it runs in continuous integration.
settings.register_profile("fuzz", max_examples=1000, deadline=None, print_blob=True, derandomize=False)
# The same examples in every run: a change is judged by itself, and what is new is looked for by ``make fuzz``.
settings.register_profile("ci", max_examples=6, deadline=None, derandomize=True)
settings.load_profile("ci")


def pytest_configure(config: pytest.Config) -> None:
    """Tests of a group run in one process: Spark is started once. What tests start can be interrupted.

    A shell without job control lets what it runs in the background ignore SIGINT, and children would inherit that.
    """
    # What is collected stays to the end: the collector would walk over more and more of it, for seconds.
    gc.disable()
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("dist", None) == "load":
        config.option.dist = "loadgroup"


def pytest_collection_finish() -> None:
    """Tests run with the cycle collector."""
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A run goes on to its end when one of its processes dies."""
    from .crashed_worker import EndingScheduling

    return EndingScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before those marked as nightly are left out."""
    leave_to_chaos(items)


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """The command line spares the cycle collector for as long as its process lives; this process goes on."""
    yield
    gc.enable()
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the answers of .test files anew; review the diff")
