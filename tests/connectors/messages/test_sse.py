"""``sse``: readers are the standard library's HTTP client."""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.spi.sink import SinkWriter
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.row import RowKind
from tests.connectors.tables import batch_of, table_of, writer_of

BEARER = {"Authorization": "Bearer geheim"}


def table(**options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    first = {"connector": "sse", "port": "0", "path": "/out", "format": "json", "token": "geheim"}
    return table_of("id INT, x STRING", {key: value for key, value in {**first, **named}.items() if value})


class Served:
    """A table that is written, and where it can be read."""

    def __init__(self, spec: TableSpec, writer: SinkWriter, log: Any) -> None:
        self.spec, self.writer = spec, writer
        (said,) = [one for one in log.messages if "can be followed at" in one]
        self.url = urlsplit(said.rpartition(" ")[2])

    def write(self, rows: Sequence[tuple[Any, ...]], kinds: Sequence[RowKind] | None = None) -> None:
        self.writer.write(batch_of(self.spec, rows, kinds))
        self.writer.flush(False)

    def ask(self, path: str = "/out", headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
        assert self.url.hostname is not None
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=20)
        connection.request("GET", path, headers=BEARER if headers is None else headers)
        return connection.getresponse()


@contextmanager
def served(caplog: pytest.LogCaptureFixture, **options: str) -> Iterator[Served]:
    spec = table(**options)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        writer, _ = writer_of(spec)
    try:
        yield Served(spec, writer, caplog)
    finally:
        writer.close()


def events(response: http.client.HTTPResponse, count: int) -> list[tuple[str, str, Any]]:
    """Numbers, kinds and rows of the next events."""
    found = []
    while len(found) < count:
        lines = {}
        while line := response.readline().decode().rstrip("\n"):
            assert line != ": still here", f"nothing came behind {found}"
            name, _, value = line.partition(": ")
            lines[name] = value
        if "data" in lines:
            number = lines["id"].rpartition(".")[2]
            found.append((number, lines["event"], json.loads(lines["data"])))
    return found


def test_every_reader_gets_all_changes(caplog: pytest.LogCaptureFixture) -> None:
    with served(caplog) as out:
        readers = [out.ask(), out.ask(f"/out?token={'geheim'}", {})]
        assert readers[0].getheader("Content-Type") == "text/event-stream"
        out.write([(1, "a\nb")])
        kinds = [RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
        out.write([(1, "a"), (1, "b"), (1, "b")], kinds)
        for reader in readers:
            assert events(reader, 4) == [
                ("1", "insert", {"id": 1, "x": "a\nb"}),
                ("2", "update-before", {"id": 1, "x": "a"}),
                ("3", "update-after", {"id": 1, "x": "b"}),
                ("4", "delete", {"id": 1, "x": "b"}),
            ]
        out.writer.close()
        assert [reader.read() for reader in readers] == [b"", b""]


def test_who_comes_back_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with served(caplog, buffer__max_rows="3", start="earliest") as out:
        out.write([(number, "x") for number in range(1, 6)])
        reader = out.ask()
        run = reader.readline().decode().removeprefix("id: ").partition(".")[0]

        def again(last: str) -> http.client.HTTPResponse:
            return out.ask(headers={**BEARER, "Last-Event-ID": last})

        assert [number for number, _, _ in events(again(f"{run}.4"), 1)] == ["5"]
        # What it missed is not kept any more: the connection ends, and nothing is passed over in silence.
        assert again(f"{run}.1").read() == b""
        # Events of a job that ran before: all that is kept.
        assert [number for number, _, _ in events(again("aa.4"), 3)] == ["3", "4", "5"]


def test_readers_hear_that_the_job_lives(caplog: pytest.LogCaptureFixture) -> None:
    with served(caplog, keep_alive__interval="50 ms") as out:
        assert out.ask().readline() == b": still here\n"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("/out", {}, 401), ("/out", {"Authorization": "Bearer x"}, 401), ("/out?token=x", {}, 401), ("/", BEARER, 404)],
    ids=["no token", "wrong token", "wrong parameter", "other path"],
)
def test_others_are_refused(caplog: pytest.LogCaptureFixture, path: str, headers: dict[str, str], status: int) -> None:
    with served(caplog) as out:
        answer = out.ask(path, headers)
        assert answer.status == status
        assert b"geheim" not in answer.read()


def test_pages_of_another_origin(caplog: pytest.LogCaptureFixture) -> None:
    with served(caplog, allow_origin="https://x.org", token="", authentication="none") as out:
        assert out.ask(headers={}).getheader("Access-Control-Allow-Origin") == "https://x.org"


def test_a_query_is_followed(caplog: pytest.LogCaptureFixture) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        "CREATE TABLE totals (x STRING, n BIGINT) WITH ('connector' = 'sse', 'port' = '0', 'authentication' = 'none', "
        "'format' = 'json', 'start' = 'earliest', 'sink.buffer-flush.interval' = '10 ms')"
    )
    environment.execute_sql("CREATE TABLE letters (x STRING) WITH ('connector' = 'datagen', 'fields.x.length' = '1', "
                            "'rows-per-second' = '1000')")  # fmt: skip
    with caplog.at_level(logging.WARNING):
        job = environment.execute_sql("INSERT INTO totals SELECT x, COUNT(*) FROM letters GROUP BY x").get_job_client()
        assert job is not None
        while not any("can be followed at" in one for one in caplog.messages):
            assert not job.is_over()
    url = urlsplit(next(one for one in caplog.messages if "can be followed at" in one).rpartition(" ")[2])
    assert url.hostname is not None
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
    connection.request("GET", "/")
    found = events(connection.getresponse(), 60)
    connection.close()
    job.cancel_and_wait()
    assert found[0][:2] == ("1", "insert")
    assert {kind for _, kind, _ in found} == {"insert", "update-before", "update-after"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"token": ""}, "Readers need a secret"),
        ({"authentication": "none"}, "no meaning"),
        ({"tls__cert_file": "x.pem"}, "belong together"),
        ({"sink__parallelism": "2"}, "sink.parallelism"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], told: str) -> None:
    with pytest.raises(BindError, match=told):
        writer_of(table(**options))


def test_a_port_that_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    with served(caplog) as out, pytest.raises(ConnectorError, match=r"cannot listen at 127\.0\.0\.1:"):
        writer_of(table(port=str(out.url.port)))
