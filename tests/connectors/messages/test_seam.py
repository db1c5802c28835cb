"""What all sources and sinks of messages rely on: positions, acknowledgements, reconnecting, room, errors, retries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from flowsql.connectors.testing import check_source
from flowsql_connectors import registry
from flowsql_connectors.messages.backoff import Backoff
from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.messages.sink import SINK_OPTIONS, Flushing, MessageSinkFactory
from flowsql_connectors.messages.source import SOURCE_OPTIONS, MessageSourceFactory
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, parse_natural
from flowsql_connectors.registry import Connector
from flowsql_connectors.spi.sink import WriterContext
from flowsql_connectors.spi.source import ReaderContext, SourceReader, Split, TableSource
from flowsql_core.clock import SystemClock
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.types.logical import BIGINT
from tests.connectors.tables import batch_of, poll, rows_of, source_of, table_of, writer_of

MESSAGES = ConnectorOption("messages", parse_natural, 0, "How many there are; 0: they never end.")
#: Two rows in every third message, none in every fifth: NULL.
BATCH_ROWS = 64
CHECKPOINTS = {"execution.checkpointing.interval": "1 h"}


def value_of(number: int) -> bytes | None:
    if number % 5 == 4:
        return None
    row = b'{"id": %d, "v": "x%d"}' % (number, number)
    return b"[" + row + b"," + row + b"]" if number % 3 == 0 else row


class Feed(MessageFeed):
    """Counts; breaks where ``breaks`` says so."""

    replays = True
    made: ClassVar[list[Feed]] = []
    breaks: ClassVar[Callable[[int], ConnectorError | None]] = staticmethod(lambda number: None)
    refuses: ClassVar[list[ConnectorError]] = []

    def __init__(self, values: OptionValues, context: FeedContext) -> None:
        self._stop = values.get(MESSAGES)
        self.next = 0
        self.opened: list[Any] = []
        self.confirmed: list[int] = []
        self.kept_up = threading.Event()
        Feed.made.append(self)

    def open(self, position: Any) -> None:
        if Feed.refuses:
            raise Feed.refuses.pop()
        self.opened.append(position)
        self.next = position or 0

    def receive(self, wait_s: float) -> Arrived | None:
        error = Feed.breaks(self.next)
        if error is not None:
            raise error
        if self._stop and self.next >= self._stop:
            return Arrived((), ends=True)
        self.next += 1
        number = self.next - 1
        return Arrived([value_of(number)], {"number": [number]}, [self.next])

    def kept(self, count: int) -> None:
        self.confirmed.append(count)

    def keep_alive(self) -> None:
        self.kept_up.set()

    def place(self, number: int) -> str:
        return f"queue, message {number}"

    def close(self) -> None:
        pass


class Source(MessageSourceFactory):
    identifier = "counted"
    own_options = OptionSet(optional=(MESSAGES,)).merged(SINK_OPTIONS)
    metadata: ClassVar[Any] = {"number": BIGINT}

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        return Feed(values, context)

    def bounded(self, values: OptionValues) -> bool:
        return values.get(MESSAGES) > 0


class Outlet(MessageOutlet):
    made: ClassVar[list[Outlet]] = []
    refuses: ClassVar[list[ConnectorError]] = []

    def __init__(self) -> None:
        self.sent: list[list[bytes | None]] = []
        Outlet.made.append(self)

    def open(self) -> None:
        pass

    def send(self, rows: Outgoing) -> None:
        if Outlet.refuses:
            raise Outlet.refuses.pop()
        self.sent.append(rows.values.to_pylist())

    def close(self) -> None:
        pass


class Sink(MessageSinkFactory):
    identifier = "counted"
    own_options = OptionSet(optional=(MESSAGES,)).merged(SOURCE_OPTIONS)

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        return Outlet()


@pytest.fixture(autouse=True)
def counted() -> Iterator[None]:
    registry.register("counted", Connector(source=Source, sink=Sink))
    yield
    Feed.made, Feed.refuses, Outlet.made, Outlet.refuses = [], [], [], []
    Feed.breaks = staticmethod(lambda number: None)


def table(ddl: str = "id INT, v STRING", **options: str) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return table_of(ddl, {"connector": "counted", "format": "json", "reconnect.initial-delay": "1 ms", **named})


def small_reader(source: TableSource, configuration: Mapping[str, str] | None = None) -> SourceReader:
    """It aims at batches of a few rows."""
    return source.create_reader(
        ReaderContext(0, 1, BATCH_ROWS, SystemClock(), configuration or {}, lambda name, n: None)
    )


def expected(messages: int) -> list[list[Any]]:
    return [
        [number, f"x{number}"]
        for number in range(messages)
        if number % 5 != 4
        for _ in range(2 if number % 3 == 0 else 1)
    ]


def lost(text: str = "The queue is gone.") -> ConnectorError:
    return ConnectorError("lost", text, retryable=True)


def read(source_table: TableSpec, count: int, configuration: dict[str, str] | None = None, **more: Any) -> Any:
    """Reader and so many rows, polled a few at a time."""
    source, schema = source_of(source_table, configuration=configuration, **more)
    reader = small_reader(source, configuration)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    reader.no_more_splits()
    rows: list[Any] = []
    while len(rows) < count and (polled := poll(reader, min(7, count - len(rows)))) is not None:
        rows += rows_of(polled.batch, schema)
    return reader, rows


def test_positions_are_exact_to_the_row() -> None:
    check_source(Source, {"id": "INT", "v": "STRING"}, {"messages": "50", "format": "json"}, expected(50))


def test_metadata_stands_beside_the_rows_of_its_message() -> None:
    reader, rows = read(table(messages="7"), 100, metadata=("number",))
    reader.close()
    assert rows == [[id_, v, id_] for id_, v in expected(7)]


def test_a_lost_connection_goes_on_behind_what_was_received() -> None:
    broken: set[int] = set()

    def breaks(number: int) -> ConnectorError | None:
        if number % 4 == 3 and number not in broken:
            broken.add(number)
            return lost()
        return None

    Feed.breaks = staticmethod(breaks)
    Feed.refuses = [lost(), lost()]
    reader, rows = read(table(messages="30"), 1000)
    reader.close()
    assert rows == expected(30)
    assert Feed.made[0].opened == [None, 3, 7, 11, 15, 19, 23, 27]


def test_what_is_not_retryable_ends_the_job_behind_the_rows_before() -> None:
    Feed.breaks = staticmethod(lambda number: ConnectorError("login", "Refused.") if number == 3 else None)
    reader, rows = read(table(), 4)
    assert rows == expected(3)
    with pytest.raises(ConnectorError, match="Refused"):
        poll(reader)
    reader.close()


def test_tries_may_have_an_end() -> None:
    Feed.refuses = [lost(f"Gone {number}.") for number in range(5)]
    source, _ = source_of(table(reconnect__max_attempts="2"))
    reader = small_reader(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    with pytest.raises(ConnectorError, match="Gone 2"):
        poll(reader)
    reader.close()


def test_a_bad_message_is_named() -> None:
    reader, _ = read(table("id INT, v INT"), 0)
    with pytest.raises(ExecutionError, match="in queue, message 0"):
        poll(reader)
    reader.close()


def test_messages_are_acknowledged_behind_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Feed, "replays", False)
    reader, rows = read(table(), 5, CHECKPOINTS)
    assert rows == expected(4)[:5]
    assert Feed.made[0].confirmed == []
    held = reader.snapshot()
    # Message 3 has two rows, of which one was polled.
    reader.positions_durable(held)
    deadline = time.monotonic() + 20
    while not Feed.made[0].confirmed:
        assert time.monotonic() < deadline
        # The feed may wait for room.
        reader.poll(65536)
        time.sleep(0.01)
    assert Feed.made[0].confirmed == [3]
    reader.close()
    # A position of another feed confirms nothing, and what does not replay is opened without one.
    again, _ = read(table(), 0)
    again.positions_durable(held)
    poll(again)
    again.close()
    assert Feed.made[1].confirmed == []
    assert Feed.made[1].opened == [None]


def test_what_nobody_polls_is_not_received() -> None:
    reader, _ = read(table(), 0)
    assert Feed.made[0].kept_up.wait(20)
    received = Feed.made[0].next
    assert received < 4 * BATCH_ROWS
    poll(reader)
    reader.close()


def test_splits_of_other_parallelism_go_on() -> None:
    reader, _ = read(table(messages="9"), 3)
    kept = reader.snapshot()
    reader.close()
    assert [split.id for split in kept] == ["all"]
    source, _ = source_of(table(messages="9"))
    dealt = source.create_enumerator().redistribute(kept, 3)
    assert dealt == [[Split("all", kept[0].data)], [], []]


def test_rows_are_sent_together_and_at_checkpoints() -> None:
    written = table(sink__buffer_flush__max_rows="3", sink__buffer_flush__interval="0")
    writer, _ = writer_of(written)
    (outlet,) = Outlet.made
    writer.write(batch_of(written, [[1, "a"], [2, None]]))
    assert outlet.sent == []
    writer.write(batch_of(written, [[3, "c"]]))
    assert outlet.sent == [[b'{"id":1,"v":"a"}', b'{"id":2,"v":null}', b'{"id":3,"v":"c"}']]
    writer.write(batch_of(written, [[4, "d"]]))
    writer.flush(False)
    assert outlet.sent[1] == [b'{"id":4,"v":"d"}']
    writer.close()


def test_rows_go_by_their_bytes_and_need_not_go_with_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Flushing(0, 0, Backoff(attempts=0), bytes=1000, at_checkpoints=False)
    monkeypatch.setattr(Sink, "flushing", lambda self, values: limits)
    written = table()
    writer, _ = writer_of(written)
    (outlet,) = Outlet.made
    writer.write(batch_of(written, [[1, "a"]]))
    writer.flush(False)
    assert outlet.sent == []
    writer.write(batch_of(written, [[2, "x" * 1000]]))
    assert [len(sent) for sent in outlet.sent] == [2]
    writer.write(batch_of(written, [[3, "c"]]))
    writer.flush(True)
    assert [len(sent) for sent in outlet.sent] == [2, 1]
    writer.close()


def test_what_was_not_taken_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql_connectors.messages.sink.sleep", lambda seconds: None)
    written = table(sink__max_retries="2")
    writer, _ = writer_of(written)
    (outlet,) = Outlet.made
    Outlet.refuses = [lost(), lost()]
    writer.write(batch_of(written, [[1, "a"]]))
    writer.flush(False)
    assert outlet.sent == [[b'{"id":1,"v":"a"}']]
    Outlet.refuses = [lost("A."), lost("B."), lost("C.")]
    writer.write(batch_of(written, [[1, "a"]]))
    with pytest.raises(ConnectorError, match="A"):
        writer.flush(False)
    Outlet.refuses = [lost(), ConnectorError("login", "Refused.")]
    writer.write(batch_of(written, [[1, "a"]]))
    with pytest.raises(ConnectorError, match="Refused"):
        writer.flush(False)
    assert len(outlet.sent) == 1
    writer.close()


def test_options_and_metadata_are_checked() -> None:
    with pytest.raises(BindError, match="Unsupported options"):
        source_of(table(sink__retries="2"))
    with pytest.raises(BindError, match="required options are missing"):
        source_of(table_of("id INT", {"connector": "counted"}))
    with pytest.raises(KeyError):
        source_of(table(), metadata=("offset",))


def test_joined_rows_keep_their_kinds() -> None:
    import numpy as np

    one = Outgoing(1, pa.array([b"a"]), (pa.array([1]),), None, {"k": pa.array(["x"])})
    two = Outgoing(
        2,
        pa.array([b"b", b"c"]),
        (pa.array([2, 3]),),
        np.array([3, 0], np.uint8),
        {"k": pa.array([None, "z"], pa.string())},
    )
    both = Outgoing.joined([one, two])
    assert both.values.to_pylist() == [b"a", b"b", b"c"]
    assert both.kinds is not None
    assert both.kinds.tolist() == [0, 3, 0]
    assert both.slice(1, 3).metadata["k"].to_pylist() == [None, "z"]
    assert both.slice(1, 3).columns[0].to_pylist() == [2, 3]
