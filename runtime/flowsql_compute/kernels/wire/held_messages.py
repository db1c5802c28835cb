"""Messages that librdkafka holds, told by their addresses: their fields and bytes into arrays.

Source: librdkafka's rdkafka.h, ``rd_kafka_message_t``, as every platform with pointers of 64 bits lays it out.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.memory import call_far, copy_far, far32, far64

#: Where the fields are.
_ERROR, _TOPIC, _PARTITION, _PAYLOAD, _LENGTH, _KEY, _KEY_LENGTH, _OFFSET = 0, 8, 16, 24, 32, 40, 48, 56
#: Rows of ``heads``: an error's code or 0; the topic's address; the partition; the offset; sizes of value and key in
#: bytes, -1 where there is none.
ERROR, TOPIC, PARTITION, OFFSET, VALUE_SIZE, KEY_SIZE = range(6)
HEADS: Final = 6


@kernel("void(int64[::1], int64, int64[:, ::1])")
def message_heads(addresses, count, heads):
    """The fields of the first ``count`` messages into the columns of ``heads`` (HEADS, at least count)."""
    for i in range(count):
        message = addresses[i]
        heads[ERROR, i] = far32(message + _ERROR)
        heads[TOPIC, i] = far64(message + _TOPIC)
        heads[PARTITION, i] = far32(message + _PARTITION)
        heads[OFFSET, i] = far64(message + _OFFSET)
        heads[VALUE_SIZE, i] = far64(message + _LENGTH) if far64(message + _PAYLOAD) != 0 else -1
        heads[KEY_SIZE, i] = far64(message + _KEY_LENGTH) if far64(message + _KEY) != 0 else -1


@kernel("void(int64[::1], boolean, int32[::1], uint8[::1])")
def message_bytes(addresses, keys, offsets, out):
    """The values, or keys, of messages one behind another in ``out``; ``offsets`` (messages + 1): where each begins."""
    for i in range(addresses.size):
        message = addresses[i]
        at = far64(message + (_KEY if keys else _PAYLOAD))
        start = np.int64(offsets[i])
        if at != 0:
            copy_far(out, start, at, offsets[i + 1] - start)


@kernel("void(int64[::1], int64, int64[::1], int64[::1])")
def call_for_messages(addresses, function, argument, results):
    """What a function of the library, by its address, returns for each message; room for its second argument is
    ``argument[i]``, an address."""
    for i in range(addresses.size):
        results[i] = call_far(function, addresses[i], argument[i], np.int64(0))


@kernel("void(int64[::1], int64, int64)")
def release_messages(addresses, count, function):
    """Give the first ``count`` messages back by the library's function at an address."""
    for i in range(count):
        call_far(function, addresses[i], np.int64(0), np.int64(0))
