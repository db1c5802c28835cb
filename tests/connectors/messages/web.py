"""A web server of the standard library, for tests: what it was asked, and what it is to say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Asked:
    """A request."""

    method: str
    path: str
    parameters: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Said:
    """An answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Web:
    """A server that runs. ``answer`` may be exchanged at any time."""

    url: str
    answer: Callable[[Asked], Said]
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[Asked], Said]) -> Iterator[Web]:
    web = Web("", answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, parts.path, parse_qsl(parts.query), dict(self.headers), body)
            web.asked.append(asked)
            said = web.answer(asked)
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            if said.status != 304:
                self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
