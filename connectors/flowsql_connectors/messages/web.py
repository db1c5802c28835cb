"""What connectors over HTTP share: headers, who asks, which certificates are trusted, how addresses are shown."""

from __future__ import annotations

import base64
import ssl
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, optional
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec

#: Headers of requests; the rest of the key is the header's name.
HEADERS: Final = "headers."
USER: ConnectorOption[str | None] = ConnectorOption("username", optional(str), None, "Who asks (basic authentication).")
PASSWORD: ConnectorOption[str | None] = ConnectorOption("password", optional(str), None, "The password of 'username'.")
TOKEN: ConnectorOption[str | None] = ConnectorOption("token", optional(str), None, "Sent as Authorization: Bearer.")
CA_FILE: ConnectorOption[str | None] = ConnectorOption(
    "tls.ca-file", optional(str), None, "Certificates (PEM) that servers are trusted by; by default the system's."
)
LOGIN_OPTIONS: Final = (USER, PASSWORD, TOKEN, CA_FILE)


def with_headers(options: OptionSet, table: TableSpec) -> OptionSet:
    """The options and the headers that a table names."""
    given = [key for key, _ in table.options if key.startswith(HEADERS)]
    return options.merged(OptionSet(optional=tuple(ConnectorOption(key, str, "", "A header.") for key in given)))


def headers_of(table: TableSpec, values: OptionValues) -> dict[str, str]:
    """The headers of a table's requests: who asks, and those that it names."""
    return {
        **_login(values),
        **{key.removeprefix(HEADERS): text for key, text in table.filled_options().items() if key.startswith(HEADERS)},
    }


def check_login(values: OptionValues) -> None:
    """Refuse options that do not fit together.

    Raises:
        BindError: with what would be right.
    """
    if values.has(PASSWORD) != values.has(USER):
        raise BindError("missing-option", "Either both or none of 'username' and 'password' should be provided.")
    if values.has(TOKEN) and values.has(USER):
        raise BindError("invalid-option-value", "'token' and 'username' are two ways to log in: leave one of them out.")


def tls_context(values: OptionValues) -> ssl.SSLContext | None:
    """Who is trusted; None: as the system says.

    Raises:
        BindError: the certificates cannot be read.
    """
    path = values.get(CA_FILE)
    if path is None:
        return None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise BindError("unreadable-file", f"'{CA_FILE.key}' = '{path}' cannot be read: {error}.") from error


def shown(url: str) -> str:
    """The address as messages show it: without user, parameters and what stands behind them."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _login(values: OptionValues) -> dict[str, str]:
    if (token := values.get(TOKEN)) is not None:
        return {"Authorization": f"Bearer {token}"}
    user, password = values.get(USER), values.get(PASSWORD)
    if user is None or password is None:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
