"""The newest rows of a table, and those that are added to it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from flowsql.table.session.collect import CollectBuffer
from flowsql.table.table_result import AnswerKind, TableResult
from flowsql_connectors import registry
from flowsql_core.errors import BindError
from flowsql_core.graph.job import JobGraph, OperatorNode
from flowsql_core.graph.specs import CalcSpec, CollectSinkSpec, ScanSpec, WatermarkAssignerSpec

if TYPE_CHECKING:
    from flowsql_connectors.spi.source import Split
    from flowsql_connectors.spi.tail import TableTail
    from flowsql_core.batch import ChangelogBatch

#: Seconds between two looks at what was added, where the table does not say.
LOOK_S: Final = 0.5
#: Bytes that are read first, from the end backwards.
PART_BYTES: Final = 1 << 20


class NewestRows(TableResult):
    """Rows of the query that a graph runs, which reads a table: the last ones, then those that are added.

    Args:
        name: of the table, for messages.
        graph: ``SELECT * FROM`` it.
        last: how many rows that are there; None: nobody said.
        follow: whether to go on.
        default: for ``last``.

    Raises:
        BindError: the table cannot be followed, or has no last rows.
    """

    def __init__(
        self, name: str, graph: JobGraph, last: int | None, follow: bool, default: int, zone: str, max_column_width: int
    ) -> None:
        # In one task all rows keep their order.
        self._graph = replace(graph, vertices=tuple(replace(vertex, parallelism=1) for vertex in graph.vertices))
        nodes = [node for vertex in graph.vertices for node in vertex.operators]
        (self._sink,) = [node.spec for node in nodes if isinstance(node.spec, CollectSinkSpec)]
        scans = [node for node in nodes if isinstance(node.spec, ScanSpec)]
        self._scan, self._tail = _tail(nodes, scans, dict(graph.configuration))
        self._is_bounded = all(_is_bounded(node.spec, dict(graph.configuration)) for node in scans)
        if self._tail is None and self._is_bounded and follow:
            raise BindError(
                "not-followed", f"Table '{name}' has an end, and nothing is added to it.", hint="leave --follow out"
            )
        if self._tail is None and not self._is_bounded and last is not None:
            raise BindError(
                "no-last-rows",
                f"Table '{name}' has no end, and therefore no last rows.",
                hint="leave -n out; --rows ends after so many rows",
            )
        self._follows = follow or not self._is_bounded
        self._last = default if last is None else last
        super().__init__(
            AnswerKind.QUERY, self._sink.input, streaming=True, max_column_width=max_column_width, zone=zone
        )

    def batches(self, deadline: float | None = None) -> Iterator[ChangelogBatch]:
        """The last rows, then those that are added until ``deadline`` (``time.monotonic()``) has come."""
        if self._tail is None:
            rows = self._read(None, deadline)
            yield from rows if not self._is_bounded else _last_rows(rows, self._last)
            return
        parts = self._tail.parts(PART_BYTES)
        yield from self._last_of(parts, deadline)
        interval_ms = self._tail.interval_ms
        pause_s = LOOK_S if interval_ms is None else interval_ms / 1000
        while self._follows:
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return
            time.sleep(pause_s if deadline is None else min(pause_s, deadline - now))
            added = self._tail.added()
            if added:
                yield from self._read(added, deadline)

    def _last_of(self, parts: Sequence[Sequence[Split]], deadline: float | None) -> Iterator[ChangelogBatch]:
        """Read from the end backwards, more at a time, until there are enough rows."""
        found: list[ChangelogBatch] = []
        wanted, end, step = self._last, len(parts), 1
        while wanted and end:
            begin = max(0, end - step)
            splits = [split for part in parts[begin:end] for split in part]
            before = list(_last_rows(self._read(splits, deadline), wanted))
            found[:0] = before
            wanted -= sum(batch.num_rows for batch in before)
            end, step = begin, step * 2
        yield from found

    def _read(self, splits: Sequence[Split] | None, deadline: float | None) -> Iterator[ChangelogBatch]:
        """The rows of some splits, or of the whole table."""
        from flowsql.common.job_client import JobClient
        from flowsql_runtime.cluster.local import LocalCluster
        from flowsql_runtime.task.part import JobPart

        buffer = CollectBuffer()
        graph = replace(self._graph, resources={**self._graph.resources, self._sink.resource: buffer})
        part = None if splits is None or self._scan is None else JobPart({self._scan.uid: splits})
        job = JobClient(LocalCluster().submit(graph, part=part), graph)
        result = TableResult(AnswerKind.QUERY, self.schema, collected=buffer, job=job, streaming=True)
        try:
            yield from result.batches(deadline)
        finally:
            result.cancel()


def _tail(
    nodes: Sequence[OperatorNode], scans: Sequence[OperatorNode], configuration: dict[str, str]
) -> tuple[OperatorNode | None, TableTail | None]:
    """What looks at the end of the one table that is read row by row; nothing for views that compute."""
    by_row = ScanSpec | CalcSpec | WatermarkAssignerSpec | CollectSinkSpec
    if len(scans) != 1 or not all(isinstance(node.spec, by_row) for node in nodes):
        return None, None
    (scan,) = scans
    assert isinstance(scan.spec, ScanSpec)
    return scan, registry.create_source(scan.spec, configuration).tail()


def _is_bounded(spec: object, configuration: dict[str, str]) -> bool:
    assert isinstance(spec, ScanSpec)
    return registry.create_source(spec, configuration).bounded


def _last_rows(batches: Iterator[ChangelogBatch], wanted: int) -> Iterator[ChangelogBatch]:
    """The last so many rows, none of which is given before all batches are there."""
    kept: deque[ChangelogBatch] = deque()
    rows = 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        while kept and rows - kept[0].num_rows >= wanted:
            rows -= kept.popleft().num_rows
    for batch in kept:
        skipped = max(0, rows - wanted)
        rows -= batch.num_rows
        if skipped < batch.num_rows:
            yield batch.slice(skipped, batch.num_rows)
            wanted -= batch.num_rows - skipped
