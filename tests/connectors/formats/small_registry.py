"""A schema registry over HTTP, as far as clients of formats ask: of the standard library alone."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SmallRegistry(ThreadingHTTPServer):
    """Keeps schemas in memory.

    ``asked``: every request. ``failures``: status codes that the next requests get. ``user``: who may ask, if not all.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.schemas: list[str] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.failures: list[int] = []
        self.authorization: str | None = None
        self.refuses: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def allow(self, user_info: str) -> None:
        self.authorization = "Basic " + base64.b64encode(user_info.encode()).decode()

    def put(self, schema: Any) -> int:
        """The id of a schema, counted from 1."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        if text not in self.schemas:
            self.schemas.append(text)
        return self.schemas.index(text) + 1


class _Handler(BaseHTTPRequestHandler):
    server: SmallRegistry

    def do_GET(self) -> None:
        number = int(self.path.rpartition("/")[2]) if self.path.startswith("/schemas/ids/") else 0
        if not 0 < number <= len(self.server.schemas):
            self._answer(404, {"error_code": 40403, "message": f"Schema {number} not found"})
        else:
            self._answer(200, {"schema": self.server.schemas[number - 1]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.refuses is not None:
            self._answer(409, {"error_code": 409, "message": self.server.refuses})
            return
        number = self.server.put(body["schema"])
        self.server.subjects.setdefault(self.path.split("/")[2], []).append(number)
        self._answer(200, {"id": number})

    def _answer(self, status: int, document: Any) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.authorization not in (None, self.headers["Authorization"]):
            status, document = 401, {"message": "who are you?"}
        if self.server.failures:
            status, document = self.server.failures.pop(0), {"message": "not now"}
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is told."""


@contextmanager
def small_registry() -> Iterator[SmallRegistry]:
    """A registry that runs."""
    server = SmallRegistry()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
