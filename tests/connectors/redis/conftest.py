"""Servers of these tests: fakeredis over TCP in every run, Redis itself where servers are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.local_servers import LocalServer, free_port

#: For ``parametrize``, with ``indirect``.
KINDS = ("fake", pytest.param("real", marks=pytest.mark.servers))


@pytest.fixture(scope="session")
def fake_redis() -> Iterator[int]:
    """The port of a server in this process that speaks Redis's protocol."""
    from fakeredis import TcpFakeServer

    server: Any = TcpFakeServer(("127.0.0.1", free_port()), server_type="redis")
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    """A client of an empty server."""
    if request.param == "fake":
        port: int = request.getfixturevalue("fake_redis")
    else:
        real: LocalServer = request.getfixturevalue("redis_server")
        port = real.port
    client: Any = redis.Redis(port=port)
    client.flushall()
    yield client
    client.close()
