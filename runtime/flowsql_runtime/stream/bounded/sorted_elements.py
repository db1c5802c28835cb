"""Elements of a bounded stream by key and time: in memory up to a share, beyond it in sorted runs on disk."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_core.interpreter.object_bytes import object_bytes
from flowsql_runtime.network.spill import SpillSpace
from flowsql_runtime.operators.bounded.order import Words, sort_words
from flowsql_runtime.operators.bounded.sorted_rows import SortedRows
from flowsql_runtime.task.memory import OperatorMemory

#: Columns of an encoded element.
_KEY, _TIME, _ELEMENT = 0, 1, 2
_BY_KEY_AND_TIME: Final[OrderKeys] = ((_KEY, False, True), (_TIME, False, True))
#: Flips the first bit of each byte: signed bytes then compare as unsigned ones.
_UNSIGNED: Final = bytes(byte ^ 0x80 for byte in range(256))

#: (bytes of the key, timestamp, key, value)
Element = tuple[bytes, int, Any, Any]


class SortedElements:
    """Collects elements, then gives them back once: sorted by the bytes of their key and by time, or as they came.

    Elements that sort alike are in the order in which Flink's sort leaves them.

    Args:
        memory: account at the process budget.
        share_bytes: what may be in memory.
        space: gives files, asked when the first is needed.
        key_bytes: of a key, compared as signed bytes; None: elements have no keys and keep their order.

    Source: Flink, ``SortingDataInput``, ``VariableLengthByteKeyComparator``.
    """

    def __init__(
        self,
        memory: OperatorMemory,
        share_bytes: int,
        space: Callable[[], SpillSpace],
        key_bytes: Callable[[Any], bytes] | None,
    ) -> None:
        self._key_bytes = key_bytes
        self._rows = SortedRows(memory, share_bytes, space, self._words)

    def _words(self, batch: ChangelogBatch) -> Words:
        return [] if self._key_bytes is None else sort_words(batch.columns, _BY_KEY_AND_TIME)

    def add(self, values: Sequence[Any], keys: Sequence[Any], times: Sequence[int]) -> None:
        """Keep elements; ``keys`` is empty where they have none.

        Raises:
            ExecutionError: ``element-not-serializable`` for an element that cannot be pickled.
        """
        if self._key_bytes is None:
            order, packed = [b""] * len(values), [_pickled((None, value)) for value in values]
        else:
            of_key = self._key_bytes
            order = [of_key(key).translate(_UNSIGNED) for key in keys]
            packed = [_pickled(pair) for pair in zip(keys, values, strict=True)]
        columns = (
            pa.array(order, pa.binary()),
            pa.array(np.fromiter(times, np.int64, len(times)), pa.int64()),
            pa.array(packed, pa.binary()),
        )
        self._rows.add(ChangelogBatch(columns, len(values)))

    def __iter__(self) -> Iterator[Element]:
        for batch in self._rows.batches():
            columns = tuple(batch.columns)
            for start in range(0, batch.num_rows, _PIECE):
                order, times, packed = (columns[at].slice(start, _PIECE).to_pylist() for at in (_KEY, _TIME, _ELEMENT))
                for key_bytes, time, element in zip(order, times, packed, strict=True):
                    key, value = pickle.loads(element)
                    yield key_bytes, time, key, value


#: Elements that are Python objects at once.
_PIECE: Final = 1024


def in_turn(inputs: Sequence[SortedElements | None]) -> Iterator[tuple[int, Element]]:
    """Elements of two sorted inputs in one order, each with the number of its input.

    Of equal keys and times the inputs take turns, as in Flink: an input that gave an element waits for the other one.
    """
    heads = {
        number: (head, iterator)
        for number, elements in enumerate(inputs)
        if elements is not None and (head := next(iterator := iter(elements), None)) is not None
    }
    order = list(heads)
    while heads:
        first = min(order, key=lambda number: heads[number][0][:2])
        element, iterator = heads[first]
        yield first, element
        order.remove(first)
        following = next(iterator, None)
        if following is None:
            del heads[first]
        else:
            heads[first] = (following, iterator)
            order.append(first)


def _pickled(element: tuple[Any, Any]) -> bytes:
    try:
        return object_bytes(element)
    except Exception as error:  # pickle raises many kinds
        raise ExecutionError(
            "element-not-serializable",
            f"an element cannot be sorted by its key: {type(error).__name__}: {error}: {element[1]!r:.200}",
            hint="batch mode sorts the elements of keyed streams, in files where memory is short; emit plain "
            "values, or run the job with RuntimeExecutionMode.STREAMING",
        ) from error
