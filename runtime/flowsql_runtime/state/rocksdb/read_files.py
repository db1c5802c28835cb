"""Rows of state that a snapshot has in files of RocksDB, as tables of any key groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowsql_core.arrow import compute as pc
from flowsql_core.config import Configuration
from flowsql_runtime.state.hashmap import KEY_GROUP
from flowsql_runtime.state.native import NativeSource
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.native_snapshot import Layout
from flowsql_runtime.state.rocksdb.settings import COMPACTION_STYLE, MANAGED, CompactionStyle, RocksDBSettings
from flowsql_runtime.state.rocksdb.store_calls import replay


def read_tables(source: NativeSource, key_groups: range, folders: str) -> Iterator[tuple[str, Any]]:
    """The rows of some key groups that stand in a snapshot's files: names and pieces of tables.

    The files are opened as a database of its own, in a temporary folder, without touching the snapshot.

    Args:
        folders: where to, as ``io.tmp.dirs``.
    """
    layout = Layout.of(source)
    values = {
        COMPACTION_STYLE.key: CompactionStyle.NONE.value,
        MANAGED.key: "false",
        "io.tmp.dirs": folders,
    }
    settings = RocksDBSettings.of(Configuration(values=values), 0, 1)
    backend = RocksDBBackend(settings, layout.max_parallelism, source.groups)
    backend.restore({}, source.groups, (source,))
    replay(layout.calls, backend)
    try:
        backend.opened()
        for name, table in backend.cold_tables():
            groups = table.column(KEY_GROUP)
            mine = pc.and_(pc.greater_equal(groups, key_groups.start), pc.less(groups, key_groups.stop))
            piece = table.filter(mine)
            if piece.num_rows:
                yield name, piece
    finally:
        backend.close()
