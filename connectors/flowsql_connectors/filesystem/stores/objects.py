"""Part files in an object store, which knows no rename: hidden objects are copied inside of the store, then deleted.

An object is there with all its bytes or not at all, a copy too, and a copy that is repeated gives the same object.
Decision: docs/adr/035-objects-by-copy.md.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from flowsql_connectors.file_systems.remote import no_such_bucket, place_of, storage_error
from flowsql_connectors.file_systems.s3 import S3_SCHEMES
from flowsql_connectors.filesystem.part import Part, PartFile
from flowsql_core.errors import ConnectorError, NotSupportedYetError

logger = logging.getLogger(__name__)

#: Schemes of stores whose objects appear whole and are copied inside of the store.
WRITTEN: Final = (*S3_SCHEMES, "gs", "gcs", "abfs", "abfss", "memory")
#: A copy by one request takes no more in S3.
MOST_BYTES: Final = 5 * 1024**3


class ObjectStore:
    """See :class:`PartStore`.

    Args:
        root: a URI.
        settings: of the job.
    """

    ends_with_checkpoint = True
    at_once = 16

    def __init__(self, root: str, settings: Mapping[str, str]) -> None:
        self.root = root
        self._place = place_of(root, settings)
        if self._place.scheme not in WRITTEN:
            raise NotSupportedYetError(
                f"writing to '{root}': files of scheme '{self._place.scheme}' do not appear whole",
                None,
                f"tables are written to this machine and to {', '.join(f'{scheme}://' for scheme in WRITTEN[:-1])}",
            )

    def new_file(self, folder: str, final: str, hidden: str) -> PartFile:
        """An object once :meth:`settle` has ended its upload."""
        return _Upload(self.root, folder, final, hidden, self._open, self.remove)

    def settle(self, files: Sequence[PartFile], durable: bool) -> None:
        """End the uploads, several at once."""
        if len(files) == 1:
            files[0].finish()
            return
        if files:
            with ThreadPoolExecutor(min(self.at_once, len(files)), thread_name_prefix="uploads") as pool:
                for _ in pool.map(lambda file: file.finish(), files):
                    pass

    def show(self, part: Part, repeats: bool) -> None:
        """Copy, then delete. A crash between both leaves a hidden object that the next commit copies again."""
        hidden, final = part.hidden_path, part.final_path
        found = self._info(hidden)
        if found is None:
            if self._info(final) is not None:
                return
            if not repeats:
                raise ConnectorError("lost-part", f"Part file {hidden} is gone before it was committed.")
            logger.warning("part file %s of the restored checkpoint was committed before and is gone", final)
            return
        if found.size != part.size:
            raise ConnectorError(
                "lost-part", f"Part file {hidden} has {found.size} bytes; {part.size} were written before the commit."
            )
        source, target = self._place.path(hidden), self._place.path(final)
        self._asked(final, lambda: self._place.files.copy_file(source, target))
        self.remove(hidden)

    def shown(self, parts: Sequence[Part]) -> None:
        """Objects are durable once they are there."""

    def remove(self, path: str) -> None:
        """Delete the object."""
        with contextlib.suppress(FileNotFoundError):
            self._asked(path, lambda: self._place.files.delete_file(self._place.path(path)))

    def walk(self) -> Iterator[str]:
        """All objects below the root's URI."""
        yield from (self._place.uri(info.path) for info in self._below(self.root))

    def empty(self, folder: str) -> None:
        """Objects whose own name is not hidden."""
        for info in self._below(f"{self.root}/{folder}" if folder else self.root):
            if not info.path.rpartition("/")[2].startswith("."):
                self.remove(self._place.uri(info.path))

    def touch(self, path: str) -> None:
        """One request."""
        self._asked(path, lambda: self._open(path).close())

    def make_root(self) -> None:
        """Object stores have no folders."""

    def check(self) -> None:
        """Whether there is a bucket; who may not ask is taken to know."""
        if self._place.scheme not in S3_SCHEMES:
            return
        try:
            found = self._info(self._place.head)
        except ConnectorError as error:
            if error.code != "storage-refused":
                raise
            return
        if found is None:
            raise no_such_bucket(self.root)

    def _open(self, uri: str) -> Any:
        return self._asked(uri, lambda: self._place.files.open_output_stream(self._place.path(uri)))

    def _info(self, uri: str) -> Any:
        """What is at a URI, None for nothing."""
        from pyarrow import fs

        info = self._asked(uri, lambda: self._place.files.get_file_info(self._place.path(uri)))
        return None if info.type == fs.FileType.NotFound else info

    def _below(self, uri: str) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(self._place.path(uri), recursive=True, allow_not_found=True)
        found = self._asked(uri, lambda: self._place.files.get_file_info(selector))
        return [info for info in found if info.type == fs.FileType.File]

    def _asked(self, uri: str, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except FileNotFoundError:
            raise
        except Exception as error:  # file systems of users raise what they like
            raise storage_error(uri, error) from error


class _Upload(PartFile):
    """A part that is uploaded while it grows; Arrow cuts what is large into pieces of a multipart upload."""

    def __init__(
        self,
        root: str,
        folder: str,
        final: str,
        hidden: str,
        open_: Callable[[str], Any],
        remove: Callable[[str], None],
    ) -> None:
        super().__init__(root, folder, final, hidden)
        self._open = open_
        self._remove = remove
        self._stream: Any = None

    def _put(self, kept: bytes, data: bytes | memoryview) -> None:
        try:
            if self._stream is None:
                self._stream = self._open(self.path)
            for piece in (kept, data):
                if piece:
                    self._stream.write(piece)
        except ConnectorError:
            raise
        except Exception as error:  # file systems of users raise what they like
            raise storage_error(self.path, error) from error

    def finish(self) -> None:
        """The object is there when this returns."""
        self.flush()
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            stream.close()
        except Exception as error:  # see _put
            raise storage_error(self.path, error) from error

    def discard(self) -> None:
        """An upload can only be ended: the hidden object is deleted then."""
        self._chunks.clear()
        if self.in_checkpoint or not self._on_disk:
            return
        stream, self._stream = self._stream, None
        with contextlib.suppress(Exception):
            if stream is not None:
                stream.close()
            self._remove(self.path)
