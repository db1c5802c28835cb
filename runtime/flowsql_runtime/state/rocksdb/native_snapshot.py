"""The part of a backend's state that stands in RocksDB, as its files: what a checkpoint takes, and how it is opened.

A snapshot is the table files, hard-linked at the moment, and what it has for itself: the files that RocksDB needs to
open them, how the stores were made and counted, where their pages are, and of which keys the pages hold an old state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record
from flowsql_runtime.state.backend import KeyedSnapshot
from flowsql_runtime.state.native import KnownFile, NativeFiles, NativeSource
from flowsql_runtime.state.resident.frozen import Freezable, Moment
from flowsql_runtime.state.resident.key_index import KeyWords
from flowsql_runtime.state.rocksdb.buckets import Buckets
from flowsql_runtime.state.rocksdb.database import Database
from flowsql_runtime.state.rocksdb.region import Region

BACKEND: Final = "rocksdb"
#: Of what stands in a database: ``pages.py``, ``buckets.py``, ``cold_times.py``, ``cold_entries.py``.
FORMAT: Final = 1
_LAYOUT: Final = "layout"
_BUCKETS: Final = "buckets"
_STALE: Final = "stale"
#: The index of stale keys of objects, which are keys of the database as they are.
_OBJECTS: Final = -1
_TABLE_FILES: Final = ".sst"
#: What a database does not need to be opened: its options are given, its log is off.
_NEEDLESS: Final = ("OPTIONS-", "LOG", "LOCK", "IDENTITY", "rocksdict-")
#: Keys that are deleted at a time.
_PIECE: Final = 65_536


@record
class ObjectsLayout:
    """Entries of one ``ObjectStore`` in a database. ``left``: whether any are. ``expires``: as in ``ColdEntries``."""

    name: str
    number: int
    namespaced: bool
    left: bool
    expires: bool


@record
class Layout:
    """How a database is laid out: stores (``store_calls.py``), the number and counters of each index, objects."""

    max_parallelism: int
    calls: list[list[Any]]
    numbers: tuple[int, ...]
    counters: tuple[dict[str, Any], ...]
    objects: tuple[ObjectsLayout, ...]

    def encoded(self) -> bytes:
        """As JSON."""
        return orjson.dumps(
            {
                "format": FORMAT,
                "max_parallelism": self.max_parallelism,
                "calls": self.calls,
                "numbers": self.numbers,
                "counters": self.counters,
                "objects": [[one.name, one.number, one.namespaced, one.left, one.expires] for one in self.objects],
            }
        )

    @property
    def next_number(self) -> int:
        """The first number that nothing in the database has."""
        return max([0, *self.numbers, *(one.number for one in self.objects)]) + 1

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of all stores."""
        named = (given["name"] for _, given in self.calls if "name" in given)
        return (*named, *(one.name for one in self.objects))

    @staticmethod
    def of(source: NativeSource) -> Layout:
        """Of a snapshot.

        Raises:
            ConnectorError: it was made by a version of FlowSQL that lays databases out in another way.
        """
        found = orjson.loads(source.private(_LAYOUT))
        if source.backend != BACKEND or found["format"] != FORMAT:
            raise ConnectorError(
                "snapshot-version",
                f"State of '{source.backend}' has format {found['format']}; this version of FlowSQL reads files of "
                f"'{BACKEND}' in format {FORMAT}.",
                hint="take a savepoint with the version that made the checkpoint, and start from that",
            )
        return Layout(
            found["max_parallelism"],
            found["calls"],
            tuple(found["numbers"]),
            tuple(found["counters"]),
            tuple(ObjectsLayout(*one) for one in found["objects"]),
        )


@record
class StaleKeys:
    """Slots of an index, and how their keys become the bytes that ``Region.outdate`` takes."""

    index: Freezable
    slots: npt.NDArray[np.int32]
    packed: Callable[[KeyWords], list[bytes]]


class NativeSnapshot:
    """Implements ``KeyedSnapshot``: what is in memory as tables, the rest as files.

    Args:
        resident: the tables.
        files: folder with the database's files, and how to give it back.
        database: identity of the database.
        groups: key groups of the backend.
        layout: of the database at the moment.
        buckets: of all indexes, as :func:`bucket_columns` gives them.
        stale: by index, keys in memory of which the database has an old state.
        stale_keys: of objects, likewise.
        restored: files that the database began with.
        threads: files that may be written at a time.
    """

    def __init__(
        self,
        resident: KeyedSnapshot,
        files: tuple[Path, Callable[[], None]],
        database: str,
        groups: range,
        layout: Layout,
        buckets: Mapping[str, npt.NDArray[Any]],
        stale: Sequence[StaleKeys],
        stale_keys: list[bytes],
        restored: Mapping[str, KnownFile],
        threads: int,
    ) -> None:
        self._resident = resident
        self._folder, self._give_back = files
        self._layout = layout
        self._buckets = buckets
        self._restored = restored
        self._threads = threads
        self._groups = groups
        self._database = database
        self._stale_keys = stale_keys
        self._moment = Moment()
        self._stale = [(number, self._moment.of(one.index), one) for number, one in enumerate(stale) if len(one.slots)]

    def tables(self) -> dict[str, Any]:
        """The tables of what is in memory."""
        return self._resident.tables()

    def native(self) -> NativeFiles:
        """The files of what is not."""
        shared: dict[str, Path] = {}
        private = {
            _LAYOUT: self._layout.encoded(),
            _BUCKETS: _stream(pa.table({name: pa.array(column) for name, column in self._buckets.items()})),
            _STALE: _stream(self._all_stale()),
        }
        for path in sorted(self._folder.iterdir()):
            if path.suffix == _TABLE_FILES:
                shared[path.name] = path
            elif not path.name.startswith(_NEEDLESS) and path.stat().st_size:
                private[path.name] = path.read_bytes()
        return NativeFiles(BACKEND, self._database, self._groups, shared, private, self._restored, self._threads)

    def _all_stale(self) -> Any:
        owners, keys = [_OBJECTS] * len(self._stale_keys), list(self._stale_keys)
        for number, frozen, one in self._stale:
            found = one.packed(frozen.shadow().encoded_at(one.slots))
            frozen.forget()
            owners += [number] * len(found)
            keys += found
        return pa.table({"index": pa.array(owners, pa.int32()), "key": pa.array(keys, pa.large_binary())})

    def release(self) -> None:
        """Nobody reads the files any more."""
        self._moment.release()
        self._resident.release()
        self._give_back()


def _stream(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _table(data: memoryview) -> Any:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def bucket_columns(regions: Sequence[Region]) -> dict[str, npt.NDArray[Any]]:
    """The buckets of all namespaces of all indexes, a row a bucket."""
    pieces: dict[str, list[npt.NDArray[Any]]] = {}
    for number, region in enumerate(regions):
        for namespace, buckets in region.buckets.items():
            pieces.setdefault("index", []).append(np.full(len(buckets), number, np.int32))
            pieces.setdefault("namespace", []).append(np.full(len(buckets), namespace, np.int64))
            for name, column in buckets.columns().items():
                pieces.setdefault(name, []).append(column)
    return {name: np.concatenate(found) for name, found in pieces.items()}


def _buckets_by_index(table: Any, count: int) -> list[dict[int, Buckets]]:
    """The inverse of :func:`bucket_columns`."""
    made: list[dict[int, Buckets]] = [{} for _ in range(count)]
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    if not columns:
        return made
    indexes, namespaces = columns.pop("index"), columns.pop("namespace")
    # They stand by index and namespace.
    edges = np.flatnonzero((np.diff(indexes) != 0) | (np.diff(namespaces) != 0)) + 1
    for start, stop in pairwise([0, *edges.tolist(), len(indexes)]):
        # Copies: buckets are written to.
        mine = {name: column[start:stop].copy() for name, column in columns.items()}
        made[int(indexes[start])][int(namespaces[start])] = Buckets.of_columns(mine)
    return made


def open_restored(
    database: Database, regions: Sequence[Region], source: NativeSource, layout: Layout, threads: int
) -> None:
    """Open a database on the files of a snapshot, for indexes that know nothing of it yet.

    Raises:
        ConnectorError: a file is missing or damaged.
    """

    def fill(folder: Path) -> None:
        source.fetch(folder, threads)
        for name in source.private_names:
            if name not in (_LAYOUT, _BUCKETS, _STALE):
                (folder / name).write_bytes(source.private(name))

    database.restore(fill)
    buckets = _buckets_by_index(_table(source.private(_BUCKETS)), len(regions))
    stale = _table(source.private(_STALE))
    for number, region in enumerate(regions):
        region.restore_counters(layout.counters[number], buckets[number])
        for keys in _keys_in_pieces(stale, number):
            region.outdate(keys)
    for keys in _keys_in_pieces(stale, _OBJECTS):
        database.write((), (), keys)


def _keys_in_pieces(stale: pa.Table, index: int) -> Iterator[list[bytes]]:
    keys = stale.filter(pc.equal(stale.column("index"), index)).column("key")
    for start in range(0, len(keys), _PIECE):
        yield keys.slice(start, _PIECE).to_pylist()
