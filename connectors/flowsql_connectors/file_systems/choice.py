"""Which file system a URI means: S3 by its options, what Arrow knows, what fsspec knows. Tables and snapshots ask here.

Source: ``pyarrow.fs.FileSystem.from_uri``, ``fsspec.core.url_to_fs``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from flowsql_connectors.file_systems.s3 import S3_OPTIONS, S3_SCHEMES, open_s3
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.secrets.placeholders import filled

#: File systems by what they were opened with: connections are kept.
_OPENED: Final[dict[tuple[str, ...], Any]] = {}
_LOCK: Final = threading.Lock()


def is_remote(path: str) -> bool:
    """Whether a path is a URI of another scheme than ``file``."""
    scheme, mark, _ = path.partition("://")
    return bool(mark) and len(scheme) > 1 and scheme != "file" and scheme[0].isalpha() and scheme.isascii()


def open_file_system(location: str, settings: Mapping[str, str] | None = None) -> tuple[Any, str]:
    """The file system of a URI as ``pyarrow.fs`` has them, and the URI's path in it.

    Args:
        location: with a scheme; what stands behind a ``?`` is read by Arrow (``endpoint_override=...``).
        settings: a job's or a session's configuration, by keys; ``s3.*`` of it are read. None: not known here; a
            connection that this process has to the bucket is taken.

    Raises:
        ConnectorError: ``unknown-file-system``, nothing can open it; ``storage-unreachable``, what should did not.
    """
    parts = urlsplit(location)
    if parts.scheme in S3_SCHEMES and "@" not in parts.netloc and "?" not in location:
        bucket, path = location.split("://", 1)[1].partition("/")[::2]
        return _opened_s3(bucket, settings, location), f"{bucket}/{path}".rstrip("/")
    return _by_uri(location)


def _opened_s3(bucket: str, settings: Mapping[str, str] | None, location: str) -> Any:
    if settings is None:
        with _LOCK:
            newest = next((files for key, files in reversed(_OPENED.items()) if key[:2] == ("s3", bucket)), None)
        if newest is not None:
            return newest
        settings = {}
    texts = {option.key: filled(settings.get(option.key, "")) for option in S3_OPTIONS}
    texts = {key: text for key, text in texts.items() if text}
    key = ("s3", bucket, *(f"{name}={text}" for name, text in texts.items()))
    with _LOCK:
        known = _OPENED.get(key)
    if known is None:
        try:
            known = open_s3(bucket, texts)
        except ValueError as error:
            raise BindError("invalid-option-value", f"'{location}' cannot be opened: {error}.") from error
        except OSError as error:
            raise ConnectorError("storage-unreachable", f"'{location}' cannot be opened: {error}.") from error
        with _LOCK:
            _OPENED[key] = known
    return known


def _by_uri(location: str) -> tuple[Any, str]:
    from pyarrow import fs

    try:
        files, base = fs.FileSystem.from_uri(location)
        return files, base
    except Exception as by_arrow:  # an unknown scheme, or one that this build of Arrow lacks
        try:
            import fsspec
        except ImportError:
            raise ConnectorError(
                "unknown-file-system",
                f"'{location}' cannot be opened: {by_arrow}.",
                hint="Arrow knows file, s3, gs, abfs and hdfs; 'pip install fsspec' adds others",
            ) from by_arrow
        try:
            files, base = fsspec.core.url_to_fs(location)
        except Exception as error:  # a missing client library, an unknown scheme
            raise ConnectorError(
                "unknown-file-system",
                f"Could not find a file system implementation for scheme '{urlsplit(location).scheme}' "
                f"(path '{location}'): {error}.",
                hint="Arrow knows s3, gs, abfs and hdfs; fsspec others, with the package of each installed",
            ) from error
        return fs.PyFileSystem(fs.FSSpecHandler(files)), base
