"""Streams of sources that are several operators: one in Flink, and one for what a program says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

from flowsql.datastream.data_stream import DataStream
from flowsql.datastream.plan import operators
from flowsql.datastream.plan.transformations import Wishes
from flowsql_core.stream.watermark import WatermarkStrategy

#: What a program says of the stream and means all its operators.
_OF_ALL: Final = frozenset({"parallelism", "max_parallelism", "slot_sharing_group"})


class SourceStream(DataStream):
    """The stream of a source, behind the last of its operators; all of them run in as many subtasks.

    Args:
        last: the stream behind the last operator.
        before: those behind the others.
    """

    def __init__(self, last: DataStream, before: Sequence[DataStream]) -> None:
        super().__init__(last.environment, last.number)
        self._before = tuple(before)

    def _set(self, **wishes: Any) -> Self:
        of_all = {name: value for name, value in wishes.items() if name in _OF_ALL}
        if of_all:
            for stream in self._before:
                stream._set(**of_all)
        return super()._set(**wishes)


def with_times(source: DataStream, strategy: WatermarkStrategy, wishes: Wishes) -> DataStream:
    """Timestamps and watermarks are made where the source reads."""
    return source.transform(
        operators.TIMES,
        operators.assign_timestamps(strategy, of_source=True),
        source.get_type(),
        wishes=wishes,
    )
