"""Rows of a stream to the columns that a sink writes."""

from __future__ import annotations

from flowsql.common.typeinfo import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from flowsql.datastream.bridges.columns import column_maker
from flowsql.datastream.plan.operators import BatchMap
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import VALUE
from flowsql_core.types.logical import Schema


def columns_of_rows(type_: TypeInformation, columns: Schema, writer: str) -> BatchMap:
    """Fields by their places.

    Args:
        writer: what takes them, as messages call it.

    Raises:
        TypeError: the stream is of no rows with as many fields.
    """
    inner = type_.type_info if isinstance(type_, ExternalTypeInfo) else type_
    if not isinstance(inner, RowTypeInfo | TupleTypeInfo):
        raise TypeError(
            f"{writer[:1].upper()}{writer[1:]} takes a stream of rows, this one is of {type_!r}: declare it, e.g. "
            "map(..., output_type=Types.ROW([...]))"
        )
    count = len(inner.get_field_types())
    if count != len(columns):
        raise TypeError(f"The rows of the stream have {count} fields, {writer} has {len(columns)}.")
    makers = [column_maker(column) for column in columns]

    def convert(batch: ChangelogBatch) -> ChangelogBatch:
        values = batch.columns[VALUE].values.tolist()
        made = tuple(make([value[place] for value in values]) for place, make in enumerate(makers))
        return ChangelogBatch(made, batch.num_rows, None, None, batch.track)

    return convert
