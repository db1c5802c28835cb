"""Storage beside the disk for tests: fsspec's in the memory of the process, and a real S3 gateway."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyarrow import fs

from flowsql_connectors.file_systems.choice import open_file_system
from flowsql_core.errors import FlowSqlError


@dataclass
class Store:
    """A corner of a storage: ``root`` is its URI, ``settings`` reach it."""

    root: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def put(self, name: str, data: bytes | str) -> str:
        """Write an object; its URI."""
        uri = f"{self.root}/{name}"
        files, path = open_file_system(uri, self.settings)
        files.create_dir(path.rpartition("/")[0], recursive=True)
        with files.open_output_stream(path) as stream:
            stream.write(data.encode() if isinstance(data, str) else data)
        return uri

    def get(self, name: str) -> bytes:
        """The bytes of an object."""
        files, path = open_file_system(f"{self.root}/{name}", self.settings)
        with files.open_input_stream(path) as stream:
            return bytes(stream.read())

    def remove(self, name: str) -> None:
        """Delete an object."""
        files, path = open_file_system(f"{self.root}/{name}", self.settings)
        files.delete_file(path)

    def names(self, below: str = "") -> list[str]:
        """All objects by their names below the root, sorted."""
        files, path = open_file_system(f"{self.root}/{below}".rstrip("/"), self.settings)
        _, root = open_file_system(self.root, self.settings)
        found: list[Any] = files.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        above = len(root.strip("/")) + 1
        return sorted(info.path.strip("/")[above:] for info in found if info.type == fs.FileType.File)


def memory() -> Store:
    """A new corner of the memory of this process."""
    return Store(f"memory://{uuid.uuid4().hex}/t")


def s3(server: Mapping[str, str]) -> Store:
    """A new corner of a server's bucket."""
    settings = {
        "s3.endpoint": server["S3_ENDPOINT"],
        "s3.access-key": server["AWS_ACCESS_KEY_ID"],
        "s3.secret-key": server["AWS_SECRET_ACCESS_KEY"],
    }
    return Store(f"s3://{server['S3_BUCKET']}/{uuid.uuid4().hex}/t", settings)


def said(error: FlowSqlError) -> str:
    """Message and hint."""
    return f"{error} {error.hint or ''}"
