"""Specs of the operators that rank and sort rows: Top-N, deduplication, their forms per window, ORDER BY."""

from __future__ import annotations

import enum

from flowsql_core.graph.specs import MiniBatch, OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema

#: A sort key: column, whether it descends, whether NULLs come first.
OrderKeys = tuple[tuple[int, bool, bool], ...]


class RankStrategy(enum.Enum):
    """How a Top-N keeps rows; the values are what EXPLAIN prints. Source: Flink, ``RankProcessStrategy``."""

    #: Rows only come: those behind the last place are forgotten.
    APPEND_FAST = "AppendFastStrategy"
    #: Rows are replaced by key and never fall: those behind the last place are forgotten, too.
    UPDATE_FAST = "UpdateFastStrategy"
    #: Rows go: all are kept.
    RETRACT = "RetractStrategy"


@record
class RankSpec(OperatorSpec):
    """Rows of each partition from place ``first`` to ``last``, counted from 1; rows that sort alike by arrival.

    ``last`` None: column ``last_index`` of the first row of a partition tells it. ``numbered``: the place is the last
    column of the output. ``unique``: columns that identify a row (UPDATE_FAST). ``consolidate``: only the table that
    the changes add up to is looked at.
    """

    partition: tuple[int, ...]
    order: OrderKeys
    first: int
    last: int | None
    last_index: int | None
    numbered: bool
    strategy: RankStrategy
    unique: tuple[int, ...]
    input: Schema
    output: Schema
    emit_update_before: bool
    consolidate: bool = False
    state_ttl_ms: int = 0


@record
class DeduplicateSpec(OperatorSpec):
    """The first or last row of each key by a time attribute.

    ``time_index``: the row time's column, None in processing time. ``insert_only``: a first row leaves when the
    watermark passes it and is never corrected. ``consolidate``: as of :class:`RankSpec`. ``compact``: a mini-batch
    emits one change of a key at most, although somebody sees each change.
    """

    keys: tuple[int, ...]
    time_index: int | None
    keep_last: bool
    insert_only: bool
    input: Schema
    emit_update_before: bool
    mini_batch: MiniBatch | None = None
    compact: bool = False
    consolidate: bool = False
    state_ttl_ms: int = 0


@record
class WindowRankSpec(OperatorSpec):
    """Rows of each partition and window from place ``first`` to ``last``, when the watermark passes the window's end.

    ``end_index``: the column of window_end. ``partition`` holds no column of the window. ``zone``: as of
    ``WindowSpec``.
    """

    partition: tuple[int, ...]
    order: OrderKeys
    end_index: int
    first: int
    last: int
    numbered: bool
    input: Schema
    output: Schema
    zone: str | None = None


@record
class WindowDeduplicateSpec(OperatorSpec):
    """The first or last row of each partition and window by row time; else as :class:`WindowRankSpec`."""

    partition: tuple[int, ...]
    time_index: int
    keep_last: bool
    end_index: int
    input: Schema
    zone: str | None = None


@record
class TemporalSortSpec(OperatorSpec):
    """All rows by a time attribute, then by other columns (``order``).

    ``time_index``: the row time, None in processing time: then rows that come together are sorted.
    """

    time_index: int | None
    order: OrderKeys
    input: Schema


@record
class SortSpec(OperatorSpec):
    """All rows by some columns, when the input has ended."""

    order: OrderKeys
    input: Schema
    input_retracts: bool
