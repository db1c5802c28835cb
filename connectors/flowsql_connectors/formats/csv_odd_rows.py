"""Taking the rows out of a csv block that a bulk reader would misread, and putting what they mean back in."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.csv_tokens import CsvRow, CsvTokenizer
from flowsql_core.arrow import compute as pc
from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]

#: Rows up to which an array is cut where they belong; more of them are sorted in.
_FEW: Final = 256


@record
class Parted:
    """A block in two parts.

    ``plain``: the bytes of the rows for a bulk reader; ``places`` (n,) counts each of its rows from 0 in the whole
    block, comments left out. ``odd``: the other rows with their places.
    """

    plain: bytes
    places: Int64s
    odd: list[tuple[int, CsvRow]]


def part_rows(data: bytes, tokenizer: CsvTokenizer, blank_is_odd: bool) -> Parted:
    """Part a block that begins at a row's start. ``blank_is_odd``: whether the bulk reader misreads empty lines.

    A dialect with characters outside ASCII, or one character for two purposes, has odd rows alone.
    """
    # Only blocks that hold something odd load the kernel.
    from flowsql_compute.kernels.csv_rows import COMMENT, PLAIN, mark_rows

    dialect = tokenizer.dialect
    marks = [mark for mark in (dialect.delimiter, dialect.quote, dialect.escape, "\r", "\n") if mark is not None]
    if not "".join(marks).isascii() or len(set(marks)) < len(marks):
        return Parted(b"", np.zeros(0, np.int64), list(enumerate(tokenizer.rows(data.decode()))))
    raw = np.frombuffer(data, np.uint8)
    most = (data.count(b"\n") + data.count(b"\r")) * (2 if dialect.comments else 1) + 2
    starts, kinds = np.empty(most, np.int64), np.empty(most, np.uint8)
    quote, escape = (-1 if mark is None else ord(mark) for mark in (dialect.quote, dialect.escape))
    count = mark_rows(
        raw, len(raw), ord(dialect.delimiter), quote, escape, dialect.comments, blank_is_odd, starts, kinds
    )
    starts, kinds = starts[: count + 1], kinds[:count]
    plain = kinds == PLAIN
    places = np.cumsum(kinds != COMMENT) - 1
    odd: list[tuple[int, CsvRow]] = []
    for mark in np.flatnonzero(~plain & (kinds != COMMENT)).tolist():
        rows = tokenizer.rows(data[starts[mark] : starts[mark + 1]].decode())
        odd.extend(enumerate(rows, int(places[mark])))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], plain, [False])).astype(np.int8)))
    runs = starts[edges].reshape(-1, 2).tolist()
    pieces = [data[first:last] for first, last in runs]
    for number, (piece, after) in enumerate(pairwise(pieces)):
        if piece.endswith(b"\r") and after.startswith(b"\n"):
            # Two ends of rows that only an odd row kept apart must not become one.
            pieces[number] = piece[:-1] + b"\n"
    return Parted(b"".join(pieces), places[plain], odd)


def part_blank_rows(data: bytes, table: Any, tokenizer: CsvTokenizer) -> tuple[Any, Parted] | None:
    """Part a block that Arrow read as a table, if its blank lines are the rows of the table without any value.

    Returns the table without them. None where that takes more than counting line ends.
    """
    quote = tokenizer.dialect.quote
    if b"\r" in data or (quote is not None and quote.encode() in data):
        return None
    empty = functools.reduce(pc.and_, [_empty(column) for column in table.columns])
    newline = np.frombuffer(data, np.uint8) == ord("\n")
    if int(newline[0]) + np.count_nonzero(newline[1:] & newline[:-1]) != pc.sum(empty).as_py():
        return None
    blank = next(iter(tokenizer.rows("\n")))
    kept = pc.invert(empty)
    places, odd = (np.asarray(pc.indices_nonzero(mask)).astype(np.int64) for mask in (kept, empty))
    return table.filter(kept), Parted(data, places, [(place, blank) for place in odd.tolist()])


def _empty(column: Any) -> Any:
    empty = pc.is_null(column)
    if pa.types.is_string(column.type):
        empty = pc.or_(empty, pc.equal(pc.fill_null(pc.binary_length(column), 0), 0))
    return empty


def put_between(array: Any, others: Any, at: Int64s) -> Any:
    """The values of ``array`` with ``others[i]`` before its place ``at[i]`` (not falling)."""
    if not len(others):
        return array
    if len(others) > _FEW:
        order = np.argsort(np.concatenate((np.arange(len(array)) * 2 + 1, at * 2)), kind="stable")
        return pc.take(pa.concat_arrays([array, others]), pa.array(order))
    pieces, done = [], 0
    for position, place in enumerate(at.tolist()):
        pieces += [array.slice(done, place - done), others.slice(position, 1)]
        done = place
    return pa.concat_arrays([*pieces, array.slice(done)])
