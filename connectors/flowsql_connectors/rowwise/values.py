"""Rows of Python values as Arrow columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError, did_you_mean
from flowsql_core.row import RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema


def batch_of_rows(connector: str, schema: Schema, rows: Sequence[Any], kinds: Sequence[RowKind]) -> ChangelogBatch:
    """Rows that a source gave as a batch of all columns of the table.

    Raises:
        ConnectorError: a row has another shape than the table, or a value is none of its column's type.
    """
    table = [_cells(connector, schema, row) for row in rows]
    columns = [_column(connector, column, [row[place] for row in table]) for place, column in enumerate(schema)]
    codes = None if all(kind is RowKind.INSERT for kind in kinds) else np.array([int(k) for k in kinds], np.uint8)
    return ChangelogBatch.of(columns, num_rows=len(rows), kinds=codes)


def batch_of_arrow(connector: str, schema: Schema, rows: pa.RecordBatch) -> ChangelogBatch:
    """Rows of Arrow, found by the names of the table's columns, as a batch of all of these.

    Raises:
        ConnectorError: a column is missing, or its values are none of its type.
    """
    columns = []
    for column in schema:
        if column.name not in rows.schema.names:
            raise _bad(connector, f"gave rows without the column '{column.name}'", column.name, rows.schema.names)
        found = rows.column(column.name)
        try:
            columns.append(found.cast(to_arrow(column.type)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _bad_value(connector, column, str(found.type), error) from None
    return ChangelogBatch.of(columns, num_rows=rows.num_rows)


def metadata_of_rows(connector: str, keys: Schema, given: Sequence[Mapping[str, Any] | None]) -> list[pa.Array]:
    """Metadata that was given with rows, a column a key.

    Raises:
        ConnectorError: a value is none of its type.
    """
    return [_column(connector, key, [None if one is None else one.get(key.name) for one in given]) for key in keys]


def metadata_of_arrow(
    connector: str, schema: Schema, keys: Schema, rows: pa.RecordBatch, given: Mapping[str, Any] | None
) -> list[pa.Array]:
    """Metadata of rows of Arrow: columns that no column of the table is named like, or one value for all rows.

    Raises:
        ConnectorError: a value is none of its type.
    """
    names = {column.name for column in schema}
    made = []
    for key in keys:
        if given is not None and key.name in given:
            made += [_column(connector, key, [given[key.name]] * rows.num_rows)]
        elif key.name in rows.schema.names and key.name not in names:
            made += list(batch_of_arrow(connector, (key,), rows.select([key.name])).columns)
        else:
            made.append(pa.nulls(rows.num_rows, to_arrow(key.type)))
    return made


def _cells(connector: str, schema: Schema, row: Any) -> Sequence[Any]:
    if isinstance(row, Mapping):
        names = [column.name for column in schema]
        for name in row:
            if name not in names:
                raise _bad(connector, f"gave a row with '{name}', which is no column of the table", name, names)
        return [row.get(name) for name in names]
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        if len(row) != len(schema):
            raise _bad(connector, f"gave a row of {len(row)} values; the table has {len(schema)} columns: {row!r}")
        return row
    if len(schema) == 1:
        return (row,)
    raise _bad(connector, f"gave {row!r}: a row is a tuple, a list, or a dict by column")


def _column(connector: str, column: Column, values: list[Any]) -> pa.Array:
    type_ = to_arrow(column.type)
    try:
        return pa.array(values, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
        for value in values:
            try:
                pa.array([value], type_)
            except (pa.ArrowException, OverflowError, TypeError) as reason:
                raise _bad_value(connector, column, repr(value), reason) from None
        raise _bad_value(connector, column, "a value", error) from None


def _bad_value(connector: str, column: Column, value: str, reason: BaseException) -> ConnectorError:
    text = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
    return _bad(connector, f"gave {value} for the column '{column.name}' ({column.type}): {text}")


def _bad(connector: str, what: str, name: str = "", near: Sequence[str] = ()) -> ConnectorError:
    return ConnectorError("bad-row", f"The connector '{connector}' {what}.", hint=did_you_mean(name, near))
