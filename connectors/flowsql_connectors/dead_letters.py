"""Files of dead letters: JSON lines in a folder, which a json table reads."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flowsql_connectors.file_systems.private import make_private, open_private
from flowsql_connectors.filesystem.durable import sync_paths
from flowsql_core.errors import ConnectorError


def make_folder(table: str, folder: str) -> None:
    """Make the folder: a table over it can be read before there is a letter.

    Raises:
        ConnectorError: it cannot be made.
    """
    path = Path(folder).absolute()
    new = [each for each in (path, *path.parents) if not each.exists()]
    try:
        make_private(path)
    except OSError as error:
        raise _unwritable(table, folder, error) from error
    sync_paths([str(each.parent) for each in new])


def write_letters(table: str, folder: str, target: Path, letters: Sequence[Mapping[str, object]]) -> None:
    """A file of letters, a line each, in the place of one of that name; on the disk when this returns.

    Args:
        table: whose rows they were, for the message.
        folder: as the table names it.

    Raises:
        ConnectorError: it cannot be written.
    """
    lines = [json.dumps(letter, ensure_ascii=False) for letter in letters]
    try:
        make_private(target.parent)
        # Two jobs of one process may read the same rows; a hidden file that a crash leaves is no letter.
        scratch = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
        # They are the user's data: nobody else reads them.
        with open(open_private(scratch), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        # A checkpoint that counts on the letters survives a power failure.
        sync_paths((str(scratch),))
        os.replace(scratch, target)
        sync_paths((str(target.parent),))
    except OSError as error:
        raise _unwritable(table, folder, error) from error


def read_letters(file: Path) -> list[dict[str, Any]]:
    """The letters of a file of :func:`write_letters`; none of one that was removed."""
    try:
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []


def _unwritable(table: str, folder: str, error: OSError) -> ConnectorError:
    return ConnectorError("dead-letter", f"Cannot write bad rows of table '{table}' to '{folder}': {error.strerror}")
