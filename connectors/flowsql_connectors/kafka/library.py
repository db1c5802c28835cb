"""librdkafka by its C interface: the functions that are used, and how a client is made.

The functions are those of the library that the Python client brings, or of the system's.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, Final

import confluent_kafka as ck

from flowsql_core.errors import ConnectorError

#: Kinds of clients.
PRODUCER: Final = 0
CONSUMER: Final = 1

_CONF_OK: Final = 0
_ERROR_TEXT_BYTES: Final = 512

_OnError = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)
OnDelivery = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)


class TopicPartition(ctypes.Structure):
    """``rd_kafka_topic_partition_t`` up to its metadata."""

    _fields_ = (
        ("topic", c_char_p), ("partition", c_int32), ("offset", c_int64), ("metadata", c_void_p),
        ("metadata_size", c_size_t),
    )  # fmt: skip


#: Functions, what they return and what they take.
_FUNCTIONS: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_destroy": (None, (c_void_p,)),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_conf_set_error_cb": (None, (c_void_p, _OnError)),
    "rd_kafka_conf_set_dr_msg_cb": (None, (c_void_p, OnDelivery)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_destroy": (None, (c_void_p,)),
    "rd_kafka_error_code": (c_int, (c_void_p,)),
    "rd_kafka_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_error_is_fatal": (c_int, (c_void_p,)),
    "rd_kafka_error_is_retriable": (c_int, (c_void_p,)),
    "rd_kafka_error_txn_requires_abort": (c_int, (c_void_p,)),
    "rd_kafka_error_destroy": (None, (c_void_p,)),
    "rd_kafka_err2str": (c_char_p, (c_int,)),
    "rd_kafka_topic_name": (c_char_p, (c_void_p,)),
    "rd_kafka_topic_partition_list_new": (c_void_p, (c_int,)),
    "rd_kafka_topic_partition_list_add": (POINTER(TopicPartition), (c_void_p, c_char_p, c_int32)),
    "rd_kafka_topic_partition_list_destroy": (None, (c_void_p,)),
    "rd_kafka_mem_malloc": (c_void_p, (c_void_p, c_size_t)),
    # Consumers.
    "rd_kafka_poll_set_consumer": (c_int, (c_void_p,)),
    "rd_kafka_queue_get_consumer": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_destroy": (None, (c_void_p,)),
    "rd_kafka_queue_yield": (None, (c_void_p,)),
    "rd_kafka_consume_batch_queue": (ctypes.c_ssize_t, (c_void_p, c_int, c_void_p, c_size_t)),
    "rd_kafka_consumer_close": (c_int, (c_void_p,)),
    "rd_kafka_incremental_assign": (c_void_p, (c_void_p, c_void_p)),
    "rd_kafka_incremental_unassign": (c_void_p, (c_void_p, c_void_p)),
    "rd_kafka_pause_partitions": (c_int, (c_void_p, c_void_p)),
    "rd_kafka_resume_partitions": (c_int, (c_void_p, c_void_p)),
    "rd_kafka_commit": (c_int, (c_void_p, c_void_p, c_int)),
    "rd_kafka_message_errstr": (c_char_p, (c_void_p,)),
    "rd_kafka_message_headers": (c_int, (c_void_p, POINTER(c_void_p))),
    "rd_kafka_header_get_all": (
        c_int,
        (c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_void_p), POINTER(c_size_t)),
    ),
    "rd_kafka_message_timestamp": (c_int64, (c_void_p, c_void_p)),
    "rd_kafka_message_leader_epoch": (c_int32, (c_void_p,)),
    "rd_kafka_message_destroy": (None, (c_void_p,)),
    # Producers.
    "rd_kafka_topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "rd_kafka_topic_destroy": (None, (c_void_p,)),
    "rd_kafka_produceva": (c_void_p, (c_void_p, c_void_p, c_size_t)),
    "rd_kafka_headers_new": (c_void_p, (c_size_t,)),
    "rd_kafka_header_add": (c_int, (c_void_p, c_char_p, ctypes.c_ssize_t, c_char_p, ctypes.c_ssize_t)),
    "rd_kafka_headers_destroy": (None, (c_void_p,)),
    "rd_kafka_poll": (c_int, (c_void_p, c_int)),
    "rd_kafka_flush": (c_int, (c_void_p, c_int)),
    "rd_kafka_outq_len": (c_int, (c_void_p,)),
    "rd_kafka_purge": (c_int, (c_void_p, c_int)),
    "rd_kafka_last_error": (c_int, ()),
    "rd_kafka_init_transactions": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_begin_transaction": (c_void_p, (c_void_p,)),
    "rd_kafka_send_offsets_to_transaction": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int)),
    "rd_kafka_commit_transaction": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_abort_transaction": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_consumer_group_metadata_new": (c_void_p, (c_char_p,)),
    "rd_kafka_consumer_group_metadata_destroy": (None, (c_void_p,)),
}


@cache
def library() -> Any:
    """The library with the types of the functions that are used.

    Raises:
        ConnectorError: neither the Python client nor the system has it in reach.
    """
    from confluent_kafka import cimpl

    for place in _places(cimpl.__file__):
        found = ctypes.CDLL(place)
        if all(hasattr(found, name) for name in _FUNCTIONS):
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(found, name)
                function.restype, function.argtypes = result, arguments
            return found
    raise ConnectorError(
        "kafka-library",
        f"librdkafka's functions are not found: the Python client ({cimpl.__file__}) does not show them, and the "
        "system has no library 'rdkafka'.",
        hint="the wheels of confluent-kafka for Linux and macOS have them; else install librdkafka",
    )


def _places(of_client: str) -> Iterator[str]:
    """Where the library may be; what the system has is asked of its tools, which takes a while."""
    yield of_client
    of_system = ctypes.util.find_library("rdkafka")
    if of_system is not None:
        yield of_system


class Client:
    """A client of the library, at the address ``handle``.

    Args:
        config: librdkafka's properties, and ``error_cb``, which is called while the client is polled.
        delivered: a callback for messages.

    Raises:
        confluent_kafka.KafkaException: a property is refused.
    """

    def __init__(self, kind: int, config: Mapping[str, Any], delivered: Any = None) -> None:
        self.library = found = library()
        complain: Callable[[Any], None] = config["error_cb"]
        # These live as long as the client, which calls them.
        self._on_error = _OnError(lambda _, code, said, __: complain(ck.KafkaError(code, text(said))))
        self._delivered = delivered
        conf = found.rd_kafka_conf_new()
        found.rd_kafka_conf_set_error_cb(conf, self._on_error)
        if delivered is not None:
            found.rd_kafka_conf_set_dr_msg_cb(conf, delivered)
        said = ctypes.create_string_buffer(_ERROR_TEXT_BYTES)
        for name, value in config.items():
            if name == "error_cb":
                continue
            given = str(value).lower() if isinstance(value, bool) else str(value)
            if found.rd_kafka_conf_set(conf, name.encode(), given.encode(), said, len(said)) != _CONF_OK:
                found.rd_kafka_conf_destroy(conf)
                raise failure(ck.KafkaError._INVALID_ARG, said.value)
        self.handle = found.rd_kafka_new(kind, conf, said, len(said))
        if not self.handle:
            found.rd_kafka_conf_destroy(conf)
            raise failure(ck.KafkaError._INVALID_ARG, said.value)

    def raise_error(self, error: int | None) -> None:
        """Raise what an ``rd_kafka_error_t`` says, if there is one; it is released."""
        if error:
            raise ck.KafkaException(self.told(error))

    def told(self, error: int) -> Any:
        """What an ``rd_kafka_error_t`` says, as ``KafkaError``; it is released."""
        found = self.library
        try:
            return ck.KafkaError(
                found.rd_kafka_error_code(error),
                text(found.rd_kafka_error_string(error)),
                bool(found.rd_kafka_error_is_fatal(error)),
                bool(found.rd_kafka_error_is_retriable(error)),
                bool(found.rd_kafka_error_txn_requires_abort(error)),
            )
        finally:
            found.rd_kafka_error_destroy(error)


class Partitions:
    """A list of partitions with offsets in the library's memory, while a call needs it.

    Args:
        texts: of offsets that have one, by their place in the list.
        client: its handle, where there are texts.
    """

    def __init__(
        self, partitions: Iterable[tuple[str, int, int]], texts: Mapping[int, bytes] | None = None, client: int = 0
    ) -> None:
        self._library = library()
        self._partitions = list(partitions)
        self._texts = texts or {}
        self._client = client

    def __enter__(self) -> Any:
        self._made = self._library.rd_kafka_topic_partition_list_new(len(self._partitions))
        for place, (topic, partition, offset) in enumerate(self._partitions):
            added = self._library.rd_kafka_topic_partition_list_add(self._made, topic.encode(), partition)
            added.contents.offset = offset
            if place in self._texts:
                said = self._texts[place]
                # The list releases it. The Python client reads it up to a zero, which it writes, too.
                size = len(said) + 1
                kept = self._library.rd_kafka_mem_malloc(self._client, size)
                ctypes.memmove(kept, said + b"\0", size)
                added.contents.metadata, added.contents.metadata_size = kept, size
        return self._made

    def __exit__(self, *_: object) -> None:
        self._library.rd_kafka_topic_partition_list_destroy(self._made)


def address(function: Any) -> int:
    """Where a function of the library is."""
    return int(ctypes.cast(function, c_void_p).value or 0)


def text(raw: bytes | None) -> str:
    """A text of the library."""
    return (raw or b"").decode("utf-8", "replace")


def failure(code: int, said: bytes | None) -> Exception:
    """An error of the library as the Python client raises it."""
    made: Exception = ck.KafkaException(ck.KafkaError(code, text(said)))
    return made
