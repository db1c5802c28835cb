"""Names of files in a manifest: nothing that a snapshot says leads out of its folder and the shared files beside it."""

from __future__ import annotations

import re
from typing import Final

from flowsql_core.errors import ConnectorError

#: A file, in one folder.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*|\.[A-Za-z0-9_-][A-Za-z0-9._-]*")
#: A file that :class:`SharedFiles` named, in the folder of shared files of a job below some folder.
_SHARED: Final = re.compile(r"(.*)/[A-Za-z0-9_-][A-Za-z0-9._-]*/shared/[0-9a-f]{32}")


def plain_name(name: str, path: str) -> str:
    """Return a name that stands for a file right in a folder.

    Args:
        path: of the file that says the name, for the message.

    Raises:
        ConnectorError: it leads elsewhere.
    """
    if _PLAIN.fullmatch(name) is None:
        raise _leads_out(name, path)
    return name


def shared_name(file: str, path: str) -> str:
    """Return where a shared file is: ``shared/NAME``, or in the shared folder of another job of the same storage.

    Args:
        path: of ``_metadata``, in a folder of a snapshot below that of its job.

    Raises:
        ConnectorError: it is elsewhere.
    """
    head, slash, name = file.partition("/")
    if slash and head == "shared" and "/" not in name:
        plain_name(name, path)
        return file
    found = _SHARED.fullmatch(file.partition("?")[0])
    if found is None or found[1] != jobs_folder(path.removesuffix("/_metadata")):
        raise _leads_out(file, path)
    return file


def jobs_folder(folder: str) -> str | None:
    """Return what holds the folders of jobs, given one in a job's folder; None where there is nothing above."""
    parts = folder.rsplit("/", 2)
    return parts[0] if len(parts) == 3 and parts[0] else None


def _leads_out(name: str, path: str) -> ConnectorError:
    return ConnectorError(
        "snapshot-names-other-files",
        f"The snapshot's file '{path}' names the file '{name}', which is not in the snapshot's folder.",
        hint="do not use it: FlowSQL writes no such snapshot",
    )
