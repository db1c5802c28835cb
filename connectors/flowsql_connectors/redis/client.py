"""Clients of a Redis server, and what is said when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from flowsql_connectors.messages.client import imported
from flowsql_connectors.options import OptionValues
from flowsql_connectors.redis.options import PASSWORD, TIMEOUT_MS, URL, USER
from flowsql_core.errors import BindError, ConnectorError


def connect(values: OptionValues) -> Any:
    """A client; it connects when it is first asked.

    Raises:
        BindError: the address is none.
        ConnectorError: the client library is not installed.
    """
    library = imported("redis", "redis", "redis")
    seconds = values.get(TIMEOUT_MS) / 1000
    given = {"username": values.get(USER), "password": values.get(PASSWORD)}
    try:
        return library.Redis.from_url(
            values.get(URL),
            socket_connect_timeout=seconds,
            socket_timeout=seconds,
            **{name: value for name, value in given.items() if value is not None},
        )
    except ValueError as error:
        raise BindError("invalid-option-value", f"'{URL.key}' is no address of a Redis server: {error}.") from None


def address(values: OptionValues) -> str:
    """Host and port of the server, or its socket, for messages."""
    parts = urlsplit(values.get(URL))
    if parts.scheme == "unix":
        return parts.path
    return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"


@contextmanager
def told(values: OptionValues) -> Iterator[None]:
    """Errors of the client library as one sentence each.

    Raises:
        ConnectorError: instead of them.
    """
    errors = imported("redis.exceptions", "redis", "redis")
    try:
        yield
    except (errors.AuthenticationError, errors.NoPermissionError) as error:
        raise ConnectorError(
            "redis-refused",
            f"The Redis server at {address(values)} refused the login: {_sentence(error)}.",
            hint=f"'{USER.key}' and '{PASSWORD.key}' of the WITH clause",
        ) from None
    except (errors.ConnectionError, errors.TimeoutError, OSError) as error:
        refused = "NOAUTH" in str(error) or "AUTH" in str(error)
        raise ConnectorError(
            "redis-unreachable",
            f"The Redis server at {address(values)} does not answer: {_sentence(error)}.",
            retryable=not refused,
        ) from None
    except errors.ResponseError as error:
        retryable = str(error).startswith(("LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"))
        raise ConnectorError(
            "redis-error", f"The Redis server at {address(values)} says: {_sentence(error)}.", retryable=retryable
        ) from None


def _sentence(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")
