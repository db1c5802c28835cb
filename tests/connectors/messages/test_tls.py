"""https and wss: a webhook with a certificate, and clients that trust it or do not."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowsql_core.errors import BindError, ConnectorError
from tests.connectors.tables import batch_of, poll, reader_of, rows_of, source_of, table_of, writer_of

from .test_connections import strangers
from .test_webhook import BEARER, listening, table

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return made, key


def test_rows_go_from_http_to_webhook(certificate: tuple[Path, Path], caplog: Any) -> None:
    trusted, key = certificate
    with listening(table("id INT", tls__cert_file=str(trusted), tls__key_file=str(key)), caplog) as one:
        assert one.url.startswith("https://")
        sink = {"connector": "http", "url": one.url, "format": "json", "token": "geheim", "sink.max-retries": "0"}
        made = table_of("id INT", {**sink, "tls.ca-file": str(trusted)})
        writer, _ = writer_of(made)
        writer.write(batch_of(made, [[1], [2]]))
        writer.flush(False)
        writer.close()
        assert one.read(2) == [[1], [2]]
        stranger, _ = writer_of(table_of("id INT", sink))
        stranger.write(batch_of(made, [[3]]))
        with pytest.raises(ConnectorError, match=r"https://127.0.0.1:\d+/in is not trusted: .*self.signed certificate"):
            stranger.flush(False)
        stranger.close()


def test_files_that_are_no_certificates(tmp_path: Path, certificate: tuple[Path, Path], caplog: Any) -> None:
    made = table_of("id INT", {"connector": "http", "url": "https://x", "format": "json", "tls.ca-file": "/nowhere"})
    with pytest.raises(BindError, match=r"'tls.ca-file' = '/nowhere' cannot be read"):
        writer_of(made)
    source, _ = source_of(table(tls__cert_file=str(certificate[0]), tls__key_file=str(certificate[0])))
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    with pytest.raises(ConnectorError, match=r"The certificate '.*cert.pem' cannot be used"):
        poll(reader)
    reader.close()


def test_websockets(certificate: tuple[Path, Path]) -> None:
    server = pytest.importorskip("websockets.sync.server", reason="pip install 'flowsql[websocket]'")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def handler(connection: Any) -> None:
        connection.send('{"id": 1}')
        list(connection)

    with server.serve(handler, "127.0.0.1", 0, ssl=context) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        url = f"wss://127.0.0.1:{made.socket.getsockname()[1]}"
        options = {"connector": "websocket", "url": url, "format": "json"}
        for trust in ({"tls.ca-file": str(certificate[0])}, {}):
            source, schema = source_of(table_of("id INT", {**options, **trust}))
            reader = reader_of(source)
            reader.add_splits(source.create_enumerator().initial_splits(1)[0])
            if trust:
                polled = poll(reader)
                assert polled is not None
                assert rows_of(polled.batch, schema) == [[1]]
            else:
                with pytest.raises(
                    ConnectorError, match=r"wss://127.0.0.1:\d+ is not trusted: self.signed certificate"
                ):
                    poll(reader)
            reader.close()
        made.shutdown()


def test_tls_handshakes_that_never_come(caplog: Any, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    made = table(
        "id INT", tls__cert_file=str(cert), tls__key_file=str(key), connections__max="4", request__timeout="1 s"
    )
    with listening(made, caplog) as one, strangers(one, 30):
        trusting = ssl.create_default_context(cafile=str(cert))
        url = urlsplit(one.url)
        connection = http.client.HTTPSConnection(str(url.hostname), url.port, timeout=20, context=trusting)
        connection.request("POST", "/in", b'{"id": 1}', BEARER)
        assert connection.getresponse().status == 202
        connection.close()
        assert one.read(1) == [[1]]
