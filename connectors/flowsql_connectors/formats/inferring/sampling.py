"""What a format finds out about files, which of them it looks at, and errors of those that do not go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_connectors.formats.format import FileView
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record
from flowsql_core.types.logical import Schema

#: Bytes of the first file that are looked at, and of each further one.
SAMPLE_BYTES: Final = 2 * 1024 * 1024
FURTHER_BYTES: Final = 256 * 1024
#: Files that are looked at, spread over all of them.
SAMPLED_FILES: Final = 8


@record
class InferredFormat:
    """Columns of files, the options with which their format reads them, and what a user is told of that, in words."""

    columns: Schema
    options: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def sampled(files: Sequence[FileView]) -> list[FileView]:
    """Some of the files that have contents, the first and the last one among them.

    Raises:
        ConnectorError: all are empty.
    """
    full = [file for file in files if file.size]
    if not full:
        raise empty(files[0].path if len(files) == 1 else f"{files[0].path} and {len(files) - 1} more", len(files) > 1)
    if len(full) <= SAMPLED_FILES:
        return full
    step = (len(full) - 1) / (SAMPLED_FILES - 1)
    return [full[round(at * step)] for at in range(SAMPLED_FILES)]


def empty(path: str, several: bool = False) -> ConnectorError:
    """The error for files without rows."""
    return ConnectorError(
        "empty-file",
        f"{'Files' if several else 'File'} {path} {'are' if several else 'is'} empty: columns cannot be inferred.",
        hint="CREATE TABLE with columns declares them",
    )


def differing(path: str, what: str, first: str) -> ConnectorError:
    """The error for files that do not belong together."""
    return ConnectorError(
        "files-differ",
        f"File {path} {what} {first}: they are not rows of one table.",
        hint="name files of one kind, or declare a table for each",
    )
