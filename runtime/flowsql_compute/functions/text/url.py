"""PARSE_URL: the parts of a URL as Java's ``java.net.URL`` reads them."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.columns import spread
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.text.columns import KERNEL_ROWS, LiteralRun, extract_run, url_parts, with_left
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_core.record import record

#: Protocols that a Java runtime knows by itself.
_PROTOCOLS = frozenset({"http", "https", "ftp", "file", "jar", "mailto", "jmod", "jrt"})
_LEADING = "".join(map(chr, range(33)))


@record
class Url:
    """The parts; None is absent, as Java's getters give it."""

    protocol: str
    host: str
    path: str
    query: str | None
    ref: str | None
    authority: str | None
    user_info: str | None

    def part(self, name: str) -> str | None:
        """A part by the name that PARSE_URL takes; None for other names."""
        match name:
            case "HOST":
                return self.host
            case "PATH":
                return self.path
            case "QUERY":
                return self.query
            case "REF":
                return self.ref
            case "PROTOCOL":
                return self.protocol
            case "FILE":
                return self.path if self.query is None else f"{self.path}?{self.query}"
            case "AUTHORITY":
                return self.authority
            case "USERINFO":
                return self.user_info
        return None


@scalar("PARSE_URL(STRING, STRING, [STRING]) -> STRING", nulls=NULLABLE, costly=True, spark=None)
def parse_url(call: Invocation, url: Any, part: Any, key: Any = None) -> Any:
    """A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE, USERINFO; or one QUERY parameter by key."""
    column = spread(url, call.n) if isinstance(url, pa.Scalar) else url
    if len(column) >= KERNEL_ROWS and _is_text(part) and (key is None or _is_text(key)):
        return _plain_parts(column, part.as_py(), None if key is None else key.as_py())
    if key is None:
        return map_rows([column, part], _part_of, pa.string())
    return map_rows([column, part, key], _parameter_of, pa.string())


def _is_text(datum: Any) -> bool:
    return isinstance(datum, pa.Scalar) and bool(datum.is_valid)


_PART_NUMBERS = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO")


def _plain_parts(column: pa.Array, part: str, key: str | None) -> pa.Array:
    """A part of each URL of a long column: plain ones by a kernel, others one distinct text after another."""
    if part not in _PART_NUMBERS or (key is not None and part != "QUERY"):
        return pa.nulls(len(column), pa.string())
    made, left = url_parts(column, _PART_NUMBERS.index(part))

    def slow(text: str) -> str | None:
        return _part_of(text, part) if key is None else _parameter_of(text, part, key)

    if key is not None:
        made = extract_run(made, LiteralRun(f"{key}=", frozenset(b"&"), True, frozenset(b"&"), 0, 2))
    return with_left(column, made, left, lambda rows: map_distinct(rows, slow, pa.string()))


def _part_of(text: str, part: str) -> str | None:
    url = read_url(text)
    return None if url is None else url.part(part)


def _parameter_of(text: str, part: str, key: str) -> str | None:
    query = _part_of(text, part) if part == "QUERY" else None
    if query is None:
        return None
    found = re.search(f"(?:&|^){re.escape(key)}=([^&]*)", query)
    return None if found is None else found[1]


def read_url(text: str) -> Url | None:
    """The parts of a URL, None where Java finds it malformed.

    >>> read_url("http://u@h:80/p?q#r").part("AUTHORITY")
    'u@h:80'
    """
    text = text.strip(_LEADING)
    if text[:4].lower() == "url:":
        text = text[4:]
    protocol, colon, rest = text.partition(":")
    protocol = protocol.lower()
    if not colon or protocol not in _PROTOCOLS:
        return None
    rest, hash_mark, fragment = rest.partition("#")
    ref = fragment if hash_mark else None
    if protocol == "mailto":
        return Url(protocol, "", rest, None, ref, None, None) if rest.strip() else None
    if protocol == "jar":
        inner, mark, _ = rest.rpartition("!/")
        return Url(protocol, "", rest, None, ref, None, None) if mark and read_url(inner) is not None else None
    rest, question, after = rest.partition("?")
    query = after if question else None
    if not rest.startswith("//") or rest.startswith("////"):
        return Url(protocol, "", rest, query, ref, None, None)
    authority, slash, path = rest[2:].partition("/")
    found = _host_of(authority)
    if found is None:
        return None
    host, user = found
    return Url(protocol, host, slash + path, query, ref, authority, user)


def _host_of(authority: str) -> tuple[str, str | None] | None:
    """Host and user information; None when malformed."""
    user: str | None = None
    host = authority
    if authority.count("@") > 1:
        return "", None
    if "@" in authority:
        user, _, host = authority.partition("@")
    port = ""
    if host.startswith("["):
        end = host.find("]")
        if end <= 2 or not _is_ipv6(host[1:end]) or host[end + 1 : end + 2] not in ("", ":"):
            return None
        host, port = host[: end + 1], host[end + 2 :]
    else:
        host, _, port = host.partition(":")
    if port and (re.fullmatch(r"[+-]?\d+", port) is None or not -1 <= int(port) < 2**31):
        return None
    return host, user


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
