"""Format name -> how columns of its files are inferred, imported on use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, cast

from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.inferring.sampling import InferredFormat
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import BindError

#: Options that hold whatever a sample looks like; the suffix of the files, in small letters, without a compression's.
Infer = Callable[[Sequence[FileView], OptionValues, str], InferredFormat]

_FORMATS: Final = {
    "csv": "flowsql_connectors.formats.inferring.csv:infer_csv",
    "json": "flowsql_connectors.formats.inferring.json:infer_json",
    "parquet": "flowsql_connectors.formats.inferring.parquet:infer_parquet",
    "orc": "flowsql_connectors.formats.inferring.orc:infer_orc",
    "avro": "flowsql_connectors.formats.inferring.avro:infer_avro",
}


def infer_format(identifier: str, files: Sequence[FileView], given: OptionValues, suffix: str) -> InferredFormat:
    """Columns and options of files that nobody declared, from a sample of them.

    Raises:
        ConnectorError: the files are empty, damaged, or do not go together.
        BindError: files of this format do not tell their columns.
    """
    if identifier not in _FORMATS:
        raise BindError(
            "no-columns",
            f"Files of format '{identifier}' do not tell their columns.",
            hint="declare them: CREATE TABLE t (...) WITH (...)",
        )
    module, _, name = _FORMATS[identifier].partition(":")
    return cast(Infer, getattr(import_module(module), name))(files, given, suffix)
