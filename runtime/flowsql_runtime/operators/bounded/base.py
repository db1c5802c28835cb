"""What operators of batch mode have in common: no watermark passes before the rows that leave at the end."""

from __future__ import annotations

import itertools
from typing import Any, Final, TypeVar

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import MAX_WATERMARK, Watermark, WatermarkStatus
from flowsql_core.graph.specs import OperatorSpec
from flowsql_runtime.metrics.volumes import BYTES_SPILLED
from flowsql_runtime.network.spill import SpillSpace
from flowsql_runtime.operators.base import Operator, OperatorContext

S = TypeVar("S", bound=OperatorSpec)

#: Rows of a batch that leaves an operator.
OUTPUT_ROWS: Final = 65_536

_NUMBERS: Final = itertools.count(1)


class BoundedOperator(Operator[S]):
    """Base of the operators that wait for the end of an input.

    In     insert-only rows. Watermarks say nothing in batch mode: tables have none, and the last one comes at the end.
    Out    insert-only rows, then the last watermark.
    State  none that a checkpoint holds: batch mode takes none. What memory cannot hold waits in files.
    """

    _space: SpillSpace | None = None

    def setup(self, ctx: OperatorContext, output: Any) -> None:
        """Nothing is on disk."""
        super().setup(ctx, output)
        self._space = None

    @property
    def space(self) -> SpillSpace:
        """Files of this operator, removed when it closes."""
        if self._space is None:
            self._space = space = SpillSpace(self.ctx.spill_directory, f"operator-{next(_NUMBERS)}")
            self.ctx.metrics.gauge(BYTES_SPILLED, lambda: space.written_bytes)
        return self._space

    @property
    def share_bytes(self) -> int:
        """Bytes of rows that the operator holds at most; working on them takes about as much once more."""
        return max(1, self.ctx.memory_bytes // 2)

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Kept back: rows still come."""

    def process_watermark_status(self, input_index: int, status: WatermarkStatus) -> None:
        """An idle input says nothing, either."""

    def finish(self) -> None:
        """All rows that are held, then the last watermark."""
        self.answer()
        self.output.emit_watermark(Watermark(MAX_WATERMARK))

    def answer(self) -> None:
        """All inputs ended: emit what is held."""

    def emit(self, batch: ChangelogBatch) -> None:
        """Rows in batches of the usual size."""
        for first in range(0, batch.num_rows, OUTPUT_ROWS):
            self.collect_within_offsets(batch.slice(first, min(first + OUTPUT_ROWS, batch.num_rows)))

    def close(self) -> None:
        """Give back memory and files."""
        self.ctx.memory.close()
        if self._space is not None:
            self._space.close()
            self._space = None
