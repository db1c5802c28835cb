"""State in files of a backend, for whoever has another backend or other key groups: as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowsql_runtime.state.native import NativeSource


def tables_in(source: NativeSource, key_groups: range, folders: str) -> Iterator[tuple[str, Any]]:
    """How a source makes its tables: through stores of the backend that wrote the files.

    Raises:
        ConnectorError: the files are of another format than this version of FlowSQL reads.
        ExecutionError: the library that they need is not installed.
    """
    # Jobs without such files load no RocksDB.
    from flowsql_runtime.state.rocksdb.read_files import read_tables

    return read_tables(source, key_groups, folders)


def names_in(source: NativeSource) -> tuple[str, ...]:
    """Names of the states that a source has; see :func:`tables_in`."""
    from flowsql_runtime.state.rocksdb.native_snapshot import Layout

    return Layout.of(source).state_names
