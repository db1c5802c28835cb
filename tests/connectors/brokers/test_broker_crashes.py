"""Jobs between real brokers and stores that are killed again and again count each message once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nats
import pymongo
import pytest
import redis

from tests.local_servers import LocalServer

pytestmark = pytest.mark.servers

MESSAGES = 3000
KEYS = 7
KILLS = 3
NAME = f"t{uuid.uuid4().hex[:8]}"


class Redis:
    """A stream to read, hashes to write."""

    def __init__(self, port: int) -> None:
        self._client: Any = redis.Redis(port=port)
        self._client.flushall()
        url = f"'connector' = 'redis', 'url' = 'redis://127.0.0.1:{port}/0'"
        self.source = f"{url}, 'structure' = 'stream', 'key' = 'events'"
        self.sink = f"{url}, 'key' = 'sum:{{k}}', 'sink.buffer-flush.max-rows' = '3'"

    def publish(self, numbers: range) -> None:
        for number in numbers:
            self._client.xadd("events", {"n": number})

    def rows(self) -> dict[int, tuple[int, int]]:
        found = {int(key.rpartition(b":")[2]): self._client.hgetall(key) for key in self._client.keys("sum:*")}
        return {key: (int(row[b"c"]), int(row[b"s"])) for key, row in found.items()}


class Mongo:
    """A collection to write."""

    def __init__(self, port: int) -> None:
        uri = f"mongodb://127.0.0.1:{port}"
        self._collection = pymongo.MongoClient(uri)[NAME]["sums"]
        self.sink = f"'connector' = 'mongodb', 'uri' = '{uri}', 'database' = '{NAME}', 'collection' = 'sums'"

    def rows(self) -> dict[int, tuple[int, int]]:
        return {row["_id"]: (row["c"], row["s"]) for row in self._collection.find()}


class Opensearch:
    """An index to write."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/{NAME}"
        self.sink = f"'connector' = 'opensearch', 'hosts' = 'http://127.0.0.1:{port}', 'index' = '{NAME}'"

    def rows(self) -> dict[int, tuple[int, int]]:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{self._url}/_refresh", method="POST"), timeout=30)
            with urllib.request.urlopen(f"{self._url}/_search?size=1000", timeout=30) as answer:
                found = [hit["_source"] for hit in json.load(answer)["hits"]["hits"]]
        except urllib.error.HTTPError:
            return {}
        return {row["k"]: (row["c"], row["s"]) for row in found}


class Nats:
    """A stream to read, by a durable consumer."""

    def __init__(self, port: int) -> None:
        self._url = f"nats://127.0.0.1:{port}"
        self._subject = f"{uuid.uuid4().hex[:8]}.n"
        self.source = (
            f"'connector' = 'nats', 'url' = '{self._url}', 'subject' = '{self._subject}', 'consumer' = 'sums', "
            "'format' = 'json'"
        )
        asyncio.run(self._add())

    async def _add(self) -> None:
        client = await nats.connect(self._url)
        await client.jetstream().add_stream(name=self._subject.partition(".")[0], subjects=[self._subject])
        await client.close()

    def publish(self, numbers: range) -> None:
        async def run() -> None:
            client = await nats.connect(self._url)
            for number in numbers:
                await client.jetstream().publish(self._subject, f'{{"n": {number}}}'.encode())
            await client.close()

        asyncio.run(run())


@pytest.mark.parametrize(("source", "sink"), [(Redis, Mongo), (Nats, Redis), (Nats, Opensearch)])
def test_each_message_counts_once(
    request: pytest.FixtureRequest, tmp_path: Path, source: type[Any], sink: type[Any]
) -> None:
    def made(kind: type[Any]) -> Any:
        fixtures = {
            Redis: "redis_server",
            Mongo: "mongodb_server",
            Opensearch: "opensearch_server",
            Nats: "nats_server",
        }
        server: LocalServer = request.getfixturevalue(fixtures[kind])
        return kind(server.port)

    messages, table = made(source), made(sink)
    text = (
        f"CREATE TABLE m (n BIGINT) WITH ({messages.source});\n"
        f"CREATE TABLE o (k INT, c BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({table.sink});\n"
        f"INSERT INTO o SELECT CAST(MOD(n, {KEYS}) AS INT), COUNT(*), SUM(n) FROM m GROUP BY MOD(n, {KEYS});\n"
    )
    if sink is Mongo:
        text = text.replace("(k INT, c", "(_id INT, c").replace("KEY (k)", "KEY (_id)")
    publisher = threading.Thread(target=lambda: slowly(messages.publish))
    publisher.start()
    wanted = {k: (len(numbers), sum(numbers)) for k in range(KEYS) if (numbers := range(k, MESSAGES, KEYS))}
    dice = random.Random(source.__name__)
    folder = tmp_path / "checkpoints"
    try:
        for kill in range(KILLS + 1):
            job = started(text, folder)
            try:
                known = len(list(folder.glob("*/chk-*/_metadata")))
                last = kill == KILLS
                until(
                    lambda: table.rows() == wanted if last else len(list(folder.glob("*/chk-*/_metadata"))) > known,  # noqa: B023
                    job,
                )
                time.sleep(0 if last else dice.random() * 0.5)
            finally:
                job.send_signal(signal.SIGKILL)
                job.communicate()
        assert table.rows() == wanted
    finally:
        publisher.join()


def slowly(publish: Callable[[range], None]) -> None:
    for start in range(0, MESSAGES, 100):
        publish(range(start, start + 100))
        time.sleep(0.15)


def started(text: str, folder: Path) -> subprocess.Popen[bytes]:
    """A job that goes on where the last checkpoint is."""
    options = {
        "execution.checkpointing.interval": "40 ms", "execution.checkpointing.dir": str(folder),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }  # fmt: skip
    snapshots = sorted(folder.glob("*/chk-*/_metadata"), key=lambda file: file.stat().st_mtime)
    if snapshots:
        options["execution.state-recovery.path"] = str(snapshots[-1].parent)
    flags = [part for key, value in options.items() for part in ("-D", f"{key}={value}")]
    return subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", *flags, "-c", text],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip


def until(holds: Callable[[], bool], job: subprocess.Popen[bytes]) -> None:
    """Wait while the job runs."""
    end = time.monotonic() + 90
    while not holds():
        alive = job.poll() is None and time.monotonic() < end
        assert alive, job.stderr.read().decode() if job.poll() is not None and job.stderr else "it takes too long"
        time.sleep(0.02)
