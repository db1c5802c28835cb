"""Where the values of a column are too many bytes for one Arrow array: noticed here, mended by taking fewer rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.columns import TooManyBytesError
from flowsql_core import column_bytes
from flowsql_core.errors import ExecutionError

#: How Arrow says so where it does not raise an error of its own for it.
_WORDS: Final = ("offset overflow", "overflowed binary array capacity")
#: What 32-bit offsets reach.
_ARRAY_BYTES: Final = 2**31 - 1


@contextmanager
def within_an_array(n: int, memories: Sequence[dict[str, Any]] = ()) -> Iterator[None]:
    """Arrow's complaints about ``n`` rows of too many bytes as TooManyBytesError.

    ``memories``: what calls remember from batch to batch; it is as before when the rows are too many.

    Raises:
        ExecutionError: a single row is too long.
    """
    before = copy.deepcopy(memories)
    try:
        yield
    except (TooManyBytesError, pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        if isinstance(error, pa.ArrowInvalid) and not any(words in str(error) for words in _WORDS):
            raise
        for memory, kept in zip(memories, before, strict=True):
            memory.clear()
            memory.update(kept)
        if n <= 1:
            raise ExecutionError(
                "value-too-long", "A value takes more than 2 GiB.", hint="texts and bytes are shorter than 2 GiB"
            ) from error
        raise TooManyBytesError from error


def refuse_wrapped(made: Any) -> None:
    """TooManyBytesError for texts whose offsets wrapped around: some of Arrow's functions do not look."""
    if not isinstance(made, pa.Array) or not (pa.types.is_string(made.type) or pa.types.is_binary(made.type)):
        return
    data = made.buffers()[2]
    if data is not None and data.size > _ARRAY_BYTES:
        raise TooManyBytesError


def require_within(columns: Sequence[Any], n: int) -> None:
    """TooManyBytesError where some column takes more than ``column_bytes.MOST_BYTES``."""
    if any(column_bytes.bytes_of_rows(column, None, n) is not None for column in columns):
        raise TooManyBytesError


def halves(columns: Sequence[Any], n: int) -> tuple[tuple[Sequence[Any], int], tuple[Sequence[Any], int]]:
    """The first and the second half of the rows of columns, each column cut where it is read."""
    return (_Rows(columns, 0, n // 2), n // 2), (_Rows(columns, n // 2, n), n - n // 2)


class _Rows(Sequence[Any]):
    """Rows [first, last) of columns."""

    def __init__(self, columns: Sequence[Any], first: int, last: int) -> None:
        self._columns = columns
        self._first = first
        self._size = last - first

    def __getitem__(self, index: Any) -> Any:
        return self._columns[index].slice(self._first, self._size)

    def __len__(self) -> int:
        return len(self._columns)
