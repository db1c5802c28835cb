"""Archives that functions open by relative paths: unpacked into the working directory of a worker process."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Sequence
from typing import Final

from flowsql_core.errors import ExecutionError
from flowsql_core.record import record

_ZIP: Final = (".zip", ".egg", ".whl", ".jar")
_TAR: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
#: Between archives, and between an archive and its folder: those of ``python.archives`` in Flink.
SEPARATOR: Final = ","
FOLDER_MARK: Final = "#"


@record
class Archive:
    """An archive. ``folder``: where its files appear, below the working directory."""

    path: str
    folder: str


def parse_archives(text: str) -> tuple[Archive, ...]:
    """Read ``a.zip,b.tar.gz#data``; without a folder it is the name of the archive.

    Raises:
        ValueError: an ending that is none of an archive, or a folder outside of the working directory.
    """
    return tuple(_parsed(part.strip()) for part in text.split(SEPARATOR) if part.strip())


def _parsed(text: str) -> Archive:
    path, mark, folder = text.partition(FOLDER_MARK)
    if not path.lower().endswith((*_ZIP, *_TAR)):
        raise ValueError(f"'{path}' is no archive; its name ends in one of {', '.join((*_ZIP, *_TAR))}")
    target = os.path.normpath(folder if mark else os.path.basename(path))
    if os.path.isabs(target) or target.split(os.sep)[0] == os.pardir:
        raise ValueError(f"the folder '{folder}' of archive '{path}' is not below the working directory")
    return Archive(path, target)


def unpack(archives: Sequence[Archive], directory: str) -> None:
    """Unpack archives below a directory.

    Raises:
        ExecutionError: an archive is not there, or is damaged.
    """
    for archive in archives:
        target = os.path.join(directory, archive.folder)
        try:
            if archive.path.lower().endswith(_ZIP):
                with zipfile.ZipFile(archive.path) as packed:
                    packed.extractall(target)
            else:
                with tarfile.open(archive.path) as packed_tar:
                    packed_tar.extractall(target, filter="data")
        except (OSError, zipfile.BadZipFile, tarfile.TarError) as error:
            raise ExecutionError(
                "python-archive", f"The archive '{archive.path}' cannot be unpacked: {error}"
            ) from error
