"""LISTAGG of rows that stand in an order: what each row's text goes on from, written out only where it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.arrow import compute as pc
from flowsql_core.column_bytes import MOST_BYTES, row_bytes
from flowsql_core.errors import ExecutionError
from flowsql_runtime.kernels.over import texts as kernels

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]


@dataclass(eq=False, slots=True)
class _Nodes:
    parents: Int64s
    sources: Int32s
    sizes: Int64s
    used: int = 1

    @classmethod
    def of(cls, most: int) -> _Nodes:
        """Room for so many nodes behind node 0, which is no text."""
        return cls(np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int32), np.zeros(most + 1, np.int64))


class RunningTexts:
    """Texts of one call over the rows of a batch, and those that stood before.

    Args:
        column: the own text of each row, NULL for none.
        separator: bytes between two texts.

    Source: Flink, ``ListAggFunction``: NULLs are passed over, and without any text the result is NULL.
    """

    def __init__(self, column: Any, separator: bytes) -> None:
        n = len(column)
        valid = validity(column)
        self._known = for_kernel(np.ones(n, np.uint8) if valid is None else valid.view(np.uint8))
        lengths = row_bytes(column)
        assert lengths is not None
        self._lengths = for_kernel(lengths.astype(np.int64))
        kind = np.dtype(np.int64 if pa.types.is_large_string(column.type) else np.int32)
        _, offsets, data = column.buffers()
        starts = np.frombuffer(offsets, kind, n, column.offset * kind.itemsize)
        self._starts = for_kernel(starts.astype(np.int64))
        self._data = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        self._separator: Bytes = np.frombuffer(separator, np.uint8)
        self._node_of = np.zeros(n, np.int64)

    def restart(self, rows: Int32s, befores: Int64s, events: int) -> None:
        """Forget all texts but those of rows as they stand now, and make room for ``events`` further ones.

        ``rows``: each behind the one before it, that of ``befores``, -1 for none.
        """
        self._node_of[:] = 0
        self._nodes = _Nodes.of(len(rows) + events)
        self.follow(rows, befores)

    def follow(self, rows: Int32s, befores: Int64s) -> TextResults:
        """Play events, as ``kernels.over.values.play`` lists them; the results before and after each."""
        nodes, results = self._nodes, np.empty(2 * len(rows), np.int64)
        nodes.used = kernels.link_texts(
            for_kernel(rows), for_kernel(befores), self._known, self._lengths, len(self._separator), self._node_of,
            nodes.parents, nodes.sources, nodes.sizes, nodes.used, results,
        )  # fmt: skip
        return TextResults(self, results)

    def sizes(self, nodes: Int64s) -> Int64s:
        """Bytes of the texts of nodes."""
        found: Int64s = self._nodes.sizes[nodes]
        return found

    def written(self, nodes: Int64s) -> Any:
        """The texts of nodes, a wide Arrow column (``flowsql_core.column_bytes``).

        Raises:
            ExecutionError: one of them is too long for any array.
        """
        sizes = self.sizes(nodes)
        if int(sizes.max(initial=0)) > MOST_BYTES:
            hint = "texts and bytes are shorter than 2 GiB"
            raise ExecutionError("value-too-long", "A text of LISTAGG takes more than 2 GiB.", hint=hint)
        offsets = np.zeros(len(nodes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        kernels.write_texts(
            for_kernel(nodes), self._nodes.parents, self._nodes.sources, self._starts, self._lengths,
            for_kernel(self._data), for_kernel(self._separator), offsets, out,
        )  # fmt: skip
        missing = nodes == 0
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
        if missing.any():
            buffers[0] = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        return pa.Array.from_buffers(pa.large_string(), len(nodes), buffers, int(missing.sum()))


@dataclass(frozen=True, eq=False, slots=True)
class TextResults:
    """Texts before (2i) and after (2i + 1) event i, as nodes; they hold until the next ``restart``."""

    texts: RunningTexts
    nodes: Int64s

    def changed(self) -> Bools:
        """Whether the texts of an event differ."""
        return ~self.equal(np.arange(0, len(self.nodes), 2), np.arange(1, len(self.nodes), 2))

    def equal(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Bools:
        """Whether results at two rows are the same, pairwise."""
        left, right = self.nodes[one], self.nodes[other]
        equal: Bools = left == right
        # Node 0 is NULL and has no bytes, as the empty text. Before and after one change of a row only empty texts get
        # this far (``kernels.link_texts``), so that next to nothing is written here.
        alike = ~equal & (left != 0) & (right != 0) & (self.texts.sizes(left) == self.texts.sizes(right))
        asked = np.flatnonzero(alike)
        if len(asked):
            same = pc.equal(self.texts.written(left[asked]), self.texts.written(right[asked]))
            equal[asked] = values_and_validity(same)[0]
        return equal

    def row_bytes(self, rows: npt.NDArray[Any]) -> Int64s:
        """Bytes of some results."""
        return self.texts.sizes(self.nodes[rows])

    def to_arrow(self, rows: npt.NDArray[Any]) -> Any:
        """Some results, wide."""
        return self.texts.written(self.nodes[rows])
