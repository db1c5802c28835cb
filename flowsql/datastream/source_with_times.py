"""The stream of a source whose timestamps are made where it is read."""

from __future__ import annotations

from typing import Any, Final, Self

from flowsql.datastream.data_stream import DataStream
from flowsql.datastream.plan import operators
from flowsql.datastream.plan.transformations import Wishes
from flowsql_core.stream.watermark import WatermarkStrategy

#: What a program says of the stream and means the source too.
_OF_BOTH: Final = frozenset({"parallelism", "max_parallelism", "slot_sharing_group"})


class SourceWithTimes(DataStream):
    """What ``from_source`` answers for a strategy that stamps: both operators run in as many subtasks.

    In Flink they are one operator.
    """

    def __init__(self, source: DataStream, strategy: WatermarkStrategy, wishes: Wishes) -> None:
        made = source.transform(
            operators.TIMES,
            operators.assign_timestamps(strategy, of_source=True),
            source.get_type(),
            wishes=wishes,
            refused_in_batch=operators.TIMES_IN_BATCH,
        )
        super().__init__(made.environment, made.number)
        self._source = source

    def _set(self, **wishes: Any) -> Self:
        both = {name: value for name, value in wishes.items() if name in _OF_BOTH}
        if both:
            self._source._set(**both)
        return super()._set(**wishes)
