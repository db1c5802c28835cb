"""``webhook``: senders are the standard library's client, and sockets."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import http.client
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.spi.source import ReaderContext, SourceReader, TableSource
from flowsql_core.clock import SystemClock
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.logical import Schema
from tests.connectors.tables import poll, rows_of, source_of, table_of

CHECKPOINTS = {"execution.checkpointing.interval": "1 h"}
BEARER = {"Authorization": "Bearer geheim"}


def table(ddl: str = "id INT, x STRING", **options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    first = {"connector": "webhook", "port": "0", "path": "/in", "format": "json", "token": "geheim"}
    return table_of(ddl, {key: value for key, value in {**first, **named}.items() if value})


class Listening:
    """A table that is read, and where it listens."""

    def __init__(self, source: TableSource, schema: Schema, configuration: dict[str, str], log: Any) -> None:
        self.schema = schema
        self.reader: SourceReader = source.create_reader(
            ReaderContext(0, 1, 64, SystemClock(), configuration, lambda name, n: None)
        )
        self.reader.add_splits(source.create_enumerator().initial_splits(1)[0])
        self.url = address(log)

    def read(self, count: int) -> list[list[Any]]:
        rows: list[list[Any]] = []
        while len(rows) < count:
            polled = poll(self.reader)
            assert polled is not None
            rows += rows_of(polled.batch, self.schema)
        return rows


def address(log: Any) -> str:
    """Where a table said that it listens."""
    deadline = time.monotonic() + 20
    while not (said := [record.getMessage() for record in log.records if "takes POST" in record.getMessage()]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return said[-1].rpartition(" ")[2]


@contextmanager
def listening(
    made: TableSpec, log: Any, configuration: dict[str, str] | None = None, metadata: tuple[str, ...] = ()
) -> Iterator[Listening]:
    log.set_level(logging.WARNING)
    source, schema = source_of(made, metadata=metadata, configuration=configuration)
    one = Listening(source, schema, configuration or {}, log)
    try:
        yield one
    finally:
        one.reader.close()


def post(
    url: str, body: bytes | str, headers: dict[str, str] | None = None, method: str = "POST"
) -> tuple[int, dict[str, Any]]:
    """Status and what was said."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=20)
    try:
        connection.request(method, f"{parts.path}?{parts.query}", body, BEARER if headers is None else headers)
        answer = connection.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said else dict(answer.headers)
    finally:
        connection.close()


def test_rows_arrive_and_are_answered(caplog: Any) -> None:
    with listening(table(), caplog) as one:
        assert post(one.url, '{"id": 1, "x": "a"}')[0] == 202
        assert post(one.url, '[{"id": 2}, {"id": 3}]')[0] == 202
        assert post(one.url, '{"id": 4}\n{"id": 5}\n', {**BEARER, "Content-Type": "application/x-ndjson"})[0] == 202
        assert post(one.url, gzip.compress(b'{"id": 6}'), {**BEARER, "Content-Encoding": "gzip"})[0] == 202
        assert one.read(6) == [[1, "a"], [2, None], [3, None], [4, None], [5, None], [6, None]]


def test_what_is_refused(caplog: Any) -> None:
    with listening(table(request__max_size="100 b"), caplog) as one:
        assert post(one.url, "{}", {}) == (401, {"error": "the token is missing or wrong"})
        assert post(one.url, "{}", {"Authorization": "Bearer gehei"})[0] == 401
        assert post(one.url.replace("/in", "/other"), "{}")[0] == 404
        assert post(one.url, "", method="GET")[0] == 405
        assert post(one.url, "x" * 101) == (413, {"error": "a request has at most 100 bytes"})
        assert post(one.url, gzip.compress(b"x" * 5000), {**BEARER, "Content-Encoding": "gzip"})[0] == 413
        assert post(one.url, b"nothing", {**BEARER, "Content-Encoding": "gzip"})[0] == 400
        assert post(one.url, b"nothing", {**BEARER, "Content-Encoding": "br"})[0] == 415
        assert post(one.url, b"") == (400, {"error": "there is no row"})
        status, said = post(one.url, '{"id": "x"}')
        assert status == 400
        assert "Fail to deserialize at field: id" in said["error"]
        lines = {**BEARER, "Content-Type": "application/x-ndjson"}
        status, said = post(one.url, '{"id": 1}\n{"id": "x"}\n', lines)
        assert status == 400
        assert "in message 2 of 2" in said["error"]
        with socket.create_connection((urlsplit(one.url).hostname, urlsplit(one.url).port)) as connection:
            connection.sendall(b"POST /in HTTP/1.1\r\nAuthorization: Bearer geheim\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 411 ")
        # None of them ended the job.
        assert post(one.url, '{"id": 1}')[0] == 202
        assert one.read(1) == [[1, None]]


def test_odd_bodies_are_rows_or_refused(caplog: Any) -> None:
    """Depth that Python does not walk and text that Arrow does not hold: an answer to each, and the job goes on."""
    deep, deeper = b"[" * 900 + b"]" * 900, b"[" * 3000 + b"]" * 3000
    with listening(table(), caplog) as one:
        for body, status in (
            (b'{"id": 1, "x": %b}' % deep, 202),
            (b'[{"id": 2, "z": %b}, {"id": 3, "x": "a\tb\nc"}]' % deep, 202),
            (rb'{"id": 4, "x": "\ud83d"}', 202),
            (b'\xef\xbb\xbf{"id": 5}', 202),
            (b'{"id": 6, "x": %b}' % deeper, 400),
            (deeper, 400),
            (b'{"id": 7, "x": "\xff"}', 400),
            (rb'{"id": 8, "x": "\u12"}', 400),
            (b"\xff\xfe\x00", 400),
        ):
            assert post(one.url, body)[0] == status, body[:40]
        assert one.read(5) == [[1, deep.decode()], [2, None], [3, "a\tb\nc"], [4, "?"], [5, None]]


def test_signatures(caplog: Any) -> None:
    with listening(table(authentication="hmac-sha256", authentication__header="X-Sign"), caplog) as one:
        body = '{"id": 1}'
        signature = hmac.new(b"geheim", body.encode(), hashlib.sha256).hexdigest()
        assert post(one.url, body, {"X-Sign": f"sha256={signature}"})[0] == 202
        assert post(one.url, body + " ", {"X-Sign": f"sha256={signature}"})[0] == 401
        assert post(one.url, body, {})[0] == 401


def test_metadata_without_the_secret(caplog: Any) -> None:
    with listening(table("id INT"), caplog, metadata=("remote", "headers", "query")) as one:
        post(f"{one.url}?a=1&b=2", '{"id": 1}', {**BEARER, "X-Event": "push"})
        ((id_, remote, headers, query),) = one.read(1)
    assert (id_, remote, query) == (1, "127.0.0.1", [["a", "1"], ["b", "2"]])
    assert dict(headers)["X-Event"] == "push"
    assert "Authorization" not in dict(headers)


def test_a_request_waits_for_a_checkpoint(caplog: Any) -> None:
    with listening(table(), caplog, CHECKPOINTS) as one:
        answers: list[int] = []
        sender = threading.Thread(target=lambda: answers.append(post(one.url, '{"id": 1}')[0]))
        sender.start()
        assert one.read(1) == [[1, None]]
        held = one.reader.snapshot()
        assert not answers
        one.reader.positions_durable(held)
        sender.join(20)
        assert answers == [200]
        late = threading.Thread(target=lambda: answers.append(post(one.url, '{"id": 2}')[0]))
        late.start()
        one.read(1)
        one.reader.close()
        late.join(20)
        assert answers == [200, 503]


def test_no_checkpoint_in_time(caplog: Any) -> None:
    with listening(table(acknowledge__timeout="10 ms"), caplog, CHECKPOINTS) as one:
        assert post(one.url, '{"id": 1}') == (503, {"error": "no checkpoint held the request in time"})


def test_too_much_waits(caplog: Any) -> None:
    with listening(table(queue__max_messages="2"), caplog, CHECKPOINTS) as one:
        body = '{"id": 1}\n{"id": 2}\n{"id": 3}'
        kind = {**BEARER, "Content-Type": "application/x-ndjson"}
        assert post(one.url, body, kind) == (429, {"error": "too many messages wait"})


def test_jobs_that_do_not_keep_up_say_so(caplog: Any) -> None:
    with listening(table(queue__max_messages="5"), caplog) as one:
        statuses = []
        while 429 not in statuses:
            statuses.append(post(one.url, '{"id": 1}')[0])
            assert len(statuses) < 2000
        taken = statuses.count(202)
        assert len(one.read(taken)) == taken


def test_an_insert_answers_once_its_checkpoint_is_complete(tmp_path: Path, caplog: Any) -> None:
    caplog.set_level(logging.WARNING)
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.execute_sql("SET 'execution.checkpointing.interval' = '50 ms'")
    made.execute_sql(f"SET 'execution.checkpointing.dir' = '{tmp_path / 'checkpoints'}'")
    given = ", ".join(f"'{key}' = '{value}'" for key, value in table().options)
    made.execute_sql(f"CREATE TABLE hook (id INT, x STRING) WITH ({given})")
    assert "at least once: a request is answered when a checkpoint holds it" in made.explain_sql("SELECT * FROM hook")
    assert "geheim" not in str(list(made.execute_sql("SHOW CREATE TABLE hook").collect()))
    made.execute_sql(
        f"CREATE TABLE kept (id INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'out'}', "
        "'format' = 'csv', "
        "'sink.rolling-policy.rollover-interval' = '10 ms', 'sink.rolling-policy.check-interval' = '10 ms')"
    )
    result = made.execute_sql("INSERT INTO kept SELECT id FROM hook")
    try:
        url = address(caplog)
        assert post(url, '[{"id": 1}, {"id": 2}]')[0] == 200
        deadline = time.monotonic() + 20
        while sorted(line for file in (tmp_path / "out").glob("[!.]*") for line in file.read_text().split()) != [
            "1",
            "2",
        ]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        client = result.get_job_client()
        assert client is not None
        client.cancel().result()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": ""}, "Senders need a secret: add 'token'"),
        ({"authentication": "none"}, "'token' has no meaning"),
        ({"tls__cert_file": "x"}, "belong together"),
        ({"path": "in"}, "begins with '/'"),
    ],
)
def test_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(BindError, match=message):
        source_of(table(**options))


def test_a_port_that_is_taken(caplog: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        source, _ = source_of(table(port=str(taken.getsockname()[1])))
        reader = source.create_reader(ReaderContext(0, 1, 64, SystemClock(), {}, lambda name, n: None))
        reader.add_splits(source.create_enumerator().initial_splits(1)[0])
        with pytest.raises(ConnectorError, match=r"cannot listen at 127.0.0.1:\d+: Address already in use"):
            poll(reader)
        reader.close()
