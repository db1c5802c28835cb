"""Finding a table's files: paths, folders, globs, hidden names, partition folders, compression by extension."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.file_systems.remote import RemoteFile, place_of
from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.rows_in_bytes import unreadable
from flowsql_core.errors import ConnectorError, NotSupportedYetError
from flowsql_core.record import record

#: Flink's StandardDeCompressors by file name extension.
_COMPRESSION: Final = {
    "gz": "gzip",
    "gzip": "gzip",
    "bz2": "bz2",
    "xz": "xz",
    "deflate": "deflate",
    "zst": "zstd",
}

DEFAULT_PARTITION_NAME: Final = "__DEFAULT_PARTITION__"


@record
class FoundFile:
    """A file of a table. ``partition``: values of the partition columns as texts, None for NULL."""

    path: str
    size: int
    modified_ms: int
    partition: tuple[str | None, ...] = ()

    @property
    def compression(self) -> str | None:
        """The codec that the extension names, None for a plain file."""
        return _COMPRESSION.get(self.path.rpartition(".")[2].lower()) if "." in os.path.basename(self.path) else None

    def view(self, settings: Mapping[str, str]) -> FileView:
        """The file as formats see it; ``settings`` of the job or session tell how remote ones are reached."""
        remote = None
        if is_remote(self.path):
            place = place_of(self.path, settings)
            remote = RemoteFile(place.files, place.path(self.path), self.path)
        return FileView(self.path, self.size, self.compression, remote=remote)


def local_path(path: str) -> str:
    """A plain path of ``/a/b`` or ``file:///a/b``.

    Raises:
        NotSupportedYetError: a URI of another scheme.
        ConnectorError: an empty path.
    """
    if not path.strip():
        raise ConnectorError("invalid-path", "Path should not be null or empty.")
    parts = urlsplit(path)
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.scheme and len(parts.scheme) > 1 and "://" in path:
        raise NotSupportedYetError(
            f"Could not find a file system implementation for scheme '{parts.scheme}' (path '{path}')"
        )
    return path


def find_files(
    path: str,
    partition_keys: tuple[str, ...] = (),
    default_name: str = DEFAULT_PARTITION_NAME,
    pattern: re.Pattern[str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[FoundFile]:
    """All visible files under a path, sorted by path.

    ``path`` is a file, a folder (read with its sub-folders) or a glob. Names that start with ``.`` or ``_`` are hidden,
    as in Flink; a partition folder ``key=value`` gives its value to the files below. What a writer takes away while its
    folder is listed is left out, as is a link to nothing. ``settings`` of the job or session tell how remote files are
    reached. A partitioned table whose folder is not there has no partitions, as in Flink.

    Raises:
        ConnectorError: nothing is there, or it may not be read.
    """
    if is_remote(path):
        return _find_remote(path, partition_keys, default_name, pattern, settings or {})
    root = local_path(path)
    if os.path.exists(root):
        roots = [root]
    elif glob.has_magic(root):
        # A `*` of the glob module passes `_x` (and nothing that starts with a dot).
        roots = sorted(name for name in glob.glob(root, recursive=True) if not os.path.basename(name).startswith("_"))
        if not roots:
            raise unreadable(root)
    elif partition_keys and not os.path.lexists(root):
        return []
    else:
        raise unreadable(root)
    found = []
    for start in roots:
        for file in _walk(start, is_root=True):
            if pattern is None or pattern.fullmatch(os.path.abspath(file)):
                found += _stat(file, partition_keys, default_name)
    return sorted(found, key=lambda file: file.path)


def _find_remote(
    path: str,
    partition_keys: tuple[str, ...],
    default_name: str,
    pattern: re.Pattern[str] | None,
    settings: Mapping[str, str],
) -> list[FoundFile]:
    from flowsql_connectors.filesystem.remote.listing import RemoteListing

    listing = RemoteListing(path, settings)
    found = [
        FoundFile(uri, size, modified_ms, _partition_of(uri, partition_keys, default_name) if partition_keys else ())
        for uri, size, modified_ms in listing.files()
        if pattern is None or pattern.fullmatch(uri)
    ]
    if not found and not partition_keys and not listing.roots():
        raise unreadable(path)
    return sorted(found, key=lambda file: file.path)


def _walk(path: str, is_root: bool) -> Iterator[str]:
    name = os.path.basename(path.rstrip("/"))
    if not is_root and name.startswith((".", "_")) and not (os.path.isdir(path) and "=" in name):
        return
    if not os.path.isdir(path):
        yield path
        return
    try:
        names = sorted(os.listdir(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(path, error) from error
    for inner in names:
        yield from _walk(os.path.join(path, inner), is_root=False)


def _stat(path: str, partition_keys: tuple[str, ...], default_name: str) -> list[FoundFile]:
    """The file; none where it is gone."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(path, error) from error
    partition: tuple[str | None, ...] = ()
    if partition_keys:
        partition = _partition_of(path, partition_keys, default_name)
    return [FoundFile(path, status.st_size, int(status.st_mtime * 1000), partition)]


def _partition_of(path: str, keys: tuple[str, ...], default_name: str) -> tuple[str | None, ...]:
    values: dict[str, str] = {}
    for folder in os.path.dirname(path).split(os.sep):
        key, equals, value = folder.partition("=")
        if equals:
            values[unescape_path_name(key)] = unescape_path_name(value)
    missing = [key for key in keys if key not in values]
    if missing:
        raise ConnectorError(
            "no-partition-folder",
            f"File {path} is in no partition folder '{missing[0]}=...' although the table is partitioned by "
            + ", ".join(keys)
            + ".",
        )
    return tuple(None if values[key] == default_name else values[key] for key in keys)


#: Characters that Flink writes as %XX in partition folders.
_UNSAFE: Final = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{}\[\]^]""")


def escape_path_name(text: str) -> str:
    """A partition value as a folder name.

    >>> escape_path_name("a/b:c%d=e f")
    'a%2Fb%3Ac%25d%3De f'
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape_path_name(text: str) -> str:
    """The value behind a folder name."""
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)
