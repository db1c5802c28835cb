"""Calls that see one frame of sorted rows: what the operator of OVER asks of them, whatever computes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.literal import literal_array
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.graph.bounded_specs import OverFrame
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema, without_attribute
from flowsql_runtime.operators.bounded.over.frames import Partitions

Int64s = npt.NDArray[np.int64]


class FrameCalls(ABC):
    """Calls of one frame.

    Partitions that are in memory are answered by :meth:`results`. Of one that is not, the rows come in parts: all of
    them by :meth:`take_part` where :attr:`takes_parts`, before any result is asked for.

    Args:
        calls: arguments are columns of ``input`` and, behind them, ``constants``.
    """

    def __init__(
        self, calls: Sequence[AggregateCall], input: Schema, constants: Sequence[Literal], frame: OverFrame
    ) -> None:
        width = len(input)
        used = sorted({arg.index for call in calls for arg in call.args})
        self._columns = [index for index in used if index < width]
        self._constants = [constants[index - width] for index in used if index >= width]
        own = [Column(input[index].name, without_attribute(input[index].type)) for index in self._columns]
        #: What calls read: columns, then constants.
        self._schema = (*own, *(Column(f"c{i}", constant.type) for i, constant in enumerate(self._constants)))
        self._calls = [
            replace(
                call,
                args=tuple(InputRef(used.index(arg.index), without_attribute(arg.type), arg.span) for arg in call.args),
            )
            for call in calls
        ]
        self._types = [to_arrow(call.type) for call in calls]
        self._frame = frame

    @property
    def whole(self) -> bool:
        """Whether all rows of a partition see all of it."""
        return self._frame.start is None and self._frame.end is None

    @property
    @abstractmethod
    def takes_parts(self) -> bool:
        """Whether results of a partition that is not in memory need all its rows first."""

    @property
    def types(self) -> list[Any]:
        """Arrow types of the results."""
        return self._types

    def _values(self, columns: Sequence[Any], n: int) -> list[Any]:
        """Arguments of the calls."""
        values = [columns[index] for index in self._columns]
        return values + [literal_array(constant, n) for constant in self._constants]

    @abstractmethod
    def results(self, columns: Sequence[Any], partitions: Partitions, low: Int64s, high: Int64s) -> list[Any]:
        """A column a call.

        Args:
            columns: the input's, sorted.
            low, high: the frame of each row.
        """

    @abstractmethod
    def begin(self) -> None:
        """One partition whose rows come in parts: no row yet."""

    @abstractmethod
    def take_part(self, columns: Sequence[Any], n: int) -> None:
        """Rows of the partition; the next ones in order."""

    @abstractmethod
    def results_of_parts(self, low: Int64s, high: Int64s) -> list[Any]:
        """A column a call, of frames as positions among the rows of all parts."""

    def end(self) -> None:
        """All rows of the partition are answered."""
