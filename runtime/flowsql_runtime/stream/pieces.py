"""Loops of operators that keep rows where they are: a batch goes on in pieces, each no longer than a time slice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from flowsql_core.batch import ChangelogBatch
from flowsql_runtime.time.time_slice import Pace, TimeSlice


def in_pieces(
    batch: ChangelogBatch,
    rows: Iterator[Any],
    loop: Callable[[Iterator[Any]], list[Any]],
    hand_on: Callable[[ChangelogBatch, list[Any]], None],
    pace: Pace,
    time_slice: TimeSlice,
) -> None:
    """Work on the rows of a batch.

    Args:
        batch: all rows, with their watermarks.
        rows: what ``loop`` works on, one item a row.
        loop: takes items until the slice is over, or there are no more; one result a row that it took.
        hand_on: gets the rows of each piece with their results.
        pace: how many rows a piece may have.
        time_slice: of the operator.
    """
    first, n = 0, batch.num_rows
    while first < n:
        began_ms = pace.begin()
        made = loop(islice(rows, min(pace.rows, n - first)))
        last = first + len(made)
        hand_on(batch.slice(first, last), made)
        pace.done(last - first, began_ms)
        first = last
        if time_slice.over:
            time_slice.next()
