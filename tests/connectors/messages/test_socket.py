"""``socket``: what Flink's documentation shows, over sockets of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import poll, reader_of, rows_of, source_of, table_of


@contextmanager
def sending(connections: Sequence[Sequence[bytes]]) -> Iterator[int]:
    """A server that sends some pieces over each connection and ends it; the last one stays."""
    listening = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        for number, pieces in enumerate(connections):
            connection, _ = listening.accept()
            with connection:
                for piece in pieces:
                    connection.sendall(piece)
                if number == len(connections) - 1:
                    done.wait(20)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    done.set()
    listening.close()


def table(port: int, ddl: str, format_: str = "json", **options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    first = {"connector": "socket", "hostname": "127.0.0.1", "port": str(port), "format": format_}
    return table_of(ddl, {**first, "reconnect.initial-delay": "1 ms", **named})


def read(made: TableSpec, count: int, until: Callable[[], bool] = lambda: False, **more: Any) -> list[Any]:
    source, schema = source_of(made, **more)
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    rows: list[Any] = []
    try:
        while len(rows) < count:
            polled = poll(reader)
            assert polled is not None
            kinds = polled.batch.kinds
            found = rows_of(polled.batch, schema)
            rows += found if kinds is None else [[int(k), *row] for k, row in zip(kinds, found, strict=True)]
    finally:
        reader.close()
    return rows


def test_messages_end_with_a_byte_wherever_pieces_end() -> None:
    with sending([[b"1,a\n2", b",b", b"\n3,c\n"]]) as port:
        assert read(table(port, "id INT, x STRING", "csv"), 3) == [[1, "a"], [2, "b"], [3, "c"]]
    with sending([[b'{"id": 1}\x00{"id":\n2}\x00']]) as port:
        assert read(table(port, "id INT", byte_delimiter="0"), 2) == [[1], [2]]
    with sending([[b"a\xffb\xff"]]) as port:
        assert read(table(port, "x STRING", "raw", byte_delimiter="-1"), 2) == [["a"], ["b"]]


def test_a_connection_that_ends_is_made_again_and_its_last_piece_is_no_message() -> None:
    with sending([[b"1\n9"], [b"2\n"], [b"", b"3\n"]]) as port:
        assert read(table(port, "id INT", "csv"), 3) == [[1], [2], [3]]


def test_changes_keep_their_kinds() -> None:
    events = [
        b'{"before": null, "after": {"id": 1, "n": 5}, "op": "c"}\n',
        b'{"before": {"id": 1, "n": 5}, "after": {"id": 1, "n": 6}, "op": "u"}\n',
        b'{"before": {"id": 1, "n": 6}, "after": null, "op": "d"}\n',
    ]
    with sending([events]) as port:
        made = table(port, "id INT, n INT", "debezium-json")
        assert read(made, 4) == [[0, 1, 5], [1, 1, 5], [2, 1, 6], [3, 1, 6]]


def test_the_example_of_the_documentation() -> None:
    with sending([[b'INSERT|Alice|12\nUPDATE_BEFORE|Alice|12\nUPDATE_AFTER|"A|18\nDELETE|Bob|', b"5\n"]]) as port:
        made = table(port, "name STRING, score INT", "changelog-csv")
        assert read(made, 4) == [[0, "Alice", 12], [1, "Alice", 12], [2, '"A', 18], [3, "Bob", 5]]
    with sending([[b"INSERT,Alice,12\n"]]) as port:
        made = table(port, "name STRING, score INT", "changelog-csv", changelog_csv__column_delimiter=",")
        assert read(made, 1, select=("score",)) == [[0, 12]]
    with sending([[b"INSERT|Alice|12\nMERGE|Bob|5\n"]]) as port:
        made = table(port, "name STRING, score INT", "changelog-csv")
        with pytest.raises(ExecutionError, match="begins with none of INSERT, UPDATE_BEFORE"):
            read(made, 2)


def test_metadata() -> None:
    with sending([[b"1\n"]]) as port:
        assert read(table(port, "id INT", "csv"), 1, metadata=("peer",)) == [[1, f"127.0.0.1:{port}"]]


def test_failures_are_sentences() -> None:
    with sending([[b"1\nx\n"]]) as port, pytest.raises(ExecutionError, match=f"socket 127.0.0.1:{port}, message 2"):
        read(table(port, "id INT", "csv"), 2)
    with sending([[b"1\nx\n3\n"]]) as port:
        assert read(table(port, "id INT", "csv", csv__ignore_parse_errors="true"), 3) == [[1], [None], [3]]
    with pytest.raises(ConnectorError, match=r"The host 'nowhere\.invalid' is not known"):
        read(table(1, "id INT", hostname="nowhere.invalid"), 1)
    with pytest.raises(ConnectorError, match=r"socket 127.0.0.1:9 takes no connection: Connection refused"):
        read(table(9, "id INT", reconnect__max_attempts="1"), 1)


@pytest.mark.parametrize(("key", "value"), [("port", "0"), ("port", "70000"), ("byte-delimiter", "300")])
def test_options(key: str, value: str) -> None:
    given = {"connector": "socket", "hostname": "h", "port": "1", "format": "json", key: value}
    with pytest.raises(BindError, match=f"for key '{key}'"):
        source_of(table_of("id INT", given))


def test_a_query_says_what_is_lost() -> None:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.execute_sql(
        "CREATE TABLE s (id INT) WITH ('connector' = 'socket', 'hostname' = 'h', 'port' = '1', 'format' = 'csv')"
    )
    assert "fields=[id]) reads at most once: a socket gives nothing twice" in made.explain_sql("SELECT * FROM s")
