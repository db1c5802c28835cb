"""Brokers of these tests: amqtt in this process in every run, Mosquitto where servers are asked for."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest

from tests.local_servers import LocalServer, accepts, free_port

#: For ``parametrize``, with ``indirect``.
KINDS = ("amqtt", pytest.param("mosquitto", marks=pytest.mark.servers))


class Place:
    """A broker, and a client that looks on. ``options``: of the tables of this broker."""

    def __init__(self, port: int, version: str) -> None:
        self.port = port
        #: amqtt gives its retained messages to whoever subscribes to anything.
        self.keeps = version == "5"
        self.options = f"'connector' = 'mqtt', 'url' = 'mqtt://127.0.0.1:{port}', 'protocol-version' = '{version}'"
        self.seen: list[tuple[str, bytes]] = []
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda _c, _u, message: self.seen.append((message.topic, message.payload))
        subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.on_connect = lambda client, *_: client.subscribe("open/#", 1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert subscribed.wait(20)

    def publish(self, topic: str, *payloads: str, retain: bool = False) -> None:
        for payload in payloads:
            self._client.publish(topic, payload, 1, retain).wait_for_publish(20)

    def waited(self, count: int) -> list[tuple[str, bytes]]:
        """So many messages that were published."""
        end = time.monotonic() + 30
        while len(self.seen) < count and time.monotonic() < end:
            time.sleep(0.01)
        return self.seen

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture(scope="session")
def amqtt_port() -> Iterator[int]:
    """The port of a broker in this process."""
    from amqtt.broker import Broker

    logging.getLogger("amqtt").setLevel(logging.ERROR)
    logging.getLogger("transitions").setLevel(logging.ERROR)
    port = free_port()
    loop = asyncio.new_event_loop()
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    started = threading.Event()
    brokers: list[Any] = []

    async def start() -> None:
        broker = Broker(config)
        await broker.start()
        brokers.append(broker)
        started.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(20)
    assert accepts(port)
    yield port
    asyncio.run_coroutine_threadsafe(brokers[0].shutdown(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A broker."""
    if request.param == "amqtt":
        made = Place(request.getfixturevalue("amqtt_port"), "3.1.1")
    else:
        server: LocalServer = request.getfixturevalue("mqtt_server")
        made = Place(server.port, "5")
    yield made
    made.close()
