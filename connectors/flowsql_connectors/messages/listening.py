"""Servers inside of a job: where they listen, by which certificate, and who may speak to them."""

from __future__ import annotations

import hmac
import ssl
import threading

from flowsql_connectors.messages.connections import BoundedHandler, BoundedServer
from flowsql_connectors.options import ConnectorOption, OptionValues, optional, parse_natural, parse_positive
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import TableSpec


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError("expected a path that begins with '/'")
    return text


PORT = ConnectorOption("port", parse_natural, 0, "Where to listen; 0: a free port, which is said on standard error.")
HOST = ConnectorOption("host", str, "127.0.0.1", "The address to listen at; 0.0.0.0: all of this machine.")
PATH = ConnectorOption("path", _path, "/", "The path of the table.")
TOKEN: ConnectorOption[str | None] = ConnectorOption(
    "token", optional(str), None, "The secret that the other side has."
)
CERTIFICATE: ConnectorOption[str | None] = ConnectorOption(
    "tls.cert-file", optional(str), None, "The server's certificate (PEM); with 'tls.key-file' it speaks https."
)
KEY: ConnectorOption[str | None] = ConnectorOption("tls.key-file", optional(str), None, "The certificate's key (PEM).")

MOST_CONNECTIONS = ConnectorOption(
    "connections.max",
    parse_positive,
    256,
    "How many connections may be open at once; never more than a quarter of the process's file descriptors.",
)
REQUEST_MS = ConnectorOption(
    "request.timeout", parse_duration_ms, 30_000, "How long a connection may take until its request is whole."
)


def check_secret(values: OptionValues, is_open: bool, others: str, what: str) -> None:
    """Refuse a table that anybody may use by mistake, and a secret that nobody asks for.

    Args:
        is_open: ``authentication`` is ``none``.
        others, what: who uses the table, and does what, in a word: ``Senders``, ``send``.

    Raises:
        BindError: there is no token, or one without use.
    """
    if is_open != values.has(TOKEN):
        return
    raise BindError(
        "missing-option",
        f"'{TOKEN.key}' has no meaning with 'authentication' = 'none'."
        if is_open
        else f"{others} need a secret: add '{TOKEN.key}'.",
        hint=f"'{TOKEN.key}' = '${{env:NAME}}'; 'authentication' = 'none' lets anybody {what}",
    )


def check_certificate(values: OptionValues) -> None:
    """Refuse a certificate without its key, and a key without its certificate.

    Raises:
        BindError: with what is missing.
    """
    if values.has(CERTIFICATE) != values.has(KEY):
        raise BindError("missing-option", f"'{CERTIFICATE.key}' and '{KEY.key}' belong together.")


def listen(table: TableSpec, values: OptionValues, handler: type[BoundedHandler]) -> tuple[BoundedServer, str]:
    """A server that runs in threads of its own, and its address.

    Raises:
        ConnectorError: the port is taken, or the certificate cannot be read.
    """
    host, port = values.get(HOST), values.get(PORT)
    try:
        server = BoundedServer((host, port), handler, values.get(MOST_CONNECTIONS), values.get(REQUEST_MS) / 1000)
    except OSError as error:
        text = f"Table '{table.name}' cannot listen at {host}:{port}: {error.strerror}."
        raise ConnectorError("cannot-listen", text, hint="'port' and 'host' say where") from error
    scheme = "http"
    if (certificate := values.get(CERTIFICATE)) is not None:
        try:
            trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            trusted.load_cert_chain(certificate, values.get(KEY))
        except OSError as error:
            server.server_close()
            raise ConnectorError("tls", f"The certificate '{certificate}' cannot be used: {error}.") from error
        # The handshake is the handler's, in its own thread.
        server.socket = trusted.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "https"
    threading.Thread(target=server.serve_forever, args=(0.05,), name="listening", daemon=True).start()
    return server, f"{scheme}://{host}:{server.server_address[1]}{values.get(PATH)}"


def shows_token(header: bytes, token: bytes) -> bool:
    """Return whether a header holds the token; takes as long whatever it holds."""
    return hmac.compare_digest(header.removeprefix(b"Bearer "), token)
