"""Columns that are gathered when they are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns, late_columns


def _batch() -> ChangelogBatch:
    return ChangelogBatch.of([pa.array(range(10)), pa.array([f"text {i}" for i in range(10)])])


def test_filters_and_parts_compose_without_a_copy() -> None:
    batch = _batch()
    odd = batch.filter(np.arange(10) % 2 == 1)
    part = odd.part(np.array([0, 2, 4], np.int32))
    assert isinstance(part.columns, LateColumns)
    origin = part.columns.origin(1)
    assert origin is not None
    assert origin[0] is batch.columns[1]
    assert origin[1].tolist() == [1, 5, 9]
    assert part.columns[1].to_pylist() == ["text 1", "text 5", "text 9"]
    assert part.columns.origin(1) is None
    assert part.take(np.array([1])).columns[0].to_pylist() == [5]
    # What was read is the start of the next selection.
    assert part.part(np.array([2])).columns[1].to_pylist() == ["text 9"]


def test_late_and_new_columns_side_by_side() -> None:
    kept = _batch().filter(np.arange(10) > 7)
    columns = late_columns(kept.columns, [1, pa.array([True, False]), 0])
    assert isinstance(columns, LateColumns)
    assert columns.origin(0) is not None
    assert [column.to_pylist() for column in columns] == [["text 8", "text 9"], [True, False], [8, 9]]
    assert columns[1:] == (columns[1], columns[2])
    assert columns[-1].to_pylist() == [8, 9]
