"""Columns of an answer as the texts that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.batch import ChangelogBatch


def columns_as_texts(result: TableResult, batch: ChangelogBatch, null_text: str) -> list[tuple[str, Any]]:
    """Names and texts (Arrow) of the columns of some rows, the kind of change first where rows have one."""
    import pyarrow as pa

    from flowsql.table.values.tableau import cells_of
    from flowsql_core.arrow import compute as pc
    from flowsql_core.row import SHORT_STRINGS

    columns: list[tuple[str, Any]] = []
    if result.streaming:
        kinds = pa.array(batch.kinds if batch.kinds is not None else [0] * batch.num_rows, pa.uint8())
        columns.append(("op", pc.take(pa.array(SHORT_STRINGS), kinds)))
    for column, data in zip(result.schema, batch.columns, strict=True):
        columns.append((column.name, cells_of(data, column, null_text, result.zone)))
    return columns
