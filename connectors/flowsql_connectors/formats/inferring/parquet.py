"""Columns of parquet files: what the files themselves say."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.inferring.sampling import InferredFormat
from flowsql_connectors.formats.inferring.typed_files import told_columns
from flowsql_connectors.formats.parquet import UTC_TIMEZONE, open_parquet
from flowsql_connectors.options import OptionValues
from flowsql_core.types.logical import TimestampType


def infer_parquet(files: Sequence[FileView], given: OptionValues, suffix: str) -> InferredFormat:
    """Columns of all files, by name; numbers of several widths get the widest.

    Raises:
        ConnectorError: a file is damaged, files do not go together, or a column has no SQL type.
    """
    columns = told_columns(files, _schema)
    # Stored wall clocks stay as they are, whatever the time zone of the machine.
    stamps = any(isinstance(column.type, TimestampType) for column in columns)
    options = ((UTC_TIMEZONE.key, "true"),) if stamps and not given.has(UTC_TIMEZONE) else ()
    return InferredFormat(columns, options)


def _schema(file: FileView) -> pa.Schema:
    with open_parquet(file) as parquet:
        return parquet.schema_arrow
