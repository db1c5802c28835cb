"""Functions of pandas with OVER over a bounded input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.column_bytes import joined
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall, Literal
from flowsql_core.graph.bounded_specs import OverFrame
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.over.frame_calls import FrameCalls
from flowsql_runtime.operators.bounded.over.frames import Partitions
from flowsql_runtime.operators.bounded.over.operator import BoundedOverOperator
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.python_aggregate.pandas_calls import PandasCalls, Ranges
from flowsql_runtime.task.memory import MEMORY, OperatorMemory

Int64s = npt.NDArray[np.int64]


class PandasOverOperator(BoundedOverOperator):
    """Rows are sorted as for built-in functions; a function is called with the rows of each frame.

    Of a partition that goes to a file, the columns that functions read stay in memory: a function sees a frame whole.

    Source: Flink, ``BatchArrowPythonOverWindowAggregateFunctionOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet; the functions are made."""
        self._python: list[PandasFrames] = []
        super().open(ctx)

    def _frame_calls(self, calls: Sequence[AggregateCall], frame: OverFrame) -> FrameCalls:
        made = PandasFrames(calls, self.spec.input, self.spec.constants, frame, self.ctx.memory)
        # Known before it is loaded: what was opened is closed also where opening fails half-way.
        self._python.append(made)
        made.load(self.ctx)
        return made

    def close(self) -> None:
        """The functions, too."""
        try:
            for frames in self._python:
                frames.close()
        finally:
            super().close()


class PandasFrames(FrameCalls):
    """Calls of one frame, each with slices of the Series of its partition. Arguments as of the base."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        input: Schema,
        constants: Sequence[Literal],
        frame: OverFrame,
        memory: OperatorMemory,
    ) -> None:
        super().__init__(calls, input, constants, frame)
        self._python = PandasCalls(self._calls, self._schema, range(len(self._schema)))
        self._memory = memory
        self._parts: list[list[Any]] = []
        self._num_rows = self._held_bytes = 0
        self._ranges: list[Ranges] | None = None

    def load(self, ctx: OperatorContext) -> None:
        """Make the functions."""
        self._python.load(ctx, eval_context(ctx).zone)

    def close(self) -> None:
        """Close them."""
        self._python.close()

    def results(self, columns: Sequence[Any], partitions: Partitions, low: Int64s, high: Int64s) -> list[Any]:
        """As of the base."""
        ranges = self._python.ranges(self._values(columns, len(low)))
        return self._python.frames(ranges, partitions.first, partitions.last, low, high)

    @property
    def takes_parts(self) -> bool:
        """Whether a Series has NULLs decides about its type: that is known when all rows are."""
        return True

    def begin(self) -> None:
        """No row yet."""
        self._parts, self._ranges = [], None
        self._num_rows = self._held_bytes = 0

    def take_part(self, columns: Sequence[Any], n: int) -> None:
        """Keep what functions read.

        Raises:
            ExecutionError: memory cannot hold it.
        """
        values = self._values(columns, n)
        size_bytes = sum(column.nbytes for column in values)
        if not self._memory.try_reserve(size_bytes):
            raise ExecutionError(
                "memory-exceeded",
                f"A function of pandas with OVER sees rows of a partition that does not fit in memory: the columns of "
                f"{self._num_rows + n} rows need {self._held_bytes + size_bytes} bytes.",
                self._calls[0].span,
                f"raise '{MEMORY.key}', or use a PARTITION BY with smaller partitions",
            )
        self._held_bytes += size_bytes
        self._num_rows += n
        self._parts.append(values)

    def results_of_parts(self, low: Int64s, high: Int64s) -> list[Any]:
        """Frames among the rows that were kept."""
        if self._ranges is None:
            self._ranges = self._python.ranges([joined(list(column)) for column in zip(*self._parts, strict=True)])
            self._parts = []
        first, last = np.zeros(len(low), np.int64), np.full(len(low), self._num_rows)
        return self._python.frames(self._ranges, first, last, low, high)

    def end(self) -> None:
        """Give the rows back."""
        self._memory.release(self._held_bytes)
        self.begin()
