"""``on-error`` of tables of messages: bad messages are left out, counted and kept; all others come as without it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from flowsql.table import TableEnvironment
from flowsql_connectors import registry
from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
from flowsql_connectors.messages.json_arrays import elements_of
from flowsql_connectors.messages.source import MessageSourceFactory
from flowsql_connectors.options import OptionValues
from flowsql_connectors.registry import Connector
from flowsql_connectors.spi.source import ReaderContext, SourceReader, Split
from flowsql_core.clock import SystemClock
from flowsql_core.errors import BindError, ConnectorError, FlowSqlError, NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.logical import BIGINT
from tests.connectors.jdbc.databases import answer, session
from tests.connectors.mqtt.conftest import Place as MqttPlace
from tests.connectors.mqtt.conftest import amqtt_port as amqtt_port
from tests.connectors.tables import poll, rows_of, source_of, table_of

from .test_socket import sending
from .test_webhook import listening, post
from .test_webhook import table as webhook_table
from .web import Said, serving

#: Bad are number 1 (an element of it), 2 (all of it), and 5.
VALUES = [
    b'{"id": 0}', b'[{"id": 1}, {"id": "x", "n": 1.10}, {"id": 1}]', b"{", None, b'[{"id": 4}, {"id": 4}]',
    b'{"id": [5]}', b'{"id": 6}',
]  # fmt: skip
GOOD = [[0], [1], [1], [4], [4], [6]]
BAD = [(2, b'{"id": "x", "n": 1.10}'), (3, b"{"), (6, b'{"id": [5]}')]
LETTERS = (
    "row_bytes BYTES, error STRING, source STRING, source_position STRING, source_metadata MAP<STRING, STRING>, "
    "received_at TIMESTAMP_LTZ(3), table_name STRING"
)


class Feed(MessageFeed):
    """Gives ``VALUES``, so many a call."""

    together: ClassVar[int] = 3
    gathers: ClassVar[bool] = False

    def __init__(self, replays: bool) -> None:
        self.replays = replays
        self._next = 0

    def open(self, position: Any) -> None:
        self._next = position or 0

    def receive(self, wait_s: float) -> Arrived | None:
        first, self._next = self._next, min(self._next + self.together, len(VALUES))
        numbers = range(first, self._next)
        positions = [number + 1 for number in numbers] if self.replays else None
        values = [VALUES[number] for number in numbers]
        return Arrived(values, {"number": list(numbers)}, positions, ends=self._next == len(VALUES))

    def place(self, number: int) -> str:
        return f"message {number}"

    def close(self) -> None:
        pass


class Source(MessageSourceFactory):
    identifier = "listed"
    metadata: ClassVar[Any] = {"number": BIGINT}
    replays: ClassVar[bool] = True
    name: ClassVar[str] = "here"

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        return Feed(self.replays)

    def bounded(self, values: OptionValues) -> bool:
        return True

    def origin(self, values: OptionValues) -> str:
        return self.name


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.register("listed", Connector(source=Source))
    for owner, name in ((Feed, "together"), (Source, "replays"), (Source, "name")):
        monkeypatch.setattr(owner, name, getattr(owner, name))


def listed_table(folder: Path | None = None, ddl: str = "id INT", **options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    kept = {"on-error": "skip"} if folder is None else lettered(folder)
    return table_of(ddl, {"connector": "listed", "format": "json", **kept, **named})


def lettered(folder: Path) -> dict[str, str]:
    return {"on-error": "dead-letter", "on-error.dead-letter.path": str(folder)}


def read(
    made: TableSpec, splits: list[Split] | None = None, rows: int = 1000, lost: list[Any] | None = None, **more: Any
) -> tuple[SourceReader, list[list[Any]]]:
    """A reader and so many rows of it, polled one by one."""
    source, schema = source_of(made, **more)
    told: list[Any] = [] if lost is None else lost
    context = ReaderContext(
        0, 1, 64, SystemClock(), {}, lambda name, by: None,
        lose=lambda name, by, where: told.append((name, by, where())),
    )  # fmt: skip
    reader = source.create_reader(context)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0] if splits is None else splits)
    reader.no_more_splits()
    found: list[list[Any]] = []
    while len(found) < rows and (polled := poll(reader, 1)) is not None:
        found += rows_of(polled.batch, schema)
    return reader, found


def letters_in(folder: Path) -> list[dict[str, Any]]:
    """In the order of their positions, if they have any."""
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return sorted(map(json.loads, lines), key=lambda letter: letter["source_position"] or "")


def known(folder: Path) -> list[tuple[int, bytes]]:
    """Positions and bytes of the letters of a folder."""
    import base64

    return [(int(one["source_position"]), base64.b64decode(one["row_bytes"])) for one in letters_in(folder)]


@pytest.mark.parametrize("together", [1, 3, 100])
def test_bad_messages_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr(Feed, "together", together)
    lost: list[Any] = []
    reader, rows = read(listed_table(), lost=lost)
    reader.close()
    assert rows == GOOD
    assert {name for name, _, _ in lost} == {"numRecordsInErrors"}
    assert sum(by for _, by, _ in lost) == 3
    assert lost[0][2] == "message 1"
    reader, told = read(listed_table(), metadata=("number",))
    reader.close()
    assert told == [[0, 0], [1, 1], [1, 1], [4, 4], [4, 4], [6, 6]]


def test_a_letter_says_what_came_and_from_where(tmp_path: Path) -> None:
    reader, rows = read(listed_table(tmp_path / "dead"))
    reader.close()
    assert rows == GOOD
    assert known(tmp_path / "dead") == BAD
    first, second, _ = letters_in(tmp_path / "dead")
    assert "at field: id" in first["error"]
    assert first["source"] == "here"
    assert first["source_metadata"] == {"number": "1"}
    assert first["table_name"] == "default_catalog.default_database.t"
    assert abs(time.time() - _seconds(first["received_at"])) < 600
    assert (second["source_position"], second["source_metadata"]) == ("3", {"number": "2"})


def _seconds(text: str) -> float:
    import datetime

    return datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%fZ").replace(tzinfo=datetime.UTC).timestamp()


def test_letters_are_there_once_over_batches_and_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = listed_table(tmp_path)
    for cut in range(len(GOOD) + 1):
        reader, rows = read(made, rows=cut)
        held = reader.snapshot()
        reader.close()
        for together in (1, 2, 100):
            monkeypatch.setattr(Feed, "together", together)
            again, rest = read(made, held)
            again.close()
            assert rows + rest == GOOD
            assert known(tmp_path) == BAD


def test_a_letter_is_there_before_what_comes_behind_it(tmp_path: Path) -> None:
    reader, rows = read(listed_table(tmp_path), rows=4)
    assert rows == GOOD[:4]
    assert known(tmp_path)[:2] == BAD[:2]
    reader.close()


def test_other_sources_and_columns_have_letters_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read(listed_table(tmp_path))[0].close()
    assert len(known(tmp_path)) == 3
    read(listed_table(tmp_path, "id INT, v INT"))[0].close()
    assert len(known(tmp_path)) == 6
    monkeypatch.setattr(Source, "name", "there")
    read(listed_table(tmp_path))[0].close()
    assert len(known(tmp_path)) == 9


def test_without_positions_a_letter_is_there_as_often_as_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Source, "replays", False)
    for times in (1, 2):
        read(listed_table(tmp_path))[0].close()
        assert len(letters_in(tmp_path)) == 3 * times
    assert letters_in(tmp_path)[0]["source_position"] is None


def test_texts_that_hold_brackets_are_no_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.connectors.messages.test_bad_messages.VALUES", [b"[1,2]", b"3"])
    reader, rows = read(listed_table(format="csv"))
    reader.close()
    assert rows == [[3]]


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        (b"[]", []),
        (b' [ 1.10 ,"],[", {"a": [1]}\n] ', [b"1.10", b'"],["', b'{"a": [1]}']),
        (b"[1,]", None),
        (b"[1 2]", None),
        (b"[1", None),
        (b"[1] 2", None),
        (b"{}", None),
        (b"", None),
        (b"[\xff]", None),
    ],
)
def test_elements_of_arrays(text: bytes, elements: list[bytes] | None) -> None:
    assert elements_of(text) == elements


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on-error": "skip", "on-error.dead-letter.path": "/x"}, "needs 'on-error' = 'dead-letter'"),
        ({"on-error": "dead-letter"}, "needs one of 'on-error.dead-letter.table' and 'on-error.dead-letter.path'"),
        ({"on-error": "sometimes"}, "for key 'on-error'"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(BindError, match=message):
        source_of(table_of("id INT", {"connector": "listed", "format": "json", **options}))


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedYetError, match=r"'s3://b/x'"):
        source_of(listed_table(on_error="dead-letter", on_error__dead_letter__path="s3://b/x"))
    (tmp_path / "file").touch()
    with pytest.raises(ConnectorError, match="Cannot write bad rows of table"):
        read(listed_table(tmp_path / "file" / "x"))


# -- servers


def letters_table(made: TableEnvironment, folder: Path, columns: str = LETTERS, more: str = "") -> None:
    options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{folder}'{more}"
    made.execute_sql(f"CREATE TABLE letters ({columns}) WITH ({options})")


def http_session(url: str, more: str = "") -> TableEnvironment:
    made = session()
    made.execute_sql(
        f"CREATE TABLE t (id INT) WITH ('connector' = 'http', 'format' = 'json', 'url' = '{url}', "
        f"'on-error' = 'dead-letter', 'on-error.dead-letter.table' = 'letters'{more})"
    )
    return made


def test_a_table_takes_letters_of_pages(tmp_path: Path) -> None:
    pages = {
        "": b'{"items": [{"id": 1}, {"id": "x"}], "next": "b"}',
        "b": b'{"items": [{"id": "y"}, {"id": 2}]}',
    }
    paging = ", 'response-path' = 'items', 'scan.pagination' = 'cursor', 'scan.cursor.path' = 'next'"
    with serving(lambda asked: Said(pages[dict(asked.parameters).get("cursor", "")])) as web:
        made = http_session(f"{web.url}/items?key=geheim", paging)
        letters_table(made, tmp_path)
        for _ in range(2):
            assert sorted(answer(made, "SELECT id FROM t")) == [(1,), (2,)]
        query = (
            "SELECT DECODE(row_bytes, 'utf-8'), source_metadata['url'], source, table_name FROM letters "
            "WHERE received_at > TO_TIMESTAMP_LTZ(1700000000000, 3)"
        )
        place = f"{web.url}/items"
        name = "default_catalog.default_database.t"
        wanted = [(f'{{"id": "{word}"}}', place, place, name) for word in "xy"]
        assert sorted(answer(made, query)) == wanted
    assert "geheim" not in "".join(file.read_text() for file in tmp_path.glob("*"))


def test_lookups_leave_nothing_out(tmp_path: Path) -> None:
    made = http_session("http://127.0.0.1:9/{id}")
    letters_table(made, tmp_path)
    made.execute_sql("CREATE TABLE g (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    with pytest.raises(FlowSqlError, match=r"'on-error' of table .* is of scans: a lookup whose answer"):
        answer(made, "SELECT t.id FROM g JOIN t FOR SYSTEM_TIME AS OF g.p ON g.k = t.id")


def test_tables_that_take_no_letters(tmp_path: Path) -> None:
    made = http_session("http://127.0.0.1:9/")
    letters_table(made, tmp_path, "v STRING")
    with pytest.raises(BindError, match="is none of a letter"):
        made.explain_sql("SELECT * FROM t")
    made.execute_sql("DROP TABLE letters")
    letters_table(made, tmp_path, LETTERS, ", 'json.timestamp-format.standard' = 'ISO-8601'")
    with pytest.raises(BindError, match="times of letters are written in the standard 'SQL'"):
        made.explain_sql("SELECT * FROM t")


def test_a_webhook_takes_what_it_refuses_else(tmp_path: Path, caplog: Any) -> None:
    with listening(webhook_table("id INT", **_named(lettered(tmp_path))), caplog) as one:
        assert post(f"{one.url}?q=geheim2", '{"id": "x"}')[0] == 202
        assert post(one.url, '[{"id": 1}, {"id": "y"}, {"id": 2}]')[0] == 202
        assert one.read(2) == [[1], [2]]
    first, second = sorted(letters_in(tmp_path), key=lambda letter: str(letter["received_at"]))
    assert (first["source"], first["source_metadata"]["remote"]) == ("/in", "127.0.0.1")
    assert set(first["source_metadata"]) == {"received-at", "remote"}
    assert second["source_position"] is None
    assert "geheim" not in "".join(file.read_text() for file in tmp_path.glob("*"))


def _named(options: dict[str, str]) -> dict[str, str]:
    return {key.replace(".", "__").replace("-", "_"): value for key, value in options.items()}


def test_lines_of_a_socket(tmp_path: Path) -> None:
    with sending([[b"1\nx\n2\n"]]) as port:
        options = {"connector": "socket", "hostname": "127.0.0.1", "port": str(port), "format": "csv"}
        reader, rows = read(table_of("id INT", {**options, **lettered(tmp_path)}), rows=2)
        reader.close()
    assert rows == [[1], [2]]
    (letter,) = letters_in(tmp_path)
    assert letter["source"] == f"127.0.0.1:{port}"
    assert letter["source_metadata"]["peer"] == f"127.0.0.1:{port}"


def test_a_letter_of_mqtt_has_the_topic_of_its_message(tmp_path: Path, amqtt_port: int) -> None:
    place = MqttPlace(amqtt_port, "3.1.1")
    options = {
        "connector": "mqtt", "url": f"mqtt://127.0.0.1:{amqtt_port}", "protocol-version": "3.1.1",
        "topic": "open/letters/#", "format": "json", **lettered(tmp_path),
    }  # fmt: skip
    source, schema = source_of(table_of("k INT", options))
    reader = source.create_reader(ReaderContext(0, 1, 64, SystemClock(), {}, lambda name, n: None))
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    try:
        end = time.monotonic() + 30
        while not list(tmp_path.glob("*.jsonl")):
            assert time.monotonic() < end
            place.publish("open/letters/a", "no number")
            place.publish("open/letters/b", '{"k": 1}')
            time.sleep(0.05)
        polled = poll(reader)
        assert polled is not None
        assert rows_of(polled.batch, schema)[0] == [1]
        letter = letters_in(tmp_path)[0]
        assert letter["source_metadata"] == {"topic": "open/letters/a", "qos": "1", "retained": "false"}
        assert letter["source"] == f"mqtt://127.0.0.1:{amqtt_port} open/letters/#"
    finally:
        reader.close()
        place.close()
