"""``websocket`` against the server of the client's own package."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import batch_of, poll, reader_of, rows_of, source_of, table_of, writer_of

server = pytest.importorskip("websockets.sync.server", reason="pip install 'flowsql[websocket]'")


@contextmanager
def serving(handler: Callable[[Any], None], **more: Any) -> Iterator[str]:
    with server.serve(handler, "127.0.0.1", 0, **more) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{made.socket.getsockname()[1]}/feed"
        made.shutdown()


def table(url: str, ddl: str = "id INT", **options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return table_of(ddl, {"connector": "websocket", "url": url, "format": "json", **named})


def read(made: TableSpec, count: int, **more: Any) -> list[list[Any]]:
    source, schema = source_of(made, **more)
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    rows: list[list[Any]] = []
    try:
        while len(rows) < count:
            polled = poll(reader)
            assert polled is not None
            rows += rows_of(polled.batch, schema)
    finally:
        reader.close()
    return rows


def test_messages_of_texts_and_bytes_behind_a_subscription() -> None:
    told: list[Any] = []

    def handler(connection: Any) -> None:
        told.append((connection.request.headers["X-Who"], connection.request.headers["Authorization"]))
        told.append(connection.recv())
        connection.send('{"id": 1}')
        connection.send(b'[{"id": 2}, {"id": 3}]')
        connection.recv()

    with serving(handler) as url:
        made = table(url, subscribe__message='{"op": "sub"}', headers__X_Who="me", token="geheim")
        assert read(made, 3, metadata=("binary",)) == [[1, False], [2, True], [3, True]]
    assert told == [("me", "Bearer geheim"), '{"op": "sub"}']


def test_a_connection_that_ends_is_made_again_and_subscribes_again() -> None:
    made_connections: list[Any] = []

    def handler(connection: Any) -> None:
        made_connections.append(connection.recv())
        connection.send(json.dumps({"id": len(made_connections)}))
        if len(made_connections) == 3:
            connection.recv()

    with serving(handler) as url:
        assert read(table(url, subscribe__message="go", reconnect__initial_delay="1 ms"), 3) == [[1], [2], [3]]
    assert made_connections == ["go"] * 3


def test_a_server_that_does_not_answer_pings_is_left() -> None:
    left = threading.Event()
    connections: list[Any] = []

    def handler(connection: Any) -> None:
        connections.append(connection)
        if len(connections) == 1:
            # Frames are not read any more, as by a server that hangs.
            connection.protocol.receive_data = lambda data: None
            left.wait(20)
            return
        connection.send('{"id": 1}')
        connection.recv()

    with serving(handler) as url:
        made = table(url, ping__interval="50 ms", ping__timeout="50 ms", reconnect__initial_delay="1 ms")
        assert read(made, 1) == [[1]]
        left.set()


def refusing(status: int) -> Callable[[Any, Any], Any]:
    return lambda connection, request: connection.respond(status, "not\nyou")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "/feed refused the connection with 403: not you"),
        ({"url": "ws://nowhere.invalid/x"}, "The host of ws://nowhere.invalid/x is not known"),
        ({"url": "ws://127.0.0.1:9/x?key=geheim", "reconnect__max_attempts": "0"}, "ws://127.0.0.1:9/x takes no conn"),
    ],
)
def test_refusals(options: dict[str, str], message: str) -> None:
    with (
        serving(lambda connection: None, process_request=refusing(403)) as url,
        pytest.raises(ConnectorError, match=message),
    ):
        read(table(**{"url": url, **options}), 1)


def test_large_messages_are_refused() -> None:
    def handler(connection: Any) -> None:
        connection.send("x" * 5000)
        connection.recv()

    with serving(handler) as url, pytest.raises(ConnectorError, match="sent a message of more than 1024 bytes"):
        read(table(url, message__max_size="1 kb"), 1)


def test_options() -> None:
    with pytest.raises(BindError, match="begins with ws://"):
        source_of(table("http://x"))
    with pytest.raises(BindError, match="both or none"):
        source_of(table("ws://x", username="u"))


def test_rows_are_sent_a_message_each() -> None:
    arrived: list[Any] = []

    def handler(connection: Any) -> None:
        for message in connection:
            arrived.append(message)

    with serving(handler) as url:
        for kind in ("text", "binary"):
            made = table(url, sink__message_type=kind)
            writer, _ = writer_of(made)
            writer.write(batch_of(made, [[1], [None]]))
            writer.flush(False)
            writer.close()
        deadline = time.monotonic() + 20
        while len(arrived) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert arrived == ['{"id":1}', '{"id":null}', b'{"id":1}', b'{"id":null}']


def test_rows_that_were_not_confirmed_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql_connectors.messages.sink.sleep", lambda seconds: None)
    arrived: list[list[Any]] = []

    class FirstIgnoresPings(server.ServerConnection):  # type: ignore[misc, name-defined]
        def __init__(self, socket: Any, protocol: Any, **more: Any) -> None:
            read = protocol.recv_frame
            if not arrived:
                protocol.recv_frame = lambda frame: None if frame.opcode == 9 else read(frame)
            arrived.append([])
            super().__init__(socket, protocol, **more)

    def handler(connection: Any) -> None:
        messages = arrived[-1]
        for message in connection:
            messages.append(message)

    with serving(handler, create_connection=FirstIgnoresPings) as url:
        made = table(url, ping__timeout="500 ms")
        writer, _ = writer_of(made)
        writer.write(batch_of(made, [[1], [2]]))
        writer.flush(False)
        deadline = time.monotonic() + 20
        while len(arrived[-1]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        writer.close()
    assert len(arrived) > 1
    assert arrived[0] == arrived[-1] == ['{"id":1}', '{"id":2}']
