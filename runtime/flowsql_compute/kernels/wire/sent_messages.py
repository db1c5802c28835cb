"""Messages out of arrays into librdkafka's producer, one call a message, without an object for any of them.

Source: librdkafka's rdkafka.h, ``rd_kafka_vu_t`` and ``rd_kafka_produceva``, on platforms with pointers of 64 bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.memory import call_far

#: Words of one ``rd_kafka_vu_t``: a tag, and a union of 64 bytes. Such things at most of one message.
_WORDS = 9
_FIELDS = 7
#: Words of room that a call needs.
ROOM: Final = _WORDS * _FIELDS
#: Tags, ``rd_kafka_vtype_t``.
_TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP, _HEADERS = 2, 3, 4, 5, 7, 8, 10
#: The library copies the bytes.
_COPY = 2
#: In place of an offset: there is no value, or no key.
_NONE = -1


@kernel(
    "int64(int64, int64, int64, int64[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int64, int64[::1])"
)
def send_messages(
    client, function, start, topics, partitions, values, keys, timestamps, headers, room, address, refused
):  # fmt: skip
    """Hand messages from ``start`` on to the producer ``client`` by ``rd_kafka_produceva``, which is at ``function``.

    ``topics`` and ``partitions``: of each message, or one for all; topics are addresses, partition -1 is the library's
    choice. ``values`` and ``keys`` (2, messages): addresses and sizes in bytes, size -1 where there is none; ``keys``
    (2, 0): none has one. ``timestamps`` (messages, or 0): milliseconds, 0 is now. ``headers`` (messages, or 0):
    addresses of lists of headers, 0 where there are none; the library takes over what it takes.

    ``room``: ROOM words, whose address is ``address``. ``refused`` (1,): the error's address, where a message was not
    taken.

    Returns:
        Which message was not taken; as many as there are if all were.
    """
    for i in range(start, values.shape[1]):
        room[0] = _TOPIC
        room[1] = topics[i if topics.size > 1 else 0]
        room[_WORDS] = _PARTITION
        room[_WORDS + 1] = partitions[i if partitions.size > 1 else 0]
        room[2 * _WORDS] = _FLAGS
        room[2 * _WORDS + 1] = _COPY
        count = 3
        if values[1, i] != _NONE:
            at = count * _WORDS
            room[at] = _VALUE
            room[at + 1] = values[0, i]
            room[at + 2] = values[1, i]
            count += 1
        if keys.shape[1] > 0 and keys[1, i] != _NONE:
            at = count * _WORDS
            room[at] = _KEY
            room[at + 1] = keys[0, i]
            room[at + 2] = keys[1, i]
            count += 1
        if timestamps.size > 0:
            at = count * _WORDS
            room[at] = _TIMESTAMP
            room[at + 1] = timestamps[i]
            count += 1
        if headers.size > 0 and headers[i] != 0:
            at = count * _WORDS
            room[at] = _HEADERS
            room[at + 1] = headers[i]
            count += 1
        error = call_far(function, client, address, np.int64(count))
        if error != 0:
            refused[0] = error
            return np.int64(i)
    return np.int64(values.shape[1])
