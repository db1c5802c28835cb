"""What pyiceberg does without a public name for it. The extra pins its minor release for the sake of this file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyiceberg.expressions import BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table


def record_batches(table: Table, schema: Schema, row_filter: BooleanExpression, task: FileScanTask) -> Iterator[Any]:
    """The rows of a data file, batch by batch, without those that delete files name.

    The public ``ArrowScan.to_record_batches`` holds a whole file in memory.
    """
    scan = ArrowScan(table.metadata, table.io, schema, row_filter)
    deletes = _read_all_delete_files(table.io, [task])
    return scan._record_batches_from_scan_tasks_and_deletes([task], deletes)


def without_retries(table: Table) -> Table:
    """A table whose transactions do not repeat commits by themselves.

    Whoever repeats a commit must look before whether another one has done it.
    """
    table.metadata.properties["commit.retry.num-retries"] = "0"
    return table
