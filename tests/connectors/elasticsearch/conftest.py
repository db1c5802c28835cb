"""Servers of these tests: an own one of bulk requests in every run, OpenSearch where servers are asked for."""

from __future__ import annotations

import base64
import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.local_servers import LocalServer

#: For ``parametrize``, with ``indirect``.
KINDS = ("own", pytest.param("real", marks=pytest.mark.servers))


class BulkServer(ThreadingHTTPServer):
    """What Elasticsearch answers to bulk requests, as its manual says; and the searches of these tests.

    ``answers``: what the next requests get instead: statuses of requests, or of their first documents.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.indexes: dict[str, dict[str, Any]] = {}
        self.requests: list[list[Any]] = []
        self.request_statuses: list[int] = []
        self.document_statuses: list[int] = []
        self.login: str | None = None
        self.prefix = ""
        self.ids = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BulkServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody looks."""

    def do_GET(self) -> None:
        index = self.path.strip("/").partition("/")[0]
        found = self.server.indexes.get(index, {})
        self._answer(200, {"hits": {"hits": [{"_id": name, "_source": document} for name, document in found.items()]}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        server = self.server
        given = base64.b64encode((server.login or "").encode()).decode()
        if server.login is not None and self.headers.get("authorization") != f"Basic {given}":
            self._answer(401, {"error": {"type": "security_exception", "reason": "unable to authenticate user"}})
        elif server.request_statuses:
            status = server.request_statuses.pop(0)
            self._answer(status, {"error": {"type": "busy", "reason": "too busy"}})
        elif self.path.partition("?")[0] != f"{server.prefix}/_bulk":
            self._answer(404, {"error": {"type": "no_handler", "reason": f"no handler for {self.path}"}})
        else:
            assert self.headers["content-type"] == "application/x-ndjson"
            assert body.endswith(b"\n")
            lines = [json.loads(line) for line in body.splitlines()]
            server.requests.append(list(lines))
            items = list(self._done(lines))
            wrong = any("error" in part for item in items for part in item.values())
            self._answer(200, {"took": 1, "errors": wrong, "items": items})

    def _done(self, lines: list[Any]) -> Iterator[dict[str, Any]]:
        server = self.server
        while lines:
            (action, target), *_ = lines.pop(0).items()
            document = None if action == "delete" else lines.pop(0)
            if server.document_statuses and (status := server.document_statuses.pop(0)) != 200:
                error = {"type": "mapper_parsing_exception", "reason": "failed to parse field [v]"}
                yield {action: {**target, "status": status, "error": error}}
                continue
            index = server.indexes.setdefault(target["_index"], {})
            match action:
                case "index":
                    server.ids += 1
                    index[f"auto-{server.ids}"] = document
                case "update":
                    assert document["doc_as_upsert"] is True
                    index.setdefault(target["_id"], {}).update(document["doc"])
                case "delete":
                    index.pop(target["_id"], None)
            yield {action: {**target, "status": 200}}

    def _answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Place:
    """A server as tests see it. ``server``: the own one."""

    def __init__(self, port: int, server: BulkServer | None = None) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._server = server

    @property
    def server(self) -> BulkServer:
        assert self._server is not None
        return self._server

    def documents(self, index: str) -> dict[str, Any]:
        """All documents of an index by id."""
        if self._server is None:
            urllib.request.urlopen(urllib.request.Request(f"{self.url}/{index}/_refresh", method="POST"), timeout=30)
        with urllib.request.urlopen(f"{self.url}/{index}/_search?size=1000", timeout=30) as answer:
            return {hit["_id"]: hit["_source"] for hit in json.load(answer)["hits"]["hits"]}


@pytest.fixture
def own() -> Iterator[Place]:
    """The own server, to be told what goes wrong."""
    server = BulkServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield Place(server.server_address[1], server)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    """A server."""
    if request.param == "own":
        made: Place = request.getfixturevalue("own")
        return made
    real: LocalServer = request.getfixturevalue("opensearch_server")
    return Place(real.port)
