"""Clients of Elasticsearch and OpenSearch, whose bulk requests are the same, and what is said of what goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flowsql_connectors.elasticsearch.options import (
    CONNECT_MS,
    HOSTS,
    INSECURE,
    PASSWORD,
    PATH_PREFIX,
    REQUEST_MS,
    SKIP_VERIFY,
    SOCKET_MS,
    USER,
)
from flowsql_connectors.messages.client import imported
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import ConnectorError


def connect(identifier: str, values: OptionValues) -> Any:
    """A client; it connects when it is first asked.

    Raises:
        ConnectorError: the client library is not installed.
    """
    library = imported("opensearchpy", identifier, _extra(identifier))
    urllib3 = imported("urllib3", identifier, _extra(identifier))
    # What goes wrong comes as errors; the library's own lines on standard error would be doubles.
    logging.getLogger("opensearch").addHandler(logging.NullHandler())
    connect_ms = values.get(CONNECT_MS) or values.get(REQUEST_MS) or 10_000
    user = values.get(USER)
    prefix = (values.get(PATH_PREFIX) or "").strip("/")
    return library.OpenSearch(
        hosts=[f"{host}/{prefix}" if prefix else host for host in values.get(HOSTS)],
        http_auth=None if user is None else (user, values.get(PASSWORD)),
        timeout=urllib3.Timeout(connect=connect_ms / 1000, read=(values.get(SOCKET_MS) or 30_000) / 1000),
        max_retries=max(0, len(values.get(HOSTS)) - 1),
        verify_certs=not (values.get(INSECURE) or values.get(SKIP_VERIFY)),
        ssl_show_warn=False,
        pool_maxsize=1,
    )


def _extra(identifier: str) -> str:
    return identifier.partition("-")[0]


@contextmanager
def told(identifier: str, values: OptionValues) -> Iterator[None]:
    """Errors of the client library as one sentence each.

    Raises:
        ConnectorError: instead of them.
    """
    errors = imported("opensearchpy.exceptions", identifier, _extra(identifier))
    hosts: tuple[str, ...] = values.get(HOSTS)
    where = f"{'OpenSearch' if identifier.startswith('opensearch') else 'Elasticsearch'} at {', '.join(hosts)}"
    try:
        yield
    except (errors.AuthenticationException, errors.AuthorizationException) as error:
        raise ConnectorError(
            "elasticsearch-refused",
            f"{where} refused the login: {error.status_code} {_reason(error)}.",
            hint=f"'{USER.key}' and '{PASSWORD.key}' of the WITH clause",
        ) from None
    except errors.ConnectionError as error:
        raise ConnectorError(
            "elasticsearch-unreachable", f"{where} does not answer: {_cause(error)}.", retryable=True
        ) from None
    except errors.TransportError as error:
        raise ConnectorError(
            "elasticsearch-error",
            f"{where} refused a request: {error.status_code} {_reason(error)}.",
            retryable=error.status_code in (429, 502, 503, 504),
        ) from None


def _cause(error: Any) -> str:
    text = str(error.info if isinstance(error.info, BaseException) else error.error)
    return text.splitlines()[0].rstrip(".")


def _reason(error: Any) -> str:
    info = error.info
    if isinstance(info, dict) and isinstance(info.get("error"), dict):
        return str(info["error"].get("reason") or error.error).rstrip(".")
    return str(error.error).splitlines()[0].rstrip(".") if error.error else "without a reason"
