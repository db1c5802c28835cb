"""Several bounded sources, one behind the other."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from flowsql_core.graph.stream_specs import HybridSourceSpec
from flowsql_runtime.operators.base import OperatorContext, OperatorSnapshot, SourceOperator, SourceStatus
from flowsql_runtime.operators.registry import make_operator

_PLACE: Final = "place"


class HybridSourceOperator(SourceOperator[HybridSourceSpec]):
    """Runs one source after the other; a source is opened when the one before it has ended.

    Out    what the sources emit.
    State  which source it is, and the state of this source.
    """

    def __init__(self, spec: HybridSourceSpec) -> None:
        super().__init__(spec)
        self._stop_at: int | None = None

    def open(self, ctx: OperatorContext) -> None:
        """Nothing is opened yet."""
        self._place = 0
        self._current: SourceOperator[Any] | None = None

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on with the source that was being read."""
        own = None
        if snapshot is not None:
            for part in snapshot.union.get(_PLACE, ()):
                (self._place,) = struct.unpack("<q", part)
            own = OperatorSnapshot(lists=snapshot.lists, union=_without_place(snapshot.union))
        self._begin(own)

    def emit_next(self) -> SourceStatus:
        """What the current source has."""
        assert self._current is not None
        before = self.ctx.metrics.records_out
        status = self._current.emit_next()
        if self._stop_at is not None:
            self._stop_at -= self.ctx.metrics.records_out - before
        ended = status in (SourceStatus.END, SourceStatus.DRAINED)
        if not ended or self._place + 1 == len(self.spec.sources):
            return status
        self._current.close()
        self._place += 1
        self._begin(None)
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """The current source does."""
        assert self._current is not None
        self._current.wake_when_available(wake)

    def stop_at(self, rows: int) -> None:
        """Suspend after so many rows of this run."""
        self._stop_at = rows

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """That of the current source, and its place."""
        assert self._current is not None
        own = self._current.snapshot_state(checkpoint_id)
        return replace(own, union={**own.union, _PLACE: (struct.pack("<q", self._place),)})

    def close(self) -> None:
        """Close the current source."""
        if self._current is not None:
            self._current.close()

    def _begin(self, snapshot: OperatorSnapshot | None) -> None:
        made = make_operator(self.spec.sources[self._place], self.ctx.resources)
        assert isinstance(made, SourceOperator)
        # Splits are dealt out by id: each source has one of its own.
        made.setup(replace(self.ctx, uid=f"{self.ctx.uid}/{self._place}"), self.output)
        if self._stop_at is not None:
            made.stop_at(self._stop_at)
        made.open(made.ctx)
        made.initialize_state(snapshot)
        self._current = made


def _without_place(union: Mapping[str, tuple[bytes, ...]]) -> dict[str, tuple[bytes, ...]]:
    return {name: parts for name, parts in union.items() if name != _PLACE}
