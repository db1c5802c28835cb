"""Exactly once: rows of a checkpoint travel in it, and are written in one transaction when it is complete.

librdkafka cannot take up a transaction of a process that died, so nothing is written before the checkpoint is complete.
A transaction also commits, as an offset of a group of its own, which committables it holds: a commit that is repeated
after a crash reads that mark and writes only what is missing. ADR 034.
"""

from __future__ import annotations

import io
import queue
import secrets
import threading
import time
from typing import Any, Final

import confluent_kafka as ck
import orjson
import pyarrow as pa

from flowsql_connectors.kafka.client import Cluster, passes
from flowsql_connectors.kafka.encode import SCHEMA, RecordEncoder, Records
from flowsql_connectors.kafka.producer import RecordProducer
from flowsql_connectors.spi.sink import Committable, Committer, SinkWriter
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError

#: A topic that every cluster has.
_OFFSETS: Final = "__consumer_offsets"
_ID_BYTES: Final = 6
#: Bytes that a mark may have: brokers take 4096 by default.
_MARK_BYTES: Final = 4000
_SUFFIX: Final = "-committed"
#: How long a mark may take, seconds.
_MARK_S: Final = 10.0
#: How often it is looked whether brokers were lost meanwhile, seconds.
_LOOK_S: Final = 0.1
#: How long a client may take to get the transactions, seconds.
_BEGIN_S: Final = 5.0
#: How long the marks are asked for where they are known, seconds.
_KNOWN_S: Final = 5.0
#: How often a transaction is begun before the job fails.
_ATTEMPTS: Final = 3


class CollectingWriter(SinkWriter):
    """Keeps encoded rows until the barrier; one committable of one subtask then."""

    def __init__(self, encoder: RecordEncoder, partition_of: int | None) -> None:
        self.encoder = encoder
        self._partition_of = partition_of
        self._batches: list[Any] = []

    def write(self, batch: ChangelogBatch) -> None:
        """All rows of a batch."""
        self.send(self.encoder.encode(batch))

    def send(self, records: Records) -> None:
        """Records that are encoded."""
        self._batches.append(records.as_batch())

    def prepare_commit(self) -> list[Committable]:
        """The rows since the last barrier."""
        batches, self._batches = self._batches, []
        if not any(batch.num_rows for batch in batches):
            return []
        return [_packed(secrets.token_urlsafe(_ID_BYTES), self._partition_of, batches)]


class TransactionCommitter(Committer):
    """Writes the rows of a checkpoint in a transaction; read-committed readers see all of them or none.

    Args:
        prefix: name of the transactions; the group that bears the marks is named after it.
        topic: of records that name none; None: each names one.
    """

    def __init__(self, cluster: Cluster, prefix: str, topic: str | None, partitioner: str) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self._topic = topic
        #: Where the marks are; brokers take them for topics that exist.
        self._marked_topic = _OFFSETS if topic is None else topic
        self._partitioner = partitioner
        self._producer: RecordProducer | None = None
        self._group: Any = None
        #: Ids of the committables of the last transactions, the newest at the end.
        self._done: list[str] = []
        #: Whether these are all: the end of no transaction of this object is in doubt.
        self._knows = False

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """All of them that no transaction holds yet.

        Raises:
            ConnectorError: the brokers refuse, or do not answer; then it is not known whether they are written.
        """
        if self._producer is not None and self._interrupted(self._producer):
            self._close()
        # Also without rows: a job that died but goes on somewhere must not commit any more.
        producer = self._opened()
        unpacked = [_unpacked(committable) for committable in committables]
        for attempt in range(1, _ATTEMPTS + 1):
            new = [one for one in unpacked if one[0] not in self._done]
            if not new:
                break
            try:
                self._write(producer, new)
            except ck.KafkaException as error:
                # Whether the transaction was committed is seen by its mark, which a new producer reads first.
                self._close()
                found = error.args[0]
                if attempt == _ATTEMPTS or not (passes(found) or found.txn_requires_abort()):
                    raise self._cluster.failure("did not take a transaction", found) from error
                producer = self._opened()
        if end_of_input:
            self._close()

    def _opened(self) -> RecordProducer:
        """The producer; whoever else has its transactions is shut out, and what they had begun is aborted."""
        if self._producer is None:
            producer = self._begun()
            self._producer, self._group = producer, self._consumer("read_committed")
            try:
                self._done, self._knows = self._marked(), True
            except BaseException:
                # Nothing is written by a producer that does not know what is written already.
                self._close()
                raise
            # What was lost before is nothing to these clients.
            self._cluster.take_outage()
        return self._producer

    def _begun(self) -> RecordProducer:
        """A producer that has the transactions; while brokers are away one client after another is tried."""
        deadline = time.monotonic() + self._cluster.timeout_s
        while True:
            properties = {"transactional.id": self._prefix}
            producer = RecordProducer(self._cluster, self._topic, self._partitioner, 0, properties)
            try:
                producer.client.init_transactions(_BEGIN_S)
                return producer
            except ck.KafkaException as error:
                producer.close()
                self._cluster.check()
                found = error.args[0]
                if time.monotonic() > deadline or not passes(found):
                    raise self._cluster.failure("gives no transactions", found) from error

    def _interrupted(self, producer: RecordProducer) -> bool:
        """Whether a broker went away: a client that saw that may wait for ever for whom its mark is sent to."""
        producer.serve()
        return self._cluster.take_outage()

    def _consumer(self, isolation: str) -> Any:
        return self._cluster.consumer({"group.id": self._prefix + _SUFFIX, "isolation.level": isolation})

    def _marked(self) -> list[str]:
        """What the last transaction says that is written.

        A broker that is killed while a transaction is open may lose how the one before ended: it tells the mark of that
        one to nobody then, until the next one ends (Kafka 4.3). Where this object has seen that end it goes on, if no
        other mark is there meanwhile.
        """
        try:
            return self._told(self._group, _KNOWN_S if self._knows else None)
        except ConnectorError:
            if not self._knows:
                raise
            consumer = self._consumer("read_uncommitted")
            try:
                # Not what open transactions say, in spite of the name.
                older = self._told(consumer, None)
            finally:
                consumer.close()
            if older and older[-1] not in self._done:
                raise
            return self._done

    def _told(self, group: Any, timeout_s: float | None) -> list[str]:
        asked = [ck.TopicPartition(self._marked_topic, 0)]
        (told,) = self._cluster.ask(
            "what is committed", lambda s: group.committed(asked, timeout=s), group.poll, timeout_s
        )
        return list(orjson.loads(told.metadata)) if told.offset >= 0 and told.metadata else []

    def _write(self, producer: RecordProducer, new: list[tuple[str, int | None, list[Records]]]) -> None:
        client = producer.client
        ids = [one for one, _, _ in new]
        done = self._done + ids
        while len(orjson.dumps(done)) > _MARK_BYTES and len(done) > len(ids):
            done.pop(0)
        if len(orjson.dumps(done)) > _MARK_BYTES:
            raise ConnectorError(
                "kafka-transaction",
                f"{len(ids)} subtasks write in one transaction, more than its mark has room for.",
                hint="'sink.parallelism' makes them fewer",
            )
        try:
            client.begin_transaction()
            for _, subtask, parts in new:
                for records in parts:
                    producer.write(records, subtask=subtask)
            producer.flush()
        except ConnectorError:
            self._close()
            raise
        if self._interrupted(producer):
            raise _lost("brokers went away")
        self._knows = False
        self._send_mark(producer, len(done), orjson.dumps(done))
        self._cluster.ask("the end of a transaction", client.commit_transaction, client.poll)
        self._done, self._knows = done, True

    def _send_mark(self, producer: RecordProducer, offset: int, mark: bytes) -> None:
        """Add the mark to the transaction, within a time that is kept here.

        The client does not keep its own: a call whose coordinator goes away sleeps until another connection changes,
        and may sleep for ever behind the broker's return (librdkafka, issue 5456). It is left behind with its client,
        which the next one shuts out.

        Raises:
            KafkaException: it is not known whether the transaction has the mark.
        """
        told: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        left_behind = threading.Event()
        group = self._prefix + _SUFFIX

        def send() -> None:
            try:
                producer.client.send_mark(self._marked_topic, offset, mark, group, _MARK_S)
            except BaseException as error:  # raised again by who waits
                told.put(error)
            else:
                told.put(None)
            if left_behind.is_set():
                producer.close()

        threading.Thread(target=send, name="kafka-mark", daemon=True).start()
        deadline = time.monotonic() + _MARK_S
        while True:
            try:
                error = told.get(timeout=_LOOK_S)
            except queue.Empty:
                if time.monotonic() < deadline and not self._interrupted(producer):
                    continue
                # Closing a client waits for its calls.
                left_behind.set()
                self._group.close()
                self._producer = self._group = None
                raise _lost("the mark was not taken") from None
            if error is not None:
                raise error
            return

    def _close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._group.close()
            self._producer = self._group = None


def _lost(why: str) -> ck.KafkaException:
    """A transaction that is to be begun again."""
    return ck.KafkaException(ck.KafkaError(ck.KafkaError._TRANSPORT, why))


def _packed(name: str, subtask: int | None, batches: list[Any]) -> Committable:
    sink = io.BytesIO()
    head = orjson.dumps([name, subtask])
    sink.write(len(head).to_bytes(4, "big") + head)
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return Committable(sink.getvalue())


def _unpacked(committable: Committable) -> tuple[str, int | None, list[Records]]:
    data = committable.data
    stop = 4 + int.from_bytes(data[:4], "big")
    name, subtask = orjson.loads(data[4:stop])
    with pa.ipc.open_stream(memoryview(data)[stop:]) as reader:
        return name, subtask, [Records.of_batch(batch) for batch in reader if batch.num_rows]
