"""Exactly once: rows of a checkpoint travel in it, and are written in one transaction when it is complete.

librdkafka cannot take up a transaction of a process that died, so nothing is written before the checkpoint is complete.
A transaction also commits, as an offset of a group of its own, which committables it holds: a commit that is repeated
after a crash reads that mark and writes only what is missing. ADR 034.
"""

from __future__ import annotations

import io
import logging
import queue
import secrets
import threading
import time
import zlib
from collections.abc import Sequence
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

logger = logging.getLogger(__name__)

#: The id of a committable, whose rows it holds (None: anybody's), and they.
_Unpacked = tuple[str, int | None, list[Records]]

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
#: How long brokers may take to tell a mark that a transaction has, seconds.
_SETTLED_S: Final = 5.0
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

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """All of them that no transaction holds yet.

        Raises:
            ConnectorError: the brokers refuse, or do not answer; then it is not known whether they are written.
        """
        unpacked = [_unpacked(committable) for committable in committables]
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._commit(unpacked)
                break
            except ck.KafkaException as error:
                # Whether the transaction was committed is seen by its mark, which a new producer reads first.
                self._close()
                found = error.args[0]
                if attempt == _ATTEMPTS or not (passes(found) or found.txn_requires_abort()):
                    raise self._cluster.failure("did not take a transaction", found) from error
        if end_of_input:
            self._close()

    def _commit(self, unpacked: Sequence[_Unpacked]) -> None:
        if self._producer is not None and self._interrupted(self._producer):
            self._close()
        # Also without rows: a job that died but goes on somewhere must not commit any more.
        producer = self._opened(unpacked)
        new = [one for one in unpacked if one[0] not in self._done]
        if new:
            self._write(producer, new)

    def _opened(self, unpacked: Sequence[_Unpacked]) -> RecordProducer:
        """The producer; whoever else has its transactions is shut out, and what they had begun is aborted."""
        if self._producer is None:
            producer = self._begun()
            self._producer, self._group = producer, self._consumer()
            try:
                self._done = self._marked(producer, unpacked)
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

    def _consumer(self) -> Any:
        group = self._prefix + _SUFFIX
        # Behind a transaction's end the mark is not there for some milliseconds.
        more = {"group.id": group, "isolation.level": "read_committed", "retry.backoff.ms": 5}
        return self._cluster.consumer(more)

    def _marked(self, producer: RecordProducer, unpacked: Sequence[_Unpacked]) -> list[str]:
        """What the last transaction says that is written.

        A broker that starts again may forget that it acknowledged the end of a transaction (Kafka 4.3, ADR 034). Then
        nobody is told the mark, and the rows of that transaction are committed or aborted together with what this
        producer writes next into the same partitions. They are among the rows given here, because a commit returns
        only once its mark is told. So these are written to the same partitions again, and this transaction is aborted.
        """
        try:
            return self._told(_SETTLED_S if unpacked else None)
        except ConnectorError as error:
            cause = error.__cause__
            if not unpacked or not isinstance(cause, ck.KafkaException) or not passes(cause.args[0]):
                raise
        logger.warning("a transaction of '%s' has no end: its rows are taken back and written again", self._prefix)
        self._fill(producer, unpacked, [])
        self._cluster.ask("the end of a transaction", producer.client.abort_transaction, producer.client.poll)
        return self._told(None)

    def _told(self, timeout_s: float | None) -> list[str]:
        return self._cluster.ask("what is committed", self._ask, self._group.poll, timeout_s)

    def _ask(self, seconds: float) -> list[str]:
        (told,) = self._group.committed([ck.TopicPartition(self._marked_topic, 0)], timeout=seconds)
        return list(orjson.loads(told.metadata)) if told.offset >= 0 and told.metadata else []

    def _write(self, producer: RecordProducer, new: Sequence[_Unpacked]) -> None:
        client = producer.client
        done = self._fill(producer, new, self._done)
        try:
            self._cluster.ask("the end of a transaction", client.commit_transaction, client.poll)
        except ConnectorError:
            self._close()
            raise
        self._settle(done[-1])
        self._done = done

    def _fill(self, producer: RecordProducer, new: Sequence[_Unpacked], before: list[str]) -> list[str]:
        """Begin a transaction with rows and their mark, which is returned.

        Args:
            before: the mark of the transaction before.
        """
        client = producer.client
        ids = [one for one, _, _ in new]
        done = before + ids
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
            for name, subtask, parts in new:
                # Written again, rows go where they went before.
                turn = zlib.crc32(name.encode())
                for records in parts:
                    producer.write(records, subtask=subtask, turn=turn)
                    turn += records.count
            producer.flush()
        except ConnectorError:
            self._close()
            raise
        if self._interrupted(producer):
            raise _lost("brokers went away")
        self._send_mark(producer, len(done), orjson.dumps(done))
        return done

    def _settle(self, newest: str) -> None:
        """Wait until brokers tell the mark of the transaction that has ended: from then on they do not forget its end.

        Raises:
            KafkaException: it is not known whether the transaction has ended.
        """
        try:
            told = self._told(_SETTLED_S)
        except ConnectorError as error:
            raise _lost("the end of a transaction was not told") from error
        if newest not in told:
            raise _lost("the end of a transaction was forgotten")

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


def _unpacked(committable: Committable) -> _Unpacked:
    data = committable.data
    stop = 4 + int.from_bytes(data[:4], "big")
    name, subtask = orjson.loads(data[4:stop])
    with pa.ipc.open_stream(memoryview(data)[stop:]) as reader:
        return name, subtask, [Records.of_batch(batch) for batch in reader if batch.num_rows]
