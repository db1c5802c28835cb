"""Slices and windows of TUMBLE, HOP and CUMULATE on local wall-clock milliseconds.

A window is named by its exclusive end. A slice is the longest piece that no window border cuts: a row belongs to one
slice, a slice to one window or several.
Source: Li et al., "No Pane, No Gain", SIGMOD Record 34(1), 2005; Flink, ``SliceAssigners``.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.graph.specs import WindowKind, WindowSpec
from flowsql_core.record import record
from flowsql_runtime.kernels import slices as kernels

Int64s = npt.NDArray[np.int64]


@record
class Slicing:
    """The grid of one window definition; all in milliseconds."""

    kind: WindowKind
    size_ms: int
    step_ms: int
    offset_ms: int

    @staticmethod
    def of(spec: WindowSpec) -> Slicing:
        """The grid of a window specification."""
        return Slicing(spec.kind, spec.size_ms, spec.step_ms or spec.size_ms, spec.offset_ms)

    @property
    def slice_ms(self) -> int:
        """Length of a slice: the size, the gcd of size and slide, or the step."""
        match self.kind:
            case WindowKind.HOP:
                return math.gcd(self.size_ms, self.step_ms)
            case WindowKind.CUMULATE:
                return self.step_ms
            case _:
                return self.size_ms

    @property
    def slices_are_windows(self) -> bool:
        """Whether each slice is one window; else it belongs to several, to a part of one, or to none."""
        return self.kind is WindowKind.TUMBLE or self.size_ms == self.step_ms

    @property
    def has_gaps(self) -> bool:
        """Whether there are slices between windows, of which the last window ends before the first one."""
        return self.kind is WindowKind.HOP and self.step_ms > self.size_ms

    def slice_end(self, time_ms: Int64s) -> Int64s:
        """Exclusive end of the slice of each time; ``end - slice_ms <= time < end``.

        >>> Slicing(WindowKind.TUMBLE, 10, 10, 0).slice_end(np.array([0, 9, 10, -1])).tolist()
        [10, 10, 20, 0]
        """
        ends = np.empty(len(time_ms), np.int64)
        kernels.slice_ends(for_kernel(time_ms), self.slice_ms, self.offset_ms, ends)
        return ends

    def first_window_end(self, slice_end: Int64s) -> Int64s:
        """End of the first window that holds the slice."""
        if self.kind is not WindowKind.HOP:
            return slice_end
        # Windows end at offset + size + k * step.
        base = self.offset_ms + self.size_ms
        return base - (base - slice_end) // self.step_ms * self.step_ms

    def last_window_end(self, slice_end: Int64s) -> Int64s:
        """End of the last window that holds the slice.

        >>> Slicing(WindowKind.HOP, 10, 5, 0).last_window_end(np.array([5, 10])).tolist()
        [10, 15]
        """
        match self.kind:
            case WindowKind.TUMBLE:
                return slice_end
            case WindowKind.HOP:
                latest_start = (slice_end - self.slice_ms - self.offset_ms) // self.step_ms * self.step_ms
                return latest_start + (self.offset_ms + self.size_ms)
            case _:
                return self.period_end(slice_end)

    def period_end(self, window_end: Int64s) -> Int64s:
        """End of the longest CUMULATE window that starts where this one does."""
        return (window_end - 1 - self.offset_ms) // self.size_ms * self.size_ms + (self.size_ms + self.offset_ms)

    def start(self, window_end: Int64s) -> Int64s:
        """Inclusive start of each window."""
        if self.kind is WindowKind.CUMULATE:
            return self.period_end(window_end) - self.size_ms
        return window_end - self.size_ms

    def windows(self, slice_end: Int64s) -> tuple[npt.NDArray[np.int64], Int64s]:
        """All windows of each slice: (position in ``slice_end``, window end), by position, ends rising."""
        first, last = self.first_window_end(slice_end), self.last_window_end(slice_end)
        counts = np.maximum((last - first) // self.step_ms + 1, 0)
        positions = np.repeat(np.arange(len(slice_end)), counts)
        ordinal = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        return positions, first[positions] + ordinal * self.step_ms
