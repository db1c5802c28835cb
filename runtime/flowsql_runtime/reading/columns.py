"""One state of a snapshot as a table: its columns, and how the stored ones become them.

Three forms: columns with the names and SQL types of the manifest; states of Python objects, which are bytes
unless the reader says that their origin may be trusted; state that belongs to no key, element by element.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ConnectorError, did_you_mean
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import from_arrow, to_arrow
from flowsql_core.types.text import parse_type
from flowsql_runtime.checkpoint.encode import KEY_GROUP
from flowsql_runtime.checkpoint.manifest import OperatorState, Part, ReadableColumn
from flowsql_runtime.checkpoint.stored_native import StoredNative
from flowsql_runtime.reading.snapshot import SnapshotParts
from flowsql_runtime.state.flat_rows import flat_types, whole_columns

_ENTRIES: Final = "entries"
_TIMERS: Final = ("timers.event", "timers.processing")
_WINDOW_SCOPE: Final = "window."
_PYTHON_ACCUMULATORS: Final = "python.accumulators"
#: A column of the one row that a store keeps of each key.
_CELL: Final = re.compile(r"v:r\d+")

#: How elements of state without keys go to the subtasks of a restored job, by the numbers of ``encode_operator``.
_MODES: Final = ("list", "union", "broadcast")

_INT: Final = t.INT.as_nullable(False)
_TEXT: Final = t.STRING.as_nullable(False)
_BYTES: Final = t.BYTES.as_nullable(False)
_MOMENT: Final = t.TimestampLtzType(precision=3, nullable=False)

#: Arrow columns, and how many rows they have.
ReadBatch = tuple[list[Any], int]
#: A pickled list of entries -> rows of Python values.
Unpack = Callable[[Any], Iterator[tuple[Any, ...]]]


#: Bytes of files of a backend that are read in one go, about: each go reads all files of a subtask.
_GO_BYTES: Final = 1 << 30


@record
class ReadablePart:
    """What one subtask has and is read alone: bytes, or some key groups in files of a backend.

    ``keyless``: list, union and broadcast state. ``length``: bytes, about.
    """

    subtask: int
    part: Part | None
    length: int
    keyless: bool = False
    native: StoredNative | None = None
    groups: range = range(0)


@record
class ReadableState:
    """A state that was found.

    ``columns``: of the table. ``stored``: for each the column of the parts' streams it is made of; empty where the
    whole part is needed. ``unpack``: for Python objects that may be unpickled. ``pickled``: places of columns that hold
    one such object a row.
    """

    name: str
    columns: t.Schema
    parts: tuple[ReadablePart, ...]
    stored: tuple[str, ...] = ()
    unpack: Unpack | None = None
    pickled: frozenset[int] = frozenset()

    def read(self, snapshot: SnapshotParts, readable: ReadablePart, wanted: Sequence[int]) -> list[ReadBatch]:
        """The columns ``wanted`` of a part, and the number of rows, batch by batch.

        Raises:
            ConnectorError: the part is damaged or gone, or an object in it cannot be unpickled.
        """
        if readable.native is not None:
            tables = snapshot.native_tables(readable.native, readable.groups)
            return [found for name, table in tables if name == self.name for found in self._of_table(table, wanted)]
        assert readable.part is not None
        data = snapshot.read(readable.part)
        if readable.keyless:
            return [self._keyless(data, readable.subtask, wanted)]
        if self.unpack is not None:
            return [self._unpacked(pa.ipc.open_stream(pa.py_buffer(data)).read_all(), wanted)]
        schema = pa.ipc.open_stream(pa.py_buffer(data)).schema
        ranges = [self._range(schema, place) for place in wanted]
        # Without a column the key groups say how many rows there are.
        included = sorted({place for one in ranges for place in one} or {schema.get_field_index(KEY_GROUP)})
        options = pa.ipc.IpcReadOptions(included_fields=included)
        found: list[ReadBatch] = []
        with pa.ipc.open_stream(pa.py_buffer(data), options=options) as stream:
            for batch in stream:
                columns = [
                    self._column(place, [batch.column(included.index(at)) for at in one])
                    for place, one in zip(wanted, ranges, strict=True)
                ]
                found.append((columns, batch.num_rows))
        return found

    def _of_table(self, table: Any, wanted: Sequence[int]) -> Iterator[ReadBatch]:
        if self.unpack is not None:
            yield self._unpacked(table, wanted)
            return
        ranges = [self._range(table.schema, place) for place in wanted]
        for batch in table.to_batches():
            columns = [
                self._column(place, [batch.column(at) for at in one]) for place, one in zip(wanted, ranges, strict=True)
            ]
            yield columns, batch.num_rows

    def _range(self, schema: Any, place: int) -> range:
        """Stored columns of a column: several for a ROW that is kept flat, the first says whether it is there."""
        first = schema.get_field_index(self.stored[place])
        type_ = to_arrow(self.columns[place].type)
        if pa.types.is_struct(type_) and pa.types.is_boolean(schema.field(first).type):
            return range(first, first + len(flat_types(type_)))
        return range(first, first + 1)

    def _column(self, place: int, parts: Sequence[Any]) -> Any:
        if place not in self.pickled:
            return _typed(self.columns[place].type, parts)
        return pa.array([repr(_loaded(blob.as_buffer())) if blob.is_valid else None for blob in parts[0]], pa.string())

    def _keyless(self, data: Any, subtask: int, wanted: Sequence[int]) -> ReadBatch:
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        table = table.filter(pc.equal(table.column("name"), self.name)).combine_chunks()
        rows, contents = table.num_rows, table.column("value")
        if self.unpack is not None:
            contents = pa.array([shown for blob in contents for (shown,) in self.unpack(blob.as_buffer())], pa.string())
        modes = pa.array(_MODES).take(table.column("kind"))
        found = (modes, pa.repeat(pa.scalar(subtask, pa.int32()), rows), np.arange(rows, dtype=np.int32), contents)
        return [_typed(self.columns[i].type, [_array(found[i])]) for i in wanted], rows

    def _unpacked(self, table: Any, wanted: Sequence[int]) -> ReadBatch:
        assert self.unpack is not None
        # Python objects have no columns.
        rows = [row for blob in table.column(_ENTRIES) for row in self.unpack(blob.as_buffer())]
        return self._of_rows(rows, wanted)

    def _of_rows(self, rows: list[tuple[Any, ...]], wanted: Sequence[int]) -> ReadBatch:
        return [pa.array([row[i] for row in rows], to_arrow(self.columns[i].type)) for i in wanted], len(rows)


def find_state(snapshot: SnapshotParts, operator: OperatorState, name: str | None, unpickle: bool) -> ReadableState:
    """The state of an operator under a name; without a name its only one, or the accumulators of an aggregation.

    Raises:
        BindError: there is no such state, or a name is needed.
    """
    natives = snapshot.natives(operator)
    in_tables = (state for one in operator.subtasks for state in one.keyed)
    in_files = (state for _, native in natives for state in native.state_names)
    keyed = list(dict.fromkeys([*in_tables, *in_files]))
    keyless = list(
        dict.fromkeys(
            state
            for _, parts in snapshot.operator_parts(operator)
            for kept in (parts.lists, parts.union, parts.broadcast)
            for state in kept
        )
    )
    known = [*keyed, *(state for state in keyless if state not in keyed)]
    chosen = _chosen(operator, known, name)
    if chosen not in keyed:
        return _keyless_state(operator, chosen, unpickle)
    parts = tuple(
        ReadablePart(one.subtask, part, part.length) for one in operator.subtasks for part in one.keyed.get(chosen, ())
    ) + tuple(go for subtask, native in natives for go in _goes(subtask, native))
    named = operator.columns.get(chosen)
    if named is not None:
        shown = _without_repeated_keys(named)
        names = _unique([one.name for one in shown])
        pickled = frozenset(place for place, one in enumerate(shown) if unpickle and _is_pickled(chosen, one))
        types = (t.STRING if place in pickled else parse_type(one.type) for place, one in enumerate(shown))
        columns = tuple(t.Column(name, type_) for name, type_ in zip(names, types, strict=True))
        return ReadableState(chosen, columns, parts, tuple(one.stored for one in shown), pickled=pickled)
    stored = _stored_schema(snapshot, chosen, parts)
    if stored is None or _ENTRIES in stored.names:
        return _object_state(chosen, parts, unpickle)
    fields = [field for field in stored if field.name != KEY_GROUP]
    columns = tuple(t.Column(field.name, from_arrow(field.type)) for field in fields)
    return ReadableState(chosen, columns, parts, tuple(field.name for field in fields))


def _goes(subtask: int, native: StoredNative) -> Iterator[ReadablePart]:
    """The key groups in files of a backend in runs that are read one by one."""
    groups = native.groups
    step = -(-len(groups) // max(1, min(native.length // _GO_BYTES, len(groups))))
    for start in range(groups.start, groups.stop, step):
        some = range(start, min(start + step, groups.stop))
        yield ReadablePart(subtask, None, native.length, native=native, groups=some)


def _stored_schema(snapshot: SnapshotParts, name: str, parts: Sequence[ReadablePart]) -> Any | None:
    """The schema of a state's tables; None where it has no rows."""
    for one in parts:
        if one.part is not None:
            return snapshot.schema(one.part)
        assert one.native is not None
        for found, table in snapshot.native_tables(one.native, one.groups):
            if found == name:
                return table.schema
    return None


def _chosen(operator: OperatorState, known: list[str], name: str | None) -> str:
    who = f"The operator {operator.uid} ({operator.name})"
    if name is not None:
        if name in known:
            return name
        hint = did_you_mean(name, known) or (f"it has {', '.join(known)}" if known else None)
        raise BindError("state-not-found", f"{who} has no state '{name}'.", hint=hint)
    if not known:
        raise BindError("state-not-found", f"{who} keeps no state.")
    accumulators = [state for state in known if state.endswith(".accumulators")]
    if len(known) > 1 and not accumulators:
        raise BindError(
            "ambiguous-state",
            f"{who} has the states {', '.join(known)}.",
            hint=f"name one: state('...', '{operator.uid}', '{known[0]}')",
        )
    return accumulators[0] if accumulators else known[0]


def _is_pickled(state: str, column: ReadableColumn) -> bool:
    return state == _PYTHON_ACCUMULATORS and column.stored.startswith("v:")


def _without_repeated_keys(named: Sequence[ReadableColumn]) -> list[ReadableColumn]:
    """Rows hold their own key: it is shown once."""
    rows = {one.name for one in named if one.stored.startswith("r")}
    keys = {one.name for one in named if one.stored.startswith("k")}
    # The one row of a key may be gone, the key never is.
    return [
        one
        for one in named
        if not (one.stored.startswith("k") and one.name in rows)
        and not (_CELL.fullmatch(one.stored) and one.name in keys)
    ]


def _unique(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        made, number = name, 0
        while made in found:
            made, number = f"{name}{number}", number + 1
        found.append(made)
    return found


def _array(column: Any) -> Any:
    """A whole column as one Arrow array."""
    if isinstance(column, np.ndarray):
        return pa.array(column)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _typed(type_: t.LogicalType, parts: Sequence[Any]) -> Any:
    """A column of a logical type from stored ones."""
    target = to_arrow(type_)
    if len(parts) > 1 or (pa.types.is_nested(target) and not pa.types.is_nested(parts[0].type)):
        return whole_columns([target], parts)[0]
    return parts[0] if parts[0].type == target else pc.cast(parts[0], target)


# -- Python objects


def _object_state(name: str, parts: tuple[ReadablePart, ...], unpickle: bool) -> ReadableState:
    if not unpickle:
        columns = (t.Column("key_group", _INT), t.Column(_ENTRIES, _BYTES))
        return ReadableState(name, columns, parts, (KEY_GROUP, _ENTRIES))
    key, namespace = t.Column("key", _TEXT), t.Column("namespace", t.STRING)
    if name in _TIMERS:
        return ReadableState(name, (t.Column("fires_at", _MOMENT), key, namespace), parts, unpack=_timers)
    content = t.Column("content", _TEXT)
    if name.startswith(_WINDOW_SCOPE):
        return ReadableState(name, (key, namespace, content), parts, unpack=_window_entries)
    return ReadableState(name, (key, content), parts, unpack=_entries)


def _keyless_state(operator: OperatorState, name: str, unpickle: bool) -> ReadableState:
    parts = tuple(
        ReadablePart(one.subtask, one.operator, one.operator.length, keyless=True)
        for one in operator.subtasks
        if one.operator is not None
    )
    content = t.Column("content", _TEXT if unpickle else _BYTES)
    columns = (t.Column("mode", _TEXT), t.Column("subtask", _INT), t.Column("number", _INT), content)
    return ReadableState(name, columns, parts, unpack=_element if unpickle else None)


def _loaded(blob: Any) -> Any:
    try:
        return pickle.loads(blob)
    except Exception as error:  # whatever the classes of the objects raise
        raise ConnectorError(
            "state-not-readable",
            f"The state cannot be unpickled: {type(error).__name__}: {error}",
            hint="put the modules of the job on PYTHONPATH, or read the bytes: without unpickle => TRUE",
        ) from error


def _shown_key(token: Any) -> str:
    """A key token: text and numbers are themselves, other keys are canonical bytes (``flowsql_core.stream.keys``)."""
    return token.decode("utf-8", "backslashreplace") if isinstance(token, bytes) else str(token)


def _entries(blob: Any) -> Iterator[tuple[Any, ...]]:
    for token, value in _loaded(blob):
        yield _shown_key(token), repr(value)


def _window_entries(blob: Any) -> Iterator[tuple[Any, ...]]:
    for (token, window), value in _loaded(blob):
        yield _shown_key(token), repr(window), repr(value)


def _timers(blob: Any) -> Iterator[tuple[Any, ...]]:
    for time_ms, slot, key in _loaded(blob):
        # Under a window the slot is a pair; a key's token never is.
        yield time_ms, str(key), repr(slot[1]) if isinstance(slot, tuple) else None


def _element(blob: Any) -> Iterator[tuple[Any, ...]]:
    yield (repr(_loaded(blob)),)
