"""Messages of the log to changes, many at once: a kernel tells where values are, one buffer a column takes their bytes.

A change takes two lines of a batch, one for the old row and one for the new one, whether it has both or not, and so do
changes of tables that nobody captures: so lines are numbered alike whatever is read of them.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.kernels.wire import pgoutput as op
from flowsql_connectors.cdc.log import ChunkKey, Int64s, LogBatch, Place, TableChanges, Transaction
from flowsql_connectors.cdc.postgres.values import values_of
from flowsql_connectors.formats.columnar.ranges import texts
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types.logical import BinaryStringType, CharacterType, Schema

logger = logging.getLogger(__name__)

#: Milliseconds from 1970 to 2000, where PostgreSQL's time begins.
_TIME_BEGINS_MS: Final = 946_684_800_000
_IDENTITIES: Final = {"d": "DEFAULT", "n": "NOTHING", "i": "USING INDEX", "f": "FULL"}
_OPERATIONS: Final = {"c": op.INSERT, "u": op.UPDATE, "d": op.DELETE}


@record
class Relation:
    """A table as the log describes it: names, types and modifiers of its columns in the order of its rows."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[tuple[str, int, int], ...]

    @staticmethod
    def of(message: bytes) -> Relation:
        """A message of the kind ``R``."""
        (oid,) = struct.unpack_from("!I", message, 1)
        schema, name, rest = message[5:].split(b"\0", 2)
        identity, count = chr(rest[0]), struct.unpack_from("!H", rest, 1)[0]
        at = 3
        columns = []
        for _ in range(count):
            end = rest.index(b"\0", at + 1)
            type_, modifier = struct.unpack_from("!Ii", rest, end + 1)
            columns.append((rest[at + 1 : end].decode(), type_, modifier))
            at = end + 9
        # The schema of what every database has is empty.
        return Relation(oid, schema.decode() or "pg_catalog", name.decode(), identity, tuple(columns))

    @property
    def id(self) -> str:
        """``schema.table``."""
        return f"{self.schema}.{self.name}"


@record
class Captured:
    """What is read of a relation. ``table``: its place among the tables. ``natives``: the columns of ``output``, as
    they are in the log. ``keys``: names of the primary key."""

    table: int
    output: Schema
    natives: tuple[NativeColumn, ...]
    keys: tuple[str, ...]
    chunk_key: ChunkKey | None


@record
class Rules:
    """``upserts``: new rows are enough. ``skipped``: of ``c``, ``u``, ``d``, ``t``. ``placeholder``: for values that
    are not in the log."""

    upserts: bool
    skipped: frozenset[str]
    placeholder: str


class ChangeDecoder:
    """Decodes the messages of one stream, in their order.

    Args:
        position: where the stream begins.
        captured: what is read of a relation, None: nothing; raises where a column that is needed is not there.
    """

    def __init__(self, position: int, rules: Rules, captured: Callable[[Relation], Captured | None]) -> None:
        #: Behind the last transaction that was decoded.
        self.position = position
        self._rules = rules
        self._captured = captured
        self._relations: dict[int, tuple[Relation, Captured | None]] = {}
        #: The transaction that goes on in the next batch: with its time and the number of its changes so far.
        self._open: tuple[Transaction, int, int] | None = None
        #: What was said already.
        self._warned: set[str] = set()

    @property
    def within_transaction(self) -> bool:
        """Whether the last transaction has not ended."""
        return self._open is not None

    def describe(self, message: bytes) -> None:
        """Take over a relation, as it is from now on."""
        relation = Relation.of(message)
        known = self._relations.get(relation.oid)
        if known is None or known[0] != relation:
            self._relations[relation.oid] = (relation, self._captured(relation))

    def truncate(self, message: bytes) -> None:
        """Tables lost all their rows, which the log does not name.

        Raises:
            ConnectorError: that may not be skipped.
        """
        count = struct.unpack_from("!I", message, 1)[0]
        for oid in struct.unpack_from(f"!{count}I", message, 6):
            relation, captured = self._relations.get(oid, (None, None))
            if relation is None or captured is None:
                continue
            if "t" not in self._rules.skipped:
                raise ConnectorError(
                    "truncated-table",
                    f"Table '{relation.id}' was truncated: the log does not tell which rows it had.",
                    hint="'debezium.skipped.operations' = 't' goes on as if they were still there; or begin anew",
                )
            logger.warning("Table '%s' was truncated, which is skipped: its rows are not taken back.", relation.id)

    def decode(self, messages: Sequence[Any]) -> LogBatch:
        """The changes of messages of the kinds B, C, I, U, D."""
        data = np.frombuffer(b"".join(messages), np.uint8)
        starts = np.zeros(len(messages), np.int64)
        np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages))[:-1], out=starts[1:])
        events = np.zeros((len(messages), op.EVENT_FIELDS), np.int64)
        op.read_messages(data, starts, events)
        kinds = events[:, 0]
        is_change = np.isin(kinds, tuple(_OPERATIONS.values()))
        transactions, of_message, numbers, times_ms = self._transactions(events, kinds, is_change)
        tables = []
        skipped = [_OPERATIONS[one] for one in self._rules.skipped if one in _OPERATIONS]
        read = is_change & ~np.isin(kinds, skipped) if skipped else is_change
        for oid in np.unique(events[read, op.RELATION]).tolist():
            relation, captured = self._relations[oid]
            if captured is not None:
                rows = np.flatnonzero(read & (events[:, op.RELATION] == oid))
                tables.append(_Rows(self._rules, relation, captured, data, events[rows], rows, self._warn).changes())
        lines = np.repeat(np.arange(len(messages)), 2)
        return LogBatch(
            self._end(),
            transactions,
            tables,
            len(lines),
            of_message[lines].astype(np.int32),
            2 * numbers[lines] + np.tile([0, 1], len(messages)),
            times_ms[of_message][lines] if len(transactions) else np.zeros(0, np.int64),
        )

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            logger.warning("%s", sentence)

    def _transactions(
        self, events: npt.NDArray[np.int64], kinds: Int64s, is_change: npt.NDArray[np.bool_]
    ) -> tuple[list[Transaction], Int64s, Int64s, Int64s]:
        """The transactions of messages; of each message, which one it is in, and the number of its change there; when
        each transaction was committed."""
        begins = np.flatnonzero(kinds == op.BEGIN)
        commits = np.flatnonzero(kinds == op.COMMIT)
        made: list[Transaction] = []
        times: list[int] = []
        done = 0
        if self._open is not None:
            transaction, time_ms, done = self._open
            made.append(transaction)
            times.append(time_ms)
        carried = len(made)
        # Each begins behind the one before.
        ends = events[commits, op.LSN].tolist()
        positions = ends[: len(begins)] if carried else [self.position, *ends][: len(begins)]
        xids = events[begins, op.XID].tolist()
        made += [Transaction(position, xid) for position, xid in zip(positions, xids, strict=True)]
        times += (events[begins, op.TIME] // 1000 + _TIME_BEGINS_MS).tolist()
        of_message = np.cumsum(kinds == op.BEGIN) - 1 + carried
        before: Int64s = np.cumsum(is_change) - is_change
        first = np.concatenate([np.full(carried, -done), before[begins]])
        numbers = before - first[of_message]
        if ends:
            self.position = ends[-1]
        is_open = len(made) > len(commits)
        self._open = (made[-1], times[-1], int(numbers[-1] + is_change[-1])) if is_open else None
        return made, of_message, numbers, np.asarray(times, np.int64)

    def _end(self) -> Place:
        if self._open is None:
            return Place(self.position)
        return Place(self._open[0].position, 2 * self._open[2])


class _Rows:
    """The changes of one relation in a batch: first all old rows, then all new ones, of which some are taken."""

    def __init__(
        self,
        rules: Rules,
        relation: Relation,
        captured: Captured,
        data: npt.NDArray[np.uint8],
        events: npt.NDArray[np.int64],
        messages: Int64s,
        warn: Callable[[str], None],
    ) -> None:
        self._rules = rules
        self._warn = warn
        self._relation = relation
        self._captured = captured
        self._data = data
        self._messages = messages
        self._kinds = events[:, 0]
        self._whole = events[:, op.WHOLE].astype(np.bool_)
        self._has_old = events[:, op.OLD] >= 0
        key = captured.chunk_key
        chunk = () if key is None else (key.column,)
        names = dict.fromkeys((*(one.name for one in captured.natives), *captured.keys, *chunk))
        self._places = {name: place for place, name in enumerate(names)}
        wanted = np.array([self._places.get(name, -1) for name, _, _ in relation.columns], np.int64)
        shape = (len(self._places), 2 * len(messages))
        self._ranges = np.zeros(shape, np.int64)
        self._states = np.full(shape, op.NULL, np.uint8)
        starts = np.concatenate([events[:, op.OLD], events[:, op.NEW]])
        op.read_rows(data, starts, wanted, self._ranges, self._states)

    def changes(self) -> TableChanges:
        """The rows that are emitted."""
        count = len(self._messages)
        updates = self._kinds == op.UPDATE
        self._fill_unchanged()
        changed = self._changed_keys(updates & self._has_old)
        if not self._rules.upserts:
            self._check_old_rows(updates, changed)
        old = (self._kinds == op.DELETE) | changed
        if not self._rules.upserts:
            old |= updates
        new = self._kinds != op.DELETE
        kinds = np.concatenate(
            [
                np.where(updates & ~changed, UPDATE_BEFORE, DELETE),
                np.where(updates & ~changed, UPDATE_AFTER, INSERT),
            ]
        ).astype(np.uint8)
        # Rows by their lines: the old one of a message before its new one.
        taken = np.arange(2 * count).reshape(2, count).T.reshape(-1)
        taken = taken[np.stack([old, new], axis=1).reshape(-1)]
        lines = 2 * self._messages[taken % count] + taken // count
        captured = self._captured
        columns = [
            values_of(self._text(native.name, taken), native, column)
            for native, column in zip(captured.natives, captured.output, strict=True)
        ]
        keys = None
        if captured.chunk_key is not None:
            keys = self._text(captured.chunk_key.column, taken)
            keys = keys.cast(pa.int64()) if captured.chunk_key.integer else keys
        return TableChanges(captured.table, columns, kinds[taken], keys, lines)

    def _check_old_rows(self, updates: npt.NDArray[np.bool_], changed: npt.NDArray[np.bool_]) -> None:
        deletes = self._kinds == op.DELETE
        lacking = (updates | deletes) & ~self._whole
        if self._relation.identity == "d" and self._may_lack_values():
            # As in Flink CDC: what goes is told by its key, the other values are NULL.
            by_key = lacking & (deletes | changed) & self._has_old
            if by_key.any():
                self._warn(
                    f"Deleted rows of table '{self._relation.id}' have their primary key alone, and NULL else: its "
                    f"REPLICA IDENTITY is DEFAULT. ALTER TABLE {self._relation.id} REPLICA IDENTITY FULL gives all."
                )
            lacking &= ~by_key
        if lacking.any():
            what = "an UPDATE" if updates[int(np.argmax(lacking))] else "a DELETE"
            identity = _IDENTITIES.get(self._relation.identity, self._relation.identity)
            raise ConnectorError(
                "no-old-row",
                f"The log has no old row for {what} of table '{self._relation.id}', whose REPLICA IDENTITY was "
                f"{identity}.",
                hint=f"ALTER TABLE {self._relation.id} REPLICA IDENTITY FULL, and begin anew; or 'changelog-mode' = "
                "'upsert', which needs new rows alone",
            )

    def _may_lack_values(self) -> bool:
        keys = self._captured.keys
        return bool(keys) and all(
            column.type.nullable or native.name in keys
            for native, column in zip(self._captured.natives, self._captured.output, strict=True)
        )

    def _fill_unchanged(self) -> None:
        """Long values that an UPDATE left as they were, which the log has in the old row at most."""
        count = len(self._messages)
        missing = self._states[:, count:] == op.UNCHANGED
        if not missing.any():
            return
        known = missing & self._whole
        old_states, old_ranges = self._states[:, :count], self._ranges[:, :count]
        self._states[:, count:][known] = old_states[known]
        self._ranges[:, count:][known] = old_ranges[known]
        for native in self._captured.natives:
            if not (missing & ~known)[self._places[native.name]].any():
                continue
            remedy = f"ALTER TABLE {self._relation.id} REPLICA IDENTITY FULL"
            lacks = (
                f"The log does not have long values of column '{native.name}' that an UPDATE of table "
                f"'{self._relation.id}' left as they were"
            )
            if not isinstance(native.type, CharacterType | BinaryStringType | None):
                raise ConnectorError("no-unchanged-value", f"{lacks}.", hint=f"{remedy}, and begin anew")
            self._warn(f"{lacks}: '{self._rules.placeholder}' stands for them. {remedy} has them in the log.")

    def _changed_keys(self, candidates: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Updates of other rows' keys."""
        changed = np.zeros(len(self._messages), np.bool_)
        rows = np.flatnonzero(candidates)
        if len(rows):
            for name in self._captured.keys:
                old, new = self._text(name, rows), self._text(name, rows + len(self._messages))
                changed[rows] |= np.asarray(pc.fill_null(pc.not_equal(old, new), True))
        return changed

    def _text(self, name: str, taken: Int64s) -> Any:
        """The texts of a column in some rows."""
        place = self._places[name]
        states = self._states[place][taken]
        valid = states == op.VALUE
        found = texts(
            np.ascontiguousarray(self._ranges[place][taken]),
            None if valid.all() else valid,
            self._data,
            pa.string(),
            True,
        )
        unknown = states == op.UNCHANGED
        return pc.if_else(pa.array(unknown), self._placeholder(name), found) if unknown.any() else found

    def _placeholder(self, name: str) -> str | None:
        native = next((one for one in self._captured.natives if one.name == name), None)
        if native is None:
            return None
        if isinstance(native.type, BinaryStringType):
            return "\\x" + self._rules.placeholder.encode().hex()
        return self._rules.placeholder if isinstance(native.type, CharacterType | None) else None
