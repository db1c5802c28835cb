"""Requests: one pool of connections, what is sent with each request, and what is said when something is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from flowsql_connectors.http.options import CONNECT_MS, PROXY, REQUEST_MS
from flowsql_connectors.messages.client import imported
from flowsql_connectors.messages.web import headers_of, shown, tls_context
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record

#: Answers behind which another try may help.
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
#: Characters of an answer that a message shows.
_SHOWN: Final = 200


@record
class Answer:
    """What a server said. ``headers``: names in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    """Asks one server. Any number of threads.

    Args:
        connections: that may be open at a time.

    Raises:
        ConnectorError: urllib3 is not installed.
        BindError: the certificates cannot be read.
    """

    def __init__(self, table: TableSpec, values: OptionValues, connections: int = 1) -> None:
        self._urllib3 = imported("urllib3", "http", "http")
        self._headers = {"User-Agent": "FlowSQL", **headers_of(table, values)}
        self._pool = self._manager(values.get(PROXY))(
            maxsize=connections,
            block=True,
            retries=False,
            timeout=self._urllib3.Timeout(connect=values.get(CONNECT_MS) / 1000, read=values.get(REQUEST_MS) / 1000),
            ssl_context=tls_context(values),
        )

    def _manager(self, proxy: str | None) -> Callable[..., Any]:
        """What makes a pool, of connections through a proxy if there is one."""
        if proxy is None:
            made: Callable[..., Any] = self._urllib3.PoolManager
            return made
        parts = urlsplit(proxy)
        login, _, place = parts.netloc.rpartition("@")
        headers = self._urllib3.make_headers(proxy_basic_auth=unquote(login)) if login else None
        return partial(self._urllib3.ProxyManager, f"{parts.scheme}://{place}", proxy_headers=headers)

    def has_header(self, name: str) -> bool:
        """Whether the table names a header."""
        return name.lower() in {header.lower() for header in self._headers}

    def request(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The answer of a server, whatever its status.

        Raises:
            ConnectorError: there is none.
        """
        errors = self._urllib3.exceptions
        try:
            answer = self._pool.request(method, url, body=body, headers={**(headers or {}), **self._headers})
        except errors.NameResolutionError as error:
            host = urlsplit(url).hostname
            raise ConnectorError("unknown-host", f"The host '{host}' is not known.", hint="mend 'url'") from error
        except errors.LocationParseError as error:
            raise BindError("invalid-option-value", f"'{shown(url)}' is no address: {error}.") from error
        except errors.SSLError as error:
            raise ConnectorError("tls", f"{shown(url)} is not trusted: {error}.") from error
        except errors.NewConnectionError as error:
            raise _away(url, error) from error
        except errors.TimeoutError as error:
            raise ConnectorError("timeout", f"{shown(url)} did not answer in time.", retryable=True) from error
        except errors.HTTPError as error:
            raise _away(url, error) from error
        found = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status, found, answer.data)

    def checked(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """An answer of success.

        Raises:
            ConnectorError: there is another one, or none.
        """
        answer = self.request(method, url, body, headers)
        if not 200 <= answer.status < 300:
            raise refusal(method, url, answer)
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()


def _away(url: str, error: Exception) -> ConnectorError:
    cause = error.__cause__
    text = (isinstance(cause, OSError) and cause.strerror) or str(error.args[-1] if error.args else error)
    return ConnectorError("connection-failed", f"{shown(url)} cannot be asked: {text}.", retryable=True)


def refusal(method: str, url: str, answer: Answer) -> ConnectorError:
    """The sentence of an answer that is no success."""
    said = " ".join(answer.body[: 4 * _SHOWN].decode("utf-8", "replace").split())[:_SHOWN]
    code = "login-refused" if answer.status in (401, 403) else "http-status"
    hint = "'token', 'username' with 'password', or a header say who asks" if answer.status in (401, 403) else None
    text = f"{shown(url)} answered {method} with {answer.status}" + (f": {said}" if said else ".")
    return ConnectorError(code, text, hint=hint, retryable=answer.status in _PASSING)


def with_parameters(url: str, parameters: Sequence[tuple[str, Any]]) -> str:
    """The address with more parameters behind those that it has."""
    if not parameters:
        return url
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode(parameters))))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))
