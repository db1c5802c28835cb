"""Tables for connector tests: DDL-like columns, scans and inserts run without an engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.text.render import json_rows
from flowsql_connectors import registry
from flowsql_connectors.spi.sink import Committable, Committer, SinkWriter, WriterContext
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch, TableSource
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import Clock, SystemClock
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY, RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema
from flowsql_core.types.text import parse_type


def columns_of(ddl: str) -> Schema:
    """``a INT, b STRING`` as columns."""
    columns, depth, current = [], 0, ""
    for character in ddl + ",":
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            name, _, type_ = current.strip().partition(" ")
            columns.append(Column(name.strip("`"), parse_type(type_)))
            current = ""
        else:
            current += character
    return tuple(columns)


def table_of(ddl: str, options: Mapping[str, str], partition_keys: tuple[str, ...] = ()) -> TableSpec:
    return TableSpec(
        ("default_catalog", "default_database", "t"), columns_of(ddl), tuple(options.items()), partition_keys
    )


def files_table(
    ddl: str, path: object, format_: str, partition_keys: tuple[str, ...] = (), **options: str
) -> TableSpec:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return table_of(ddl, {"connector": "filesystem", "path": str(path), "format": format_, **named}, partition_keys)


def source_of(
    table: TableSpec,
    select: Sequence[str] | None = None,
    metadata: tuple[str, ...] = (),
    limit: int | None = None,
    configuration: Mapping[str, str] | None = None,
) -> tuple[TableSource, Schema]:
    """A source of some columns, and its output schema."""
    names = [column.name for column in table.columns]
    projection = tuple(range(len(names))) if select is None else tuple(names.index(name) for name in select)
    output = tuple(table.columns[index] for index in projection)
    if metadata:
        known = registry.create_source(ScanSpec(table, projection, output), {}).metadata_columns()
        output += tuple(Column(key, known[key]) for key in metadata)
    scan = ScanSpec(table, projection, output, metadata, limit=limit)
    return registry.create_source(scan, configuration or {}), output


def reader_of(
    source: TableSource,
    subtask: int = 0,
    parallelism: int = 1,
    clock: Clock | None = None,
    seed: int | None = 7,
    aligned: bool = False,
    configuration: Mapping[str, str] | None = None,
) -> SourceReader:
    context = ReaderContext(
        subtask,
        parallelism,
        65536,
        clock or SystemClock(),
        configuration or {},
        lambda name, n: None,
        seed,
        aligned=aligned,
    )
    return source.create_reader(context)


def poll(reader: SourceReader, max_rows: int = 65536) -> SplitBatch | None:
    """The next batch; None at the end. Waits as a task does: by the reader's own wake-up."""
    while True:
        polled = reader.poll(max_rows)
        if isinstance(polled, SplitBatch):
            return polled
        if polled is ReadStatus.END:
            return None
        woken = threading.Event()
        reader.wake_when_available(woken.set)
        assert woken.wait(20), "the reader never woke its task"


def drain(reader: SourceReader, splits: list[Split], schema: Schema, max_rows: int = 65536) -> list[list[Any]]:
    """All rows of some splits in the answer encoding."""
    reader.add_splits(splits)
    reader.no_more_splits()
    rows: list[list[Any]] = []
    while (polled := poll(reader, max_rows)) is not None:
        rows.extend(rows_of(polled.batch, schema))
    reader.close()
    return rows


def rows_of(batch: ChangelogBatch, schema: Schema) -> list[list[Any]]:
    # Not splitlines(): texts may hold U+2028 and its like.
    return [json.loads(line)["row"] for line in json_rows(batch, schema).split("\n") if line]


def scan(table: TableSpec, parallelism: int = 1, max_rows: int = 65536, **scan_options: Any) -> list[list[Any]]:
    """All rows, reader after reader."""
    source, schema = source_of(table, **scan_options)
    rows: list[list[Any]] = []
    for subtask, splits in enumerate(source.create_enumerator().initial_splits(parallelism)):
        reader = reader_of(source, subtask, parallelism, configuration=scan_options.get("configuration"))
        rows.extend(drain(reader, splits, schema, max_rows))
    return rows


def batch_of(table: TableSpec, rows: Sequence[Sequence[Any]], kinds: Sequence[RowKind] | None = None) -> ChangelogBatch:
    columns = tuple(
        pa.array([row[index] for row in rows], to_arrow(column.type)) for index, column in enumerate(table.columns)
    )
    made = None if kinds is None else np.array(kinds, np.uint8)
    return ChangelogBatch.of(columns, made, num_rows=len(rows))


def writer_of(
    table: TableSpec,
    clock: Clock | None = None,
    subtask: int = 0,
    parallelism: int = 1,
    configuration: Mapping[str, str] | None = None,
    written: list[str] | None = None,
    lineage: str = "",
    **sink_options: Any,
) -> tuple[SinkWriter, Committer | None]:
    sink = registry.create_sink(SinkSpec(table, table.columns, INSERT_ONLY, **sink_options), configuration or {})
    context = WriterContext(
        "job",
        subtask,
        parallelism,
        clock or SystemClock(),
        configuration or {},
        lambda name, n: None,
        lambda action: None,
        None if written is None else written.append,
        lineage,
    )
    return sink.create_writer(context), sink.create_committer()


def insert(table: TableSpec, rows: Sequence[Sequence[Any]], **writer_options: Any) -> None:
    """Write, commit and close, as a bounded job does."""
    writer, committer = writer_of(table, **writer_options)
    if rows:
        writer.write(batch_of(table, rows))
    writer.flush(end_of_input=True)
    committables: list[Committable] = writer.prepare_commit()
    if committer is not None:
        committer.commit(committables, end_of_input=True)
    writer.close()
