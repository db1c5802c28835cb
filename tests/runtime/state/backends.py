"""The backends that the conformance tests run against: one line makes another one join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flowsql_core.config import Configuration
from flowsql_runtime.state.backend import KeyedStateBackend
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings
from flowsql_runtime.state.stores import KeyIndex

LONG = "a key of more than fifteen bytes, number "

#: By ``state.backend.type``: a backend of some key groups of 128.
BACKENDS: dict[str, Callable[[range], KeyedStateBackend]] = {
    "hashmap": lambda groups: HashMapBackend(128, groups),
    "rocksdb": lambda groups: RocksDBBackend(RocksDBSettings.of(Configuration(), 1 << 30, 1), 128, groups),
}

ALL_GROUPS = range(128)
Make = Callable[..., KeyedStateBackend]


def slots_of(index: KeyIndex, keys: list[Any], type_: Any = None) -> Any:
    """Slots of the values of one key column."""
    return index.find_or_insert(index.encode([pa.array(keys, type_)]))[0]
