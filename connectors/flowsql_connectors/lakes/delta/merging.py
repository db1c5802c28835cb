"""INSERT INTO Delta tables by primary key: rows travel in the checkpoint, and one MERGE brings them into the table."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import CommitProperties

from flowsql_connectors.keyed_changes import last_of_each
from flowsql_connectors.lakes.columns import converted
from flowsql_connectors.lakes.delta.commit import DeltaCommitter
from flowsql_connectors.lakes.delta.connection import Address
from flowsql_connectors.lakes.prepared import Prepared
from flowsql_connectors.spi.sink import Committable, SinkWriter, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.row import DELETE, UPDATE_BEFORE

#: Beside the table's columns: whether the row is to be deleted.
_GONE: Final = "__flowsql_gone"


class MergingWriter(SinkWriter):
    """Keeps changes until the barrier, the last one of each key.

    Args:
        schema: of the table.
        places: for each column of the table the place of the sink's; None: NULL.
        keys: names of the table's columns.
        context: of the runtime.
    """

    def __init__(
        self, schema: pa.Schema, places: Sequence[int | None], keys: Sequence[str], context: WriterContext
    ) -> None:
        # Of a row that is deleted the key may be all that is known.
        fields = [field.with_nullable(True) for field in schema]
        self._schema = pa.schema([*fields, pa.field(_GONE, pa.bool_())])
        self._places = places
        self._keys = keys
        self._context = context
        self._run = uuid.uuid4().hex[:16]
        self._sequence = 0
        self._waiting: list[Any] = []

    def write(self, batch: ChangelogBatch) -> None:
        """Keep the rows."""
        arrays = [
            pa.nulls(batch.num_rows, field.type)
            if place is None
            else converted(batch.columns[place], field.type, field.name)
            for place, field in zip(self._places, self._schema, strict=False)
        ]
        kinds = np.zeros(batch.num_rows, np.uint8) if batch.kinds is None else batch.kinds
        # A row that a filter lets pass no longer ends with its -U.
        arrays.append(pa.array((kinds == DELETE) | (kinds == UPDATE_BEFORE)))
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def prepare_commit(self) -> list[Committable]:
        """The changes since the last barrier."""
        waiting, self._waiting = self._waiting, []
        self._sequence += 1
        if not any(batch.num_rows for batch in waiting):
            return []
        rows = newest(pa.Table.from_batches(waiting), self._keys)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(rows)
        told = {"rows": base64.b64encode(sink.getvalue()).decode()}
        return [Prepared(self._context.lineage or self._run, self._run, self._sequence, (told,)).encode()]


class MergingCommitter(DeltaCommitter):
    """Merges changes into a table.

    Args:
        address: of the table.
        keys: names of the table's columns.
        at_end_only: nothing is merged before all is written.
    """

    def __init__(self, address: Address, keys: Sequence[str], at_end_only: bool) -> None:
        super().__init__(address, overwrite=False, at_end_only=at_end_only)
        self._keys = keys

    def _version(self, table: DeltaTable, left: Sequence[Prepared], properties: CommitProperties) -> None:
        parts = []
        for told in (told for one in left for told in one.files):
            with pa.ipc.open_stream(base64.b64decode(told["rows"])) as reader:
                parts.append(reader.read_all())
        rows = newest(pa.concat_tables(parts), self._keys)
        same = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in self._keys)
        columns = [name for name in rows.column_names if name != _GONE]
        values = {_quoted(name): f"s.{_quoted(name)}" for name in columns}
        merge = table.merge(rows, same, source_alias="s", target_alias="t", commit_properties=properties)
        merge = merge.when_matched_delete(f"s.{_GONE} = true")
        merge = merge.when_matched_update(values)
        merge.when_not_matched_insert(values, f"s.{_GONE} = false").execute()

    def abort(self, committables: list[Committable]) -> None:
        """Rows that no checkpoint holds are gone by themselves."""
        self._held = []


def newest(rows: Any, keys: Sequence[str]) -> Any:
    """The last row of each key."""
    return rows.take(last_of_each([rows.column(key).combine_chunks() for key in keys]))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
