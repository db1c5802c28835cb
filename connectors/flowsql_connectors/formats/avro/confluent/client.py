"""A client of schema registries: schemas by id, ids of schemas under a subject. What it learned it keeps.

Source: Confluent's Schema Registry API reference, ``/schemas/ids`` and ``/subjects``.
"""

from __future__ import annotations

import base64
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final

import orjson

from flowsql_core.errors import ConnectorError

_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_NO_SCHEMA: Final = 404
#: Pauses before further attempts, in seconds, where the registry does not answer or is not ready.
_PAUSES_S: Final = (0.2, 0.5)
_FIRST_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Where a registry is and how it is spoken to. ``authorization``: of the header, None where nobody asks."""

    urls: tuple[str, ...]
    authorization: str | None = field(default=None, repr=False)
    trusted: str | None = None
    certificate: str | None = None
    key_password: str | None = field(default=None, repr=False)
    timeout_ms: int = 10_000


class SchemaRegistry:
    """Speaks to one registry; may be used by several threads."""

    def __init__(self, address: RegistryAddress) -> None:
        self._address = address
        self._schemas: dict[int, bytes] = {}
        self._ids: dict[tuple[str, bytes], int] = {}
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None

    def schema(self, number: int) -> bytes:
        """The JSON text of the schema with an id.

        Raises:
            ConnectorError: ``no-such-schema``; or the registry does not answer, or refuses to.
        """
        with self._lock:
            found = self._schemas.get(number)
            if found is None:
                answer = self._ask("GET", f"/schemas/ids/{number}", None)
                if answer is None:
                    raise ConnectorError(
                        "no-such-schema",
                        f"Could not find schema with id {number} in registry {self._shown}.",
                        hint="were the messages written with another registry, or is it another format?",
                    )
                if answer.get("schemaType", "AVRO") != "AVRO":
                    raise ConnectorError(
                        "no-such-schema",
                        f"Schema {number} in registry {self._shown} is {answer['schemaType']}, not AVRO.",
                    )
                found = self._schemas[number] = str(answer["schema"]).encode()
            return found

    def register(self, subject: str, schema: bytes) -> int:
        """The id of a schema under a subject; it gets one where it has none.

        Raises:
            ConnectorError: it is not compatible with what is there; or the registry does not answer, or refuses to.
        """
        with self._lock:
            found = self._ids.get((subject, schema))
            if found is None:
                path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
                answer = self._ask("POST", path, orjson.dumps({"schema": schema.decode()}))
                if answer is None:
                    raise ConnectorError(
                        "registry-refused", f"Registry {self._shown} knows no subjects: is the URL right?"
                    )
                found = self._ids[subject, schema] = int(answer["id"])
            return found

    @property
    def _shown(self) -> str:
        return ",".join(map(without_user, self._address.urls))

    def _ask(self, method: str, path: str, body: bytes | None) -> dict[str, Any] | None:
        """The answer's object; None for 404."""
        deadline = time.monotonic() + self._address.timeout_ms / 1000
        reason = "no answer"
        for pause in (*_PAUSES_S, None):
            for url in self._address.urls:
                try:
                    return self._ask_one(url, method, path, body, max(0.05, deadline - time.monotonic()))
                except urllib.error.HTTPError as error:
                    with error:
                        said = _said(error)
                        if error.code == _NO_SCHEMA:
                            return None
                    reason = f"HTTP {error.code} {said}".rstrip()
                    if error.code < _FIRST_SERVER_ERROR:
                        raise ConnectorError(
                            "registry-refused", f"Registry {self._shown} refused {method} {path}: {reason}."
                        ) from error
                except (OSError, HTTPException, ValueError) as error:
                    reason = str(getattr(error, "reason", error)) or type(error).__name__
            if pause is None or time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
        raise ConnectorError(
            "registry-unreachable",
            f"Registry {self._shown} does not answer: {reason}.",
            hint="is the URL of the format right, and can it be reached from here?",
        )

    def _ask_one(self, url: str, method: str, path: str, body: bytes | None, timeout_s: float) -> dict[str, Any]:
        request = urllib.request.Request(without_user(url).rstrip("/") + path, data=body, method=method)
        request.add_header("Accept", _TYPE)
        if body is not None:
            request.add_header("Content-Type", _TYPE)
        authorization = self._address.authorization or user_of(url)
        if authorization is not None:
            request.add_header("Authorization", authorization)
        with urllib.request.urlopen(request, timeout=timeout_s, context=self._context(url)) as answer:
            found = orjson.loads(answer.read())
        if not isinstance(found, dict):
            raise ValueError("what answers is no schema registry")
        return found

    def _context(self, url: str) -> ssl.SSLContext | None:
        if not url.startswith("https:"):
            return None
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._address.trusted)
            if self._address.certificate is not None:
                self._tls.load_cert_chain(self._address.certificate, password=self._address.key_password or "")
        return self._tls


def without_user(url: str) -> str:
    """A URL without name and password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def user_of(url: str) -> str | None:
    """The header for name and password that stand in a URL."""
    parts = urllib.parse.urlsplit(url)
    if parts.username is None:
        return None
    return basic(f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}")


def basic(user_info: str) -> str:
    """The header for ``name:password``."""
    return "Basic " + base64.b64encode(user_info.encode()).decode()


def _said(error: urllib.error.HTTPError) -> str:
    """What a registry says of a request that it refuses, in one line."""
    try:
        document = orjson.loads(error.read())
        text = str(document.get("message", "")) if isinstance(document, dict) else ""
    except (OSError, HTTPException, ValueError):
        text = ""
    return " ".join((text or str(error.reason)).split())[:300].rstrip(".")
