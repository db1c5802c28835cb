"""The rows that are left when all changes of an answer have come. Not for SQL paths."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flowsql.table.values.result_rows import rows_of
from flowsql_core.arrow import compute as pc
from flowsql_core.row import RowKind
from flowsql_core.types.arrow import arrow_schema
from flowsql_core.types.logical import DayTimeIntervalType

if TYPE_CHECKING:
    import pyarrow as pa

    from flowsql_core.batch import ChangelogBatch
    from flowsql_core.types.logical import Schema

_ADDED = (RowKind.INSERT, RowKind.UPDATE_AFTER)


def final_rows(batches: Iterable[ChangelogBatch], schema: Schema) -> pa.Table:
    """The rows in the order in which they came; a row that is taken back goes where it came first."""
    import pyarrow as pa

    held = list(batches)
    target = arrow_schema(schema)
    table = pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(list(batch.columns), schema=target) for batch in held], target
    )
    table = _with_durations(table, schema)
    if all(batch.kinds is None or not batch.kinds.any() for batch in held):
        return table
    # Rows are told apart by their text: it is the same for the same values, also for those that have no hash.
    places: defaultdict[str, deque[int]] = defaultdict(deque)
    for place, row in enumerate(row for batch in held for row in rows_of(batch, schema)):
        key = repr(list(row))
        if row.get_row_kind() in _ADDED:
            places[key].append(place)
        elif places[key]:
            places[key].popleft()
    left = sorted(place for held_places in places.values() for place in held_places)
    return pc.take(table, pa.array(left, pa.int64()))


def _with_durations(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with amounts of time as such; inside of the engine they are milliseconds."""
    import pyarrow as pa

    for place, column in enumerate(schema):
        if isinstance(column.type, DayTimeIntervalType):
            field = table.schema.field(place).with_type(pa.duration("ms"))
            table = table.set_column(place, field, pc.cast(table.column(place), field.type))
    return table


def in_zone(table: pa.Table, zone: str) -> pa.Table:
    """The table with points in time as the clock of a zone shows them."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            moved = pa.timestamp(field.type.unit, zone)
            table = table.set_column(place, field.with_type(moved), pc.cast(table.column(place), moved))
    return table
