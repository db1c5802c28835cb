"""Partitioning by a program: the resource of a CUSTOM edge of Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import VALUE


class ObjectPartitioner:
    """Calls the user's partitioner for the key of each element.

    ``partitioner``: a Partitioner or a callable ``(key, channels) -> int``; ``selector``: a KeySelector or a callable.
    """

    def __init__(self, partitioner: Any, selector: Any) -> None:
        self._partition = getattr(partitioner, "partition", partitioner)
        self._key = getattr(selector, "get_key", selector)

    def __call__(self, batch: ChangelogBatch, channels: int) -> npt.NDArray[np.int32]:
        """The channel of each row, int32 (n,)."""
        partition, key = self._partition, self._key
        return np.fromiter(
            (partition(key(value), channels) for value in batch.columns[VALUE].values), np.int32, batch.num_rows
        )
