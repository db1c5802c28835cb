"""Columns of files that hold their types themselves (parquet, orc, avro)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.inferring.sampling import differing, sampled
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.types.arrow import from_arrow
from flowsql_core.types.logical import STRING, Column, Schema


def told_columns(files: Sequence[FileView], schema_of: Callable[[FileView], pa.Schema]) -> Schema:
    """Columns of all files, by name; numbers of several widths get the widest.

    Raises:
        ConnectorError: a file is damaged, files do not go together, or a column has no SQL type.
    """
    looked_at = sampled(files)
    schema: pa.Schema | None = None
    for file in looked_at:
        own = schema_of(file).remove_metadata()
        try:
            schema = own if schema is None else pa.unify_schemas([schema, own], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise differing(file.path, f"does not go together ({error}) with", looked_at[0].path) from error
    assert schema is not None, "there is at least one file"
    columns = []
    for field in schema:
        try:
            columns.append(Column(field.name, STRING if pa.types.is_null(field.type) else from_arrow(field.type)))
        except FlowSqlError as error:
            raise without_type(field.name, looked_at[0].path, field.type) from error
    return tuple(columns)


def without_type(name: str, path: str, type_: object) -> ConnectorError:
    """The error for a column whose type SQL has not."""
    return ConnectorError("no-sql-type", f"Column '{name}' of {path} is {type_}, which SQL has no type for.")
