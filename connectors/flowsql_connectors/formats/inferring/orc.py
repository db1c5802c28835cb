"""Columns of orc files: what the files themselves say."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_connectors.formats.columnar.orc import open_orc
from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.inferring.sampling import InferredFormat
from flowsql_connectors.formats.inferring.typed_files import told_columns
from flowsql_connectors.options import OptionValues


def infer_orc(files: Sequence[FileView], given: OptionValues, suffix: str) -> InferredFormat:
    """Columns of all files, by name; numbers of several widths get the widest.

    Raises:
        ConnectorError: a file is damaged, files do not go together, or a column has no SQL type.
    """
    return InferredFormat(told_columns(files, lambda file: open_orc(file).schema))
