"""The folder where the user's processes offer themselves: one socket each, nobody else may look in.

``$FLOWSQL_RUNTIME_DIR``, else ``$XDG_RUNTIME_DIR/flowsql``, else ``flowsql-<user id>`` where temporary files go.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from flowsql_core.errors import ExecutionError

FOLDER_VARIABLE: Final = "FLOWSQL_RUNTIME_DIR"
SUFFIX: Final = ".sock"


def control_folder() -> Path:
    """Where it is, there or not."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).absolute()
    own = os.environ.get("XDG_RUNTIME_DIR")
    if own and os.path.isabs(own):
        return Path(own) / "flowsql"
    return Path(tempfile.gettempdir()) / f"flowsql-{os.getuid()}"


def made_control_folder() -> Path:
    """The folder, made if need be.

    Raises:
        ExecutionError: it belongs to somebody else, or others may write there.
        OSError: it cannot be made.
    """
    folder = control_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_own(folder)
    return folder


def check_own(folder: Path) -> None:
    """Raise ExecutionError unless the folder is this user's alone: whoever may write there may stop jobs."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ExecutionError(
            "control-folder",
            f"'{folder}' is not a folder that belongs to this user alone (mode 0700).",
            hint=f"name another one in ${FOLDER_VARIABLE}",
        )


def sockets() -> Iterator[tuple[int, Path]]:
    """Process id and socket of every process that offers itself, or did; nothing where the folder is not there."""
    folder = control_folder()
    try:
        check_own(folder)
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        process, dash, _ = name.removesuffix(SUFFIX).partition("-")
        if name.endswith(SUFFIX) and dash and process.isdigit():
            yield int(process), folder / name
