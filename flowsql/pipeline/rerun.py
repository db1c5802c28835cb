"""Writing a table again without doubling its rows: who writes first in a run replaces what the table holds.

A table that INSERT INTO of a project writes belongs to the project. Its first INSERT of a run overwrites, further ones
append; a table in partitions is emptied first, as an overwrite replaces only partitions that get rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from flowsql.pipeline.project import Node
from flowsql_connectors import registry
from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.files import find_files, local_path
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_planner.bind import operations as op

#: Connectors of tables that hold nothing.
_HOLD_NOTHING: Final = ("blackhole", "print")
_FILES: Final = "filesystem"


def check_repeatable(node: Node, inserts: Sequence[op.Insert]) -> None:
    """Refuse an INSERT INTO that would double rows when it runs again.

    Raises:
        FlowSqlError: at the statement.
    """
    for table in map(_table, inserts):
        path = table.option("path") or ""
        if table.option("connector") == _FILES and is_remote(path):
            raise node.place.error(
                "remote-table-of-a-node",
                f"Table '{table.name}' of a project is in '{path}': nodes write files of this machine so far",
                "write it by a script of its own ('flowsql -f'); nodes may read such tables",
            )
    plain = [_table(insert) for insert in inserts if not insert.rel.overwrite]
    for table in plain:
        connector = table.option("connector") or ""
        if connector in _HOLD_NOTHING:
            continue
        if not _replaceable(table):
            if table.primary_key:
                continue
            raise node.place.error(
                "not-repeatable",
                f"INSERT INTO '{table.name}' would double rows when it runs again: tables of the connector "
                f"'{connector}' cannot be overwritten",
                "declare a PRIMARY KEY by which rows are upserted",
            )
        if sum(other.path == table.path for other in plain) > 1:
            raise node.place.error(
                "not-repeatable",
                f"One statement set inserts several times into '{table.name}', which only one of them could replace",
                "join the queries with UNION ALL, or write INSERTs of their own",
            )


def check_partitions(nodes: Mapping[Node, Sequence[op.Insert]]) -> None:
    """Refuse INSERT INTO beside INSERT OVERWRITE of partitions: emptying the table would take what these wrote.

    Raises:
        FlowSqlError: at the INSERT INTO.
    """
    overwriting: dict[tuple[str, str, str], Node] = {}
    for node, inserts in nodes.items():
        for insert in inserts:
            if insert.rel.overwrite and _table(insert).partition_keys:
                overwriting.setdefault(_table(insert).path, node)
    for node, inserts in nodes.items():
        for insert in inserts:
            other = overwriting.get(_table(insert).path)
            if other is not None and not insert.rel.overwrite:
                raise node.place.error(
                    "not-repeatable",
                    f"INSERT INTO '{_table(insert).name}' would double rows when it runs again, as {other.place} "
                    "overwrites partitions of that table",
                    "write INSERT OVERWRITE here, too",
                )


def replacing(inserts: Sequence[op.Insert], first: set[tuple[str, str, str]]) -> tuple[op.Insert, ...]:
    """The INSERTs, of which those into the tables ``first`` replace what these hold."""
    return tuple(_replacing(insert) if _table(insert).path in first else insert for insert in inserts)


def _replacing(insert: op.Insert) -> op.Insert:
    table = _table(insert)
    if insert.rel.overwrite or not _replaceable(table):
        return insert
    if not table.partition_keys:
        return replace(insert, rel=replace(insert.rel, overwrite=True))
    for path in _files(table):
        os.remove(path)
    return insert


def leave_folder(insert: op.Insert) -> None:
    """A table that got no rows is an empty one, not one that is not there: who reads it finds its folder."""
    table = _table(insert)
    if table.option("connector") == _FILES:
        os.makedirs(local_path(table.option("path") or ""), exist_ok=True)


def gone(insert: op.Insert) -> bool:
    """Whether nothing is left of the files of a table that got rows."""
    table = _table(insert)
    return table.option("connector") == _FILES and not _files(table)


def _replaceable(table: TableSpec) -> bool:
    files = table.option("connector") == _FILES
    return files or (registry.supports_overwrite(table) and not table.partition_keys)


def _files(table: TableSpec) -> list[str]:
    try:
        return [file.path for file in find_files(table.option("path") or "")]
    except ConnectorError:
        return []


def _table(insert: op.Insert) -> TableSpec:
    table = insert.rel.table
    assert table is not None
    return table
