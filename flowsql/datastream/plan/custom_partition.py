"""``partition_custom``: a program's partitioner as the assignment of a batch's rows to channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError, FlowSqlError, NotSupportedYetError
from flowsql_core.graph.stream_specs import VALUE
from flowsql_core.stream.functions import Function, KeySelector, Partitioner


def custom_assigner(partitioner: Any, key_selector: Any) -> Callable[[ChangelogBatch, int], npt.NDArray[np.int32]]:
    """``(batch, channels) -> int32 (n,)``: the channel of each row.

    Raises:
        NotSupportedYetError: one of the functions wants to be opened; exchanges open nothing.
    """
    for function in (partitioner, key_selector):
        if isinstance(function, Function) and type(function).open is not Function.open:
            raise NotSupportedYetError(f"open() of a {type(function).__name__} in partition_custom")
    partition = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
    get_key = key_selector.get_key if isinstance(key_selector, KeySelector) else key_selector

    def assign(batch: ChangelogBatch, channels: int) -> npt.NDArray[np.int32]:
        # Objects of a program: row by row by nature.
        chosen: list[int] = []
        value: Any = None
        try:
            for value in batch.columns[VALUE].values.tolist():
                channel = partition(get_key(value), channels)
                if not isinstance(channel, int | np.integer) or not 0 <= channel < channels:
                    raise ExecutionError(
                        "bad-partition",
                        f"The partitioner answered {channel!r}, which is not one of {channels} subtasks.",
                    )
                chosen.append(int(channel))
        except FlowSqlError:
            raise
        except (Exception, SystemExit) as error:
            from flowsql_runtime.stream.failure import user_failure  # after a failure only

            raise user_failure(error, partitioner, "partition", value) from error
        return np.array(chosen, dtype=np.int32)

    return assign
