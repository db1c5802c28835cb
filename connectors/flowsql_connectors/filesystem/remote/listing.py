"""Finding files that are not on this machine: what a URI, with or without a glob in it, leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from glob import has_magic
from typing import Any, Final

from flowsql_connectors.file_systems.remote import Place, no_such_bucket, place_of, storage_error
from flowsql_connectors.file_systems.s3 import S3_SCHEMES

_EVERYTHING_BELOW: Final = "**"


class RemoteListing:
    """What is behind one URI.

    Args:
        uri: of a file, a folder or several (``s3://bucket/logs/*.csv``; ``**`` stands for any folders).
        settings: of the job or session.
    """

    def __init__(self, uri: str, settings: Mapping[str, str]) -> None:
        self._uri = uri
        self._place: Place = place_of(uri, settings)

    def roots(self) -> list[Any]:
        """The files and folders that the URI itself names, as Arrow's FileInfo, by their paths.

        Raises:
            ConnectorError: the storage did not answer, or refused.
        """
        place = self._place
        key = self._uri[len(place.head) :].strip("/")
        if not has_magic(key):
            return [info for info in self._asked(place.path(self._uri)) if _is_there(info)]
        found = [place.path(place.head)]
        segments = key.split("/")
        fixed = next(at for at, segment in enumerate(segments) if has_magic(segment))
        if fixed:
            found = [f"{found[0].rstrip('/')}/{'/'.join(segments[:fixed])}"]
        for segment in segments[fixed:]:
            found = list(dict.fromkeys(self._expanded(found, segment)))
        names = [path for path in found if not path.rpartition("/")[2].startswith("_")]
        return [info for path in sorted(names) for info in self._asked(path) if _is_there(info)]

    def files(self) -> Iterator[tuple[str, int, int]]:
        """URI, bytes and time of change (epoch milliseconds) of every visible file; sub-folders count."""
        from pyarrow import fs

        seen = set()
        for root in self.roots():
            found = [root] if root.type == fs.FileType.File else self._listed(root.path, recursive=True)
            above = len(root.path.rstrip("/")) + 1
            for info in found:
                hidden = info is not root and _is_hidden(info.path[above:])
                if info.type == fs.FileType.File and not hidden and info.path not in seen:
                    seen.add(info.path)
                    yield self._place.uri(info.path), info.size, _modified_ms(info)

    def _expanded(self, folders: list[str], segment: str) -> Iterator[str]:
        """What one segment of a glob makes of some folders."""
        from pyarrow import fs

        for folder in folders:
            if segment == _EVERYTHING_BELOW:
                yield folder
                below = self._listed(folder, recursive=True)
                above = len(folder.rstrip("/")) + 1
                yield from (
                    info.path
                    for info in below
                    if info.type == fs.FileType.Directory and not _is_hidden(f"{info.path[above:]}/")
                )
            elif has_magic(segment):
                for info in self._listed(folder, recursive=False):
                    name = info.path.rstrip("/").rpartition("/")[2]
                    if fnmatchcase(name, segment) and (not name.startswith(".") or segment.startswith(".")):
                        yield info.path
            else:
                yield f"{folder.rstrip('/')}/{segment}"

    def _asked(self, path: str) -> list[Any]:
        """What is at a path. S3 says of an object only that it is not there, also where there is no bucket."""
        info = self._of(lambda: self._place.files.get_file_info(path))
        if not _is_there(info) and self._place.scheme in S3_SCHEMES and not self._has_bucket():
            raise no_such_bucket(self._uri)
        return [info]

    def _has_bucket(self) -> bool:
        try:
            return _is_there(self._place.files.get_file_info(self._place.base))
        except Exception:  # it may be that nobody may ask, although objects may be read
            return True

    def _listed(self, path: str, recursive: bool) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(path, recursive=recursive)
        try:
            found: list[Any] = self._place.files.get_file_info(selector)
        except FileNotFoundError:
            return []
        except Exception as error:  # file systems of users raise what they like
            raise storage_error(self._uri, error) from error
        return found

    def _of(self, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except Exception as error:  # file systems of users raise what they like
            raise storage_error(self._uri, error) from error


def _is_there(info: Any) -> bool:
    from pyarrow import fs

    return bool(info.type != fs.FileType.NotFound)


def _is_hidden(relative: str) -> bool:
    """By the rule of local files: names that start with ``.`` or ``_``, but for folders ``_key=value``."""
    *folders, name = relative.split("/")
    return name.startswith((".", "_")) or any(part.startswith((".", "_")) and "=" not in part for part in folders)


def _modified_ms(info: Any) -> int:
    return 0 if info.mtime_ns is None else int(info.mtime_ns // 1_000_000)
