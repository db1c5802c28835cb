"""Messages of which some cannot be read: all are decoded together, and halved where that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flowsql_connectors.formats.format import Columns
from flowsql_core.errors import ExecutionError


def decode_apart(
    count: int, decode: Callable[[int, int], Columns], alone: Callable[[int, ExecutionError], Columns | None]
) -> Columns:
    """The rows of the messages that can be read.

    Args:
        count: of the messages.
        decode: the rows of messages ``[start, stop)``, whose ``lines`` count from ``start``; raises ExecutionError
            where one of them is bad.
        alone: takes the index of each bad message, in order, and what was raised; rows of a part of it, or None.
    """
    found: list[Columns] = []
    # A stack, not recursion: the order is that of the messages.
    left = [(0, count)]
    while left:
        start, stop = left.pop()
        try:
            part: Columns | None = decode(start, stop)
        except ExecutionError as error:
            if stop - start > 1:
                middle = (start + stop) // 2
                left += [(middle, stop), (start, middle)]
                continue
            part = alone(start, error)
        if part is not None and part.num_rows:
            assert part.lines is not None
            found.append(replace(part, lines=part.lines + start))
    return Columns.joined(found) if found else Columns((), 0, None, np.empty(0, np.int64))


def reason(error: ExecutionError) -> str:
    """Why a message is bad, without where it is."""
    return error.message.partition("\n")[0]
