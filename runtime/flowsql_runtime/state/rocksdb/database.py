"""RocksDB through rocksdict, with the few calls that state needs of it. Opened when the first state leaves memory."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from flowsql_core.errors import ExecutionError
from flowsql_runtime.state.rocksdb.allocator import give_freed_memory_back
from flowsql_runtime.state.rocksdb.settings import COMPACTION_MS, RocksDBSettings

_NEVER: Final = 2**63


def load_rocksdict() -> Any:
    """The module.

    Raises:
        ExecutionError: it is not installed.
    """
    try:
        import rocksdict
    except ImportError as error:
        raise ExecutionError(
            "rocksdb-missing",
            "'state.backend.type' is 'rocksdb', which needs the package rocksdict",
            hint="pip install 'flowsql[rocksdb]', or leave state in memory with 'state.backend.type' = 'hashmap'",
        ) from error
    return rocksdict


class Folders(Protocol):
    """Who gives folders and takes them back."""

    def make(self) -> Path:
        """A new, empty folder."""
        ...

    def lend(self) -> Path:
        """A free path of the same file system, until it is given back."""
        ...

    def give_back(self, path: Path) -> None:
        """Remove what was lent. Any thread, any number of times."""
        ...

    def close(self) -> None:
        """Remove them; what is lent stays until it is given back."""
        ...


class Reader(Protocol):
    """Reads keys and values in order."""

    def scan(self, start: bytes, end: bytes, piece: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Keys from ``start`` to before ``end`` with their values, ``piece`` at a time."""
        ...


class Database:
    """One RocksDB of one operator. All calls by the operator's thread; :meth:`present` may be read by any.

    There is no write-ahead log: what is in it is a cache of what checkpoints hold.

    Args:
        settings: how it is set up.
        folders: where its files are.
    """

    def __init__(self, settings: RocksDBSettings, folders: Callable[[], Folders]) -> None:
        self._settings = settings
        self._make_folders = folders
        self._folders: Folders | None = None
        self._rocksdict = load_rocksdict()
        self._db: Any = None
        self._write_options: Any = None
        #: Files older than this are written anew; None: as RocksDB decides.
        self._compaction_ms: int | None = None
        if settings.values.text(COMPACTION_MS.key) is not None:
            self._compaction_ms = settings.get(COMPACTION_MS)
        #: Write batches begun so far.
        self.batches = 0
        #: Under it a name of a table file means one file.
        self.identity = uuid.uuid4().hex

    @property
    def path(self) -> Path | None:
        """Its folder; None before the first state left memory."""
        return None if self._db is None else Path(self._db.path())

    def _open(self, fill: Callable[[Path], None] | None = None) -> Any:
        if self._db is None:
            if self._settings.rocksdb_bytes is not None:
                give_freed_memory_back()
            self._folders = self._make_folders()
            options, self._kept = self._settings.rocksdb_options(self._rocksdict)
            path = self._folders.make()
            if fill is None:
                # Left alone, it starts 16 threads to open files, of which there are none.
                options.set_max_file_opening_threads(1)
            else:
                path.mkdir()
                fill(path)
            try:
                self._db = self._rocksdict.Rdict(str(path), options)
            except Exception as error:  # rocksdict raises its own kind
                raise _failed("opened", path, error) from error
            self._write_options = self._rocksdict.WriteOptions()
            self._write_options.disable_wal = True
            self._compact_periodically()
        return self._db

    def compact_files_older_than(self, age_ms: int | None) -> None:
        """Files that are older are written anew, so that what was deleted leaves the disk.

        The shortest age counts; 0: no age does. None: as the options say.
        """
        found = self._settings.get(COMPACTION_MS) if age_ms is None else age_ms
        self._compaction_ms = min(found or _NEVER, self._compaction_ms or _NEVER) % _NEVER
        if self._db is not None:
            self._compact_periodically()

    def _compact_periodically(self) -> None:
        if self._compaction_ms is not None:
            seconds = -(-self._compaction_ms // 1000)
            self._db.set_options({"periodic_compaction_seconds": str(seconds)})

    def restore(self, fill: Callable[[Path], None]) -> None:
        """Open on the files of a checkpoint, which ``fill`` puts into a folder. Nothing was written before."""
        assert self._db is None, "a database that is open takes over no files"
        self._open(fill)

    def checkpoint(self) -> tuple[Path, Callable[[], None]] | None:
        """A folder with its files of now, and how to give it back (any thread); None while it has none.

        Table files are hard links: they cost nothing and never change.
        """
        if self._db is None:
            return None
        folders = self._folders
        assert folders is not None
        path = folders.lend()
        try:
            self._rocksdict.Checkpoint(self._db).create_checkpoint(str(path))
        except Exception as error:
            folders.give_back(path)
            raise _failed("linked", path, error) from error
        return path, lambda: folders.give_back(path)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, None where there is none. Rising keys are read faster: blocks are found once."""
        if self._db is None:
            return [None] * len(keys)
        try:
            return list(self._db.get(list(keys)))
        except Exception as error:
            raise _failed("read", self.path, error) from error

    def write(self, keys: Sequence[bytes], values: Sequence[bytes], gone: Sequence[bytes]) -> None:
        """Put keys and delete others, in batches of at most ``write-batch-size`` bytes."""
        db = self._open()
        limit = self._settings.write_batch_bytes
        batch = self._rocksdict.WriteBatch(raw_mode=True)
        size = 0
        self.batches += 1
        try:
            for key, value in zip(keys, values, strict=True):
                batch.put(key, value)
                size += len(key) + len(value)
                if limit and size >= limit:
                    db.write(batch, self._write_options)
                    batch, size = self._rocksdict.WriteBatch(raw_mode=True), 0
                    self.batches += 1
            for key in gone:
                batch.delete(key)
            db.write(batch, self._write_options)
        except Exception as error:
            raise _failed("written", self.path, error) from error

    def table_properties(self) -> str:
        """What RocksDB says of its files, after those of now are written."""
        db = self._open()
        db.flush()
        return str(db.property_value("rocksdb.aggregated-table-properties"))

    def delete_prefix(self, prefix: bytes) -> None:
        """Delete every key that starts with a prefix."""
        if self._db is not None:
            self._db.delete_range(prefix, after(prefix), self._write_options)

    def scan(self, start: bytes, end: bytes, piece: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Keys from ``start`` to before ``end`` with their values, ``piece`` at a time, as of now."""
        return _pieces(self._items(start), end, piece)

    def _items(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(()) if self._db is None else iter(self._db.items(from_key=start))

    def present(self, prefixes: Iterable[bytes]) -> Present:
        """What stands behind some prefixes now, to be read once, later, in any thread."""
        # An iterator sees the database as it was when it was made; a Snapshot of rocksdict does not.
        return Present({prefix: self._items(prefix) for prefix in prefixes})

    def close(self) -> None:
        """Close it and remove its files; iterators that are out go on."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._folders is not None:
            self._folders.close()
            self._folders = None


class Present:
    """Implements ``Reader`` for the database as it was, by its prefixes."""

    def __init__(self, items: dict[bytes, Iterator[tuple[bytes, bytes]]]) -> None:
        self._items = items

    def scan(self, start: bytes, end: bytes, piece: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Keys behind a prefix, which is ``start``; once."""
        return _pieces(self._items.pop(start), end, piece)

    def release(self) -> None:
        """Nobody reads any more."""
        self._items.clear()


def _pieces(items: Iterator[tuple[bytes, bytes]], end: bytes, piece: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
    while found := list(islice(items, piece)):
        last = len(found)
        while last and found[last - 1][0] >= end:
            last -= 1
        if last:
            yield [key for key, _ in found[:last]], [value for _, value in found[:last]]
        if last < len(found):
            return


def after(prefix: bytes) -> bytes:
    """The first key behind all that start with a prefix, which is not all 0xff."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def _failed(what: str, path: Path | None, error: Exception) -> ExecutionError:
    return ExecutionError(
        "rocksdb-failed",
        f"the state in {path} cannot be {what}: {error}",
        hint="look at the folder's disk and its limits; 'state.backend.rocksdb.localdir' names another one",
    )
