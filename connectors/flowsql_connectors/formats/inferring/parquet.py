"""Columns of parquet files: what the files themselves say."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.inferring.sampling import InferredFormat, differing, sampled
from flowsql_connectors.formats.parquet import UTC_TIMEZONE, open_parquet
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.types.arrow import from_arrow
from flowsql_core.types.logical import STRING, Column, TimestampType


def infer_parquet(files: Sequence[FileView], given: OptionValues, suffix: str) -> InferredFormat:
    """Columns of all files, by name; numbers of several widths get the widest.

    Raises:
        ConnectorError: a file is damaged, or files do not go together.
        NotSupportedYetError: a column has no SQL type.
    """
    looked_at = sampled(files)
    schema: pa.Schema | None = None
    for file in looked_at:
        with open_parquet(file) as parquet:
            own = parquet.schema_arrow.remove_metadata()
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
            raise ConnectorError(
                "no-sql-type",
                f"Column '{field.name}' of {looked_at[0].path} is {field.type}, which SQL has no type for.",
            ) from error
    # Stored wall clocks stay as they are, whatever the time zone of the machine.
    stamps = any(isinstance(column.type, TimestampType) for column in columns)
    options = ((UTC_TIMEZONE.key, "true"),) if stamps and not given.has(UTC_TIMEZONE) else ()
    return InferredFormat(tuple(columns), options)
