"""What only a real broker shows: transactions that outlive their writers, jobs and brokers that are killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql_connectors.kafka.native_producer import NativeProducer
from flowsql_connectors.kafka.producer import RecordProducer
from flowsql_core.errors import ConnectorError
from tests.connectors.kafka.broker import PARTITIONS, Broker, real_broker
from tests.connectors.kafka.test_sink import Insert, contents, transactional
from tests.restarted_job import Job
from tests.servers import SCRIPTS, Server

pytestmark = pytest.mark.servers
KILLS = 12


def test_a_commit_that_is_repeated_writes_what_is_missing(kafka_server: dict[str, str]) -> None:
    broker = real_broker(kafka_server["KAFKA"])
    topic = broker.made_topic("again")
    table = transactional(broker, topic)
    insert = Insert(table)
    assert insert.committer is not None
    prepared = []
    for number in range(3):
        insert.write([number])
        prepared += insert.writer.prepare_commit()
        insert.committer.commit(prepared[:1] if number == 0 else [], end_of_input=False)
    # The process dies, and a restored job commits what its checkpoint holds: the first one is there already.
    restored = Insert(table)
    assert restored.committer is not None
    restored.committer.commit(prepared[:2], end_of_input=False)
    restored.committer.commit(prepared, end_of_input=False)
    Insert(table).committer.commit(prepared, end_of_input=True)  # type: ignore[union-attr]
    assert [value for _, value in contents(broker, topic)] == [b'{"a":0}', b'{"a":1}', b'{"a":2}']
    # Whoever still held the transactions before is shut out.
    insert.write([9])
    with pytest.raises(ConnectorError):
        insert.committer.commit(insert.writer.prepare_commit(), end_of_input=False)
    assert len(contents(broker, topic)) == 3


@contextlib.contextmanager
def feeding(broker: Broker, topic: str) -> Iterator[list[int]]:
    """Rows are written all the time; the list holds how many there are."""
    written = [0]
    ended = threading.Event()

    def feed() -> None:
        while not ended.wait(0.05):
            for partition in range(PARTITIONS):
                rows = range(written[0], written[0] + 25)
                broker.write(topic, *({"id": id_, "k": id_ % 7} for id_ in rows), partition=partition)
                written[0] += len(rows)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield written
    finally:
        ended.set()
        thread.join()


def tables(address: str, source: str, target: str, sink: str) -> str:
    return f"""
CREATE TABLE src (id BIGINT, k INT) WITH (
  'connector' = 'kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{address}',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE dst ({sink},
  'topic' = '{target}', 'properties.bootstrap.servers' = '{address}', 'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '{target}');
"""


def values(broker: Broker, topic: str) -> list[dict[str, int]]:
    return [json.loads(message.value()) for message in broker.read(topic)]


@pytest.mark.parametrize("by_pattern", [False, True])
def test_each_row_is_there_once_although_the_job_is_killed(
    kafka_server: dict[str, str], tmp_path: Path, by_pattern: bool
) -> None:
    """Into one topic, and into that of a pattern that each row names."""
    broker = real_broker(kafka_server["KAFKA"])
    source, target = broker.made_topic("rows"), broker.made_topic("copied")
    column = ", t STRING METADATA FROM 'topic'" if by_pattern else ""
    script = tables(
        broker.address, source, target, f"id BIGINT{column}) WITH ('connector' = 'kafka', 'format' = 'json'"
    )
    if by_pattern:
        script = script.replace(f"'topic' = '{target}'", f"'topic-pattern' = '{target}|other'")
    chosen = f", '{target}'" if by_pattern else ""
    job = Job(f"{script}INSERT INTO dst SELECT id{chosen} FROM src;", tmp_path)
    draw = random.Random(5)
    with feeding(broker, source) as written:
        for _ in range(KILLS):
            job.start()
            job.wait_for_checkpoint()
            time.sleep(draw.uniform(0, 0.4))
            job.kill()
    job.start()
    job.wait_for("rows", lambda: len(values(broker, target)) >= written[0])
    job.wait_for_checkpoint()
    job.kill()
    found = Counter(row["id"] for row in values(broker, target))
    assert sorted(found) == list(range(written[0]))
    assert set(found.values()) == {1}


def test_counts_are_right_although_the_job_is_killed(kafka_server: dict[str, str], tmp_path: Path) -> None:
    broker = real_broker(kafka_server["KAFKA"])
    source, target = broker.made_topic("rows"), broker.made_topic("counts")
    sink = (
        "k INT, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', "
        "'key.format' = 'json', 'value.format' = 'json'"
    )
    job = Job(
        tables(broker.address, source, target, sink)
        + "INSERT INTO dst SELECT k, COUNT(*), SUM(id) FROM src GROUP BY k;",
        tmp_path,
    )
    draw = random.Random(6)
    with feeding(broker, source) as written:
        for _ in range(KILLS // 2):
            job.start()
            job.wait_for_checkpoint()
            time.sleep(draw.uniform(0, 0.4))
            job.kill()
    job.start()

    def newest_rows() -> dict[int, tuple[int, int]]:
        return {row["k"]: (row["n"], row["s"]) for row in values(broker, target)}

    wanted = {k: (len(range(k, written[0], 7)), sum(range(k, written[0], 7))) for k in range(7)}
    job.wait_for("counts", lambda: sum(n for n, _ in newest_rows().values()) >= written[0])
    job.wait_for_checkpoint()
    job.kill()
    assert newest_rows() == wanted
    counts = [row["n"] for row in values(broker, target) if row["k"] == 3]
    assert counts == sorted(counts), "an older count behind a newer one"


@pytest.mark.parametrize("deleted", ["source", "target"])
def test_a_topic_that_is_deleted_ends_the_job(kafka_server: dict[str, str], tmp_path: Path, deleted: str) -> None:
    broker = real_broker(kafka_server["KAFKA"])
    topics = {"source": broker.made_topic("rows"), "target": broker.made_topic("copied")}
    sink = "id BIGINT) WITH ('connector' = 'kafka', 'format' = 'json', 'properties.delivery.timeout.ms' = '5000'"
    script = tables(broker.address, topics["source"], topics["target"], sink).replace("exactly-once", "at-least-once")
    job = Job(f"SET 'restart-strategy.type' = 'none';\n{script}INSERT INTO dst SELECT id FROM src;", tmp_path)
    broker.write(topics["source"], {"id": 0})
    job.start()
    job.wait_for("rows", lambda: len(values(broker, topics["target"])) == 1)
    broker.delete_topic(topics[deleted])
    if deleted == "target":
        broker.write(topics["source"], {"id": 1})
    assert f"Topic '{topics[deleted]}' does not exist" in job.said()


@pytest.mark.parametrize("rows_are_there", [False, True], ids=["before the rows", "behind the rows"])
def test_a_broker_that_dies_before_the_mark_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_are_there: bool
) -> None:
    """The client sends the mark to a coordinator that is gone, and may sleep until something makes it connect."""
    if not SCRIPTS.exists():
        pytest.skip("needs the scripts that start servers")
    server = Server("kafka", tmp_path / "kafka", dies=True)
    back: list[threading.Timer] = []
    flush = RecordProducer.flush

    def flush_and_die(self: RecordProducer) -> None:
        if rows_are_there:
            flush(self)
        if not back:
            server.kill()
            back.append(threading.Timer(1.0, server.start))
            back[0].start()
        flush(self)

    try:
        broker = real_broker(server.env["KAFKA"])
        topic = broker.made_topic("marked")
        insert = Insert(transactional(broker, topic))
        assert insert.committer is not None
        insert.write([1])
        insert.committer.commit(insert.writer.prepare_commit(), end_of_input=False)
        monkeypatch.setattr(RecordProducer, "flush", flush_and_die)
        insert.write([2])
        insert.committer.commit(insert.writer.prepare_commit(), end_of_input=False)
        insert.write([3])
        insert.end()
        assert back, "the broker was never killed"
        assert [value for _, value in contents(broker, topic)] == [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    finally:
        for timer in back:
            timer.join()
        server.stop()


@pytest.mark.parametrize(
    ("partitioner", "more", "dies_too"),
    [
        pytest.param("fixed", {}, False, id="goes on"),
        pytest.param("fixed", {}, True, id="starts again"),
        pytest.param("round-robin", {}, False, id="in turn"),
        pytest.param("default", {}, True, id="anywhere"),
        pytest.param("default", {"key.format": "json", "key.fields": "a"}, False, id="by key"),
    ],
)
def test_a_broker_that_forgets_the_end_of_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitioner: str, more: dict[str, str], dies_too: bool
) -> None:
    """It is killed before it wrote the end that it had acknowledged (Kafka 4.3 does not make up for that)."""
    if not SCRIPTS.exists():
        pytest.skip("needs the scripts that start servers")
    server = Server("kafka", tmp_path / "kafka", dies=True)
    pid = int((tmp_path / "kafka" / "pid").read_text().split()[0])
    back: list[threading.Timer] = []
    commit = NativeProducer.commit_transaction

    class Dead(BaseException):
        pass

    def commit_and_die(self: NativeProducer, seconds: float) -> None:
        commit(self, seconds)
        if not back:
            os.kill(pid, signal.SIGKILL)
            back.append(threading.Timer(1.0, server.start))
            back[0].start()
            if dies_too:
                raise Dead

    try:
        broker = real_broker(server.env["KAFKA"])
        topic = broker.made_topic("forgotten")
        table = transactional(broker, topic, partitioner, **more)
        insert = Insert(table)
        assert insert.committer is not None
        insert.write([1])
        insert.committer.commit(insert.writer.prepare_commit(), end_of_input=False)
        monkeypatch.setattr(NativeProducer, "commit_transaction", commit_and_die)
        insert.write([2], [3])
        prepared = insert.writer.prepare_commit()
        try:
            insert.committer.commit(prepared, end_of_input=False)
        except Dead:
            insert = Insert(table)
            assert insert.committer is not None
            insert.committer.commit(prepared, end_of_input=False)
        insert.write([4])
        insert.end()
        assert back, "the broker was never killed"
        assert sorted(value for _, value in contents(broker, topic)) == [b'{"a":%d}' % a for a in (1, 2, 3, 4)]
    finally:
        for timer in back:
            timer.join()
        server.stop()


def test_a_job_outlives_its_broker(tmp_path: Path) -> None:
    if not SCRIPTS.exists():
        pytest.skip("needs the scripts that start servers")
    with tempfile.TemporaryDirectory(prefix="flowsql-") as folder:
        server = Server("kafka", Path(folder) / "kafka", dies=True)
        try:
            broker = real_broker(server.env["KAFKA"])
            source, target = broker.made_topic("rows"), broker.made_topic("copied")
            script = tables(broker.address, source, target, "id BIGINT) WITH ('connector' = 'kafka', 'format' = 'json'")
            job = Job(script + "INSERT INTO dst SELECT id FROM src;", tmp_path)
            broker.write(source, *({"id": id_} for id_ in range(100)))
            job.start()
            job.wait_for("rows", lambda: len(values(broker, target)) == 100)
            server.kill()
            time.sleep(2)
            assert server.start()["KAFKA"] == broker.address
            broker.write(source, *({"id": id_} for id_ in range(100, 200)), partition=1)
            job.wait_for("rows of the broker that returned", lambda: len(values(broker, target)) >= 200)
            job.kill()
            assert sorted(row["id"] for row in values(broker, target)) == list(range(200))
        finally:
            server.stop()
