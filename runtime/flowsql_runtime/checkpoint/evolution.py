"""What a changed query takes over: the state of a snapshot, or of another query, compared operator by operator.

The command's ``plan`` prints what a restore does: both ask :func:`compare`.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pyarrow as pa

from flowsql_compute.keys import is_bytes_type, key_groups
from flowsql_core.column_bytes import joined
from flowsql_core.errors import BindError
from flowsql_core.graph.job import JobGraph, OperatorNode
from flowsql_core.graph.lineage import PLACED
from flowsql_runtime.checkpoint.encode import KEY_GROUP
from flowsql_runtime.checkpoint.layout import (
    NewState,
    OperatorLayout,
    StateColumn,
    StateTable,
    new_states,
    rows_digests,
    types_digests,
)
from flowsql_runtime.checkpoint.manifest import Manifest, OperatorState, parts_of
from flowsql_runtime.checkpoint.settings import CHANGED_STATE, IGNORE_UNCLAIMED, ChangedState
from flowsql_runtime.checkpoint.widening import PlainTexts, casts, collections_differ, narrowing, widened

T = TypeVar("T")

#: The accumulator that counts all rows.
_ROWS: Final = ("rows", 0)
#: Arrow types, as text, of what may be values in bytes.
_BYTES: Final = frozenset({"binary", "large_binary"})


class Fate(enum.Enum):
    """What becomes of an operator's state."""

    KEPT = "kept"
    #: Taken over, but not all of it, or with results that start at the restore.
    MIGRATED = "migrated"
    #: It cannot be taken over: the operator starts empty.
    REBUILT = "rebuilt"
    #: No operator takes it.
    DROPPED = "dropped"
    #: There was none.
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Remembered:
    """An operator that ran: of a snapshot, or of a query that nobody ran (``size_bytes`` None)."""

    uid: str
    name: str
    layout: OperatorLayout | None
    stateful: bool
    size_bytes: int | None = None
    rows: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    in_flight: bool = False


@dataclass(frozen=True, slots=True)
class TableMove:
    """How a stored table becomes that of a new store.

    ``columns``: new stored name to the old one, None for what starts at zero. ``empty``: the new store's empty table.
    ``keys``: the old place of each key. ``rekeyed``: keys have wider types. ``widens``: some columns have.
    ``collections``: by new stored name the SQL types, old and new, of collections that are stored as bytes.
    """

    target: str
    columns: Mapping[str, str | None]
    empty: Any
    keys: tuple[int, ...]
    rekeyed: bool = False
    widens: bool = False
    collections: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def regroups(self) -> bool:
        """Whether rows come to other key groups: keys have another order or other bytes."""
        return self.rekeyed or self.keys != tuple(range(len(self.keys)))

    def keeps_all(self, name: str, stored: StateTable) -> bool:
        """Whether the stored table of that name is the new store's, as it is."""
        same = all(new == old for new, old in self.columns.items())
        as_it_is = same and not self.regroups and not self.widens
        return name == self.target and as_it_is and len(self.columns) == len(stored.columns)

    def apply(self, table: Any, max_parallelism: int) -> Any:
        """The new store's table.

        Raises:
            BindError: a value has more digits than its new type.
        """
        columns = []
        for one in self.empty.schema:
            if one.name == KEY_GROUP:
                columns.append(table.column(KEY_GROUP))
            elif one.name in self.columns:
                old = self.columns[one.name]
                if old is None:
                    columns.append(_zeros(one.type, table.num_rows))
                else:
                    columns.append(self._widened(table.column(old), one))
            else:
                columns.append(self._widened(table.column(f"k{self.keys[int(one.name[1:])]}"), one))
        made = pa.Table.from_arrays(columns, names=self.empty.schema.names)
        if not self.regroups:
            return made
        keys = [made.column(f"k{place}") for place in range(len(self.keys))]
        groups = key_groups([joined(key.chunks or [pa.array([], key.type)]) for key in keys], max_parallelism)
        return made.set_column(0, KEY_GROUP, pa.array(groups))

    def _widened(self, column: Any, into: Any) -> Any:
        try:
            return widened(column, into.type, self.collections.get(into.name))
        except pa.ArrowInvalid as error:
            what = f"State '{self.target}': a value of {into.name} does not fit {into.type}. {error}"
            raise BindError("changed-state", what, hint="keep as many digits before the point") from error


@dataclass(frozen=True, slots=True)
class OperatorMove:
    """What a restore does with one operator. ``tables``: by old state name; a name that is not there goes."""

    starts_empty: bool = False
    tables: Mapping[str, TableMove] | None = None

    def keeps_all(self, layout: OperatorLayout | None) -> bool:
        """Whether every table of the stored state is taken over as it is."""
        if self.tables is None:
            return True
        return layout is not None and all(
            name in self.tables and self.tables[name].keeps_all(name, table) for name, table in layout.tables.items()
        )


@dataclass(frozen=True, slots=True)
class Change:
    """The verdict on one operator.

    ``reasons``: why it is not simply kept. ``loses``: state goes that nobody takes. ``restarts``: results are not those
    that the new query would have had from the beginning.
    """

    uid: str
    name: str
    fate: Fate
    reasons: tuple[str, ...] = ()
    loses: bool = False
    restarts: bool = False
    size_bytes: int | None = None
    move: OperatorMove = field(default_factory=OperatorMove)


def remembered_in(manifest: Manifest) -> list[Remembered]:
    """The operators of a snapshot."""
    return [_of_snapshot(state) for state in manifest.operators.values()]


def _of_snapshot(state: OperatorState) -> Remembered:
    size = sum(one.size_bytes for one in state.subtasks)
    there = any(parts_of(one) for one in state.subtasks)
    waits = any(one.in_flight is not None for one in state.subtasks)
    return Remembered(state.uid, state.name, state.layout, there, size, state.rows, state.types, waits)


def remembered_of(graph: JobGraph) -> list[Remembered]:
    """The operators of a job that has not run: those whose state has names."""
    names = {node.uid: node.name for vertex in graph.vertices for node in vertex.operators}
    return [Remembered(uid, names[uid], state.layout, stateful=True) for uid, state in new_states(graph).items()]


def compare(old: Iterable[Remembered], graph: JobGraph) -> tuple[Change, ...]:
    """What becomes of the state of ``old`` in a job: operators of the job in their order, then what is dropped."""
    before = {one.uid: one for one in old}
    states = new_states(graph)
    changes = []
    for vertex in graph.vertices:
        for node in vertex.operators:
            was = before.pop(node.uid, None)
            state = states.get(node.uid)
            other = None if was is None else _other_rows(was, node)
            if was is not None and other is not None:
                reason = f"rows that were on their way to it have other {other}: a savepoint has none of them"
                changes.append(_rebuilt(was, node.name, (reason,), state))
            elif was is not None and was.stateful:
                changes.append(_taken_over(was, node.name, state))
            elif state is not None:
                changes.append(Change(node.uid, node.name, Fate.NEW, ("no state stands under its id",)))
    for was in before.values():
        if was.stateful:
            why = ("no operator of the job has its id",)
            changes.append(Change(was.uid, was.name, Fate.DROPPED, why, loses=True, size_bytes=was.size_bytes))
    return tuple(changes)


def _other_rows(was: Remembered, node: OperatorNode) -> str | None:
    """What rows on their way to an operator do not share with those that it takes."""
    if not was.in_flight:
        return None
    if was.rows != rows_digests(node):
        return "columns"
    return "types" if was.types and was.types != types_digests(node) else None


def _rebuilt(was: Remembered, name: str, reasons: tuple[str, ...], state: NewState | None) -> Change:
    move = OperatorMove(starts_empty=True)
    if state is not None:
        reasons = (*reasons, f"starts again from nothing: {_contents(state.layout)}")
    return Change(was.uid, name, Fate.REBUILT, reasons, True, True, was.size_bytes, move)


def _contents(layout: OperatorLayout) -> str:
    """What an operator keeps, in words: accumulators one by one, other tables as a whole."""
    found = []
    for table in layout.tables.values():
        # Rows of a join are one thing; what is summed up is many.
        found += [column.meaning for column in table.columns] if table.grows else [table.meaning]
    return ", ".join(dict.fromkeys(found))


def _taken_over(was: Remembered, name: str, state: NewState | None) -> Change:
    """State that nobody can name is its operator's own matter: it is handed over as it is."""
    if was.layout is None or state is None:
        return Change(was.uid, name, Fate.KEPT, size_bytes=was.size_bytes)
    found = _Comparison(was.layout, state)
    if found.obstacles:
        return _rebuilt(was, name, tuple(found.obstacles), state)
    fate = Fate.MIGRATED if found.losses or found.restarts else Fate.KEPT
    return Change(
        was.uid,
        name,
        fate,
        (*found.restarts, *found.losses),
        bool(found.losses),
        bool(found.restarts),
        was.size_bytes,
        OperatorMove(tables=found.moves),
    )


class _Comparison:
    """Two layouts of one operator: ``obstacles`` to taking over, ``restarts`` of results, ``losses``, and the moves."""

    def __init__(self, old: OperatorLayout, state: NewState) -> None:
        self.obstacles: list[str] = []
        self.restarts: list[str] = []
        self.losses: list[str] = []
        self.moves: dict[str, TableMove] = {}
        self._old, self._new, self._empty = old, state.layout, state.tables
        self._rekeyed = False
        self._plain_old, self._plain_new = (PlainTexts(_united(one.types)) for one in (old, state.layout))
        #: Of columns whose types differ: old and new SQL type, by meaning.
        self._retyped = _retyped(old.types, state.layout.types)
        self._were_not_null = {
            text
            for text, (before, after) in self._retyped.items()
            if before.endswith(" NOT NULL") and not after.endswith(" NOT NULL")
        }
        #: Of these the collections whose elements have other bytes.
        self._collections = {text: types for text, types in self._retyped.items() if collections_differ(*types)}
        self._compare_types()
        self._keys = self._compare_keys()
        new = self._new
        self.obstacles += self._differences(old.facts, new.facts)
        self.obstacles += self._differences(old.made_with, new.made_with)
        self._compare_tables()
        before = "what was emitted before the restore was answered by the old one"
        self.restarts += [f"{one}: {before}" for one in self._differences(old.answered_with, new.answered_with)]
        self._compare_reaches()
        self._compare_conditions()

    def _differences(self, old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> list[str]:
        """What two sets of facts differ in; nothing where one is not known."""
        if old is None or new is None:
            return []
        pairs = ((fact, old.get(fact, "none"), new.get(fact, "none")) for fact in sorted({*old, *new}))
        return [
            f"{fact}: was '{before}', is '{after}'" for fact, before, after in pairs if not self._same(before, after)
        ]

    def _same(self, before: str, after: str) -> bool:
        """Whether texts of the old and of the new operator say the same, apart from types."""
        return before == after or self._plain_old.of(before) == self._plain_new.of(after)

    def _compare_reaches(self) -> None:
        old = self._old.reaches
        for what, wanted in (self._new.reaches or {}).items():
            kept = wanted if old is None else old.get(what, 0)
            if wanted > kept:
                self.restarts.append(f"{what}: {kept} were kept, {wanted} are needed: what was dropped is missing")

    def _compare_conditions(self) -> None:
        for one, two in zip(self._old.conditions, self._new.conditions, strict=True):
            before, after = one, two
            if self._old.made_with is None:
                # An older snapshot does not say where conditions hold.
                after = tuple(condition for condition in two if not condition.startswith(PLACED))
            plain = {self._plain_old.of(text) for text in before}, {self._plain_new.of(text) for text in after}
            if plain[0] != plain[1]:
                was, now = _listed(before), _listed(after)
                self.restarts.append(f"rows arrived where {was}, and arrive now where {now}")

    def _compare_keys(self) -> tuple[int, ...]:
        old = _numbered([self._plain_old.of(meaning) for meaning, _ in self._old.keys])
        new = _numbered([self._plain_new.of(self._equality(meaning)) for meaning, _ in self._new.keys])
        places = tuple(old.index(key) for key in new) if Counter(old) == Counter(new) else None
        if places is not None:
            types = [(self._old.keys[was][1], self._new.keys[now][1]) for now, was in enumerate(places)]
            if all(casts(before, after) or self._widens_key(now) for now, (before, after) in enumerate(types)):
                self._rekeyed = any(before != after for before, after in types)
                return places
        self.obstacles.append(f"keys: were {_keys(self._old)}, are {_keys(self._new)}")
        return ()

    def _equality(self, meaning: str) -> str:
        """Of a join: NULL equals NULL or not, which is one where there were no NULLs."""
        left, safe, right = meaning.partition(" <=> ")
        known = safe and (left in self._were_not_null or right in self._were_not_null)
        return f"{left} = {right}" if known else meaning

    def _widens_key(self, place: int) -> bool:
        return self._new.keys[place][0] in self._retyped

    def _compare_types(self) -> None:
        """Columns of the inputs that state holds and whose types are no wider than before; NOT NULL counts too."""
        for text, (before, after) in self._retyped.items():
            if narrowing(before, after) and self._holds(text):
                self.obstacles.append(f"column {text} was {before}, is {after}: values from before may not fit")

        for text in self._collections:
            if any(text in meaning for meaning, _ in self._new.keys):
                self._refuse_elements(text)

    def _refuse_elements(self, text: str) -> None:
        before, after = self._retyped[text]
        reason = f"column {text} was {before}, is {after}: state has its elements as bytes that do not grow"
        if reason not in self.obstacles:
            self.obstacles.append(reason)

    def _known_as(self, key: tuple[str, int], old: Iterable[tuple[str, int]]) -> tuple[str, int] | None:
        """What something with other types was called."""
        wanted = {(self._plain_new.of(meaning), number) for meaning, number in (key, self._before_nulls(key))}
        return next((one for one in old if (self._plain_old.of(one[0]), one[1]) in wanted), None)

    def _before_nulls(self, key: tuple[str, int]) -> tuple[str, int]:
        """What something was called while columns that may be NULL now were NOT NULL."""
        meaning, number = key
        name, where, asked = meaning.partition(" WHERE ")
        if not where:
            return key
        left = [one for one in asked.split(" AND ") if one.removesuffix(" IS NOT NULL") not in self._were_not_null]
        if left:
            return f"{name} WHERE {' AND '.join(left)}", number
        return _ROWS if name == "count" else (name, number)

    def _holds(self, text: str) -> bool:
        tables = self._new.tables.values()
        meanings = [column.meaning for table in tables for column in table.columns]
        meanings += [meaning for meaning, _ in self._new.keys] + [table.meaning for table in tables]
        return any(text in meaning for meaning in meanings)

    def _compare_tables(self) -> None:
        old = _tables_by_meaning(self._old)
        for key, name in _tables_by_meaning(self._new).items():
            same = key if key in old else self._known_as(key, old)
            stored = None if same is None else old.pop(same)
            table = self._new.tables[name]
            if stored is not None:
                self._compare_columns(stored, name)
            else:
                self._starts(table.meaning)
        self.losses += [f"{self._old.tables[stored].meaning} go" for stored in old.values()]

    def _starts(self, what: str) -> None:
        """Something that the snapshot does not know."""
        if self._new.retracts:
            self.obstacles.append(f"{what}: was not kept, and rows from before may be taken back")
        else:
            self.restarts.append(f"{what}: was not kept, counts from the restore on")

    def _compare_columns(self, stored: str, name: str) -> None:
        before, after = self._old.tables[stored], self._new.tables[name]
        old = _by_meaning(before)
        all_old = dict(old)
        columns: dict[str, str | None] = {}
        widens = False
        collections: dict[str, tuple[str, str]] = {}
        for key, column in _by_meaning(after).items():
            found = old.pop(key, None)
            if found is None and (same := self._known_as(key, all_old)) is not None:
                found = all_old[same]
                if same != _ROWS:
                    old.pop(same, None)
            columns[column.stored] = None if found is None else found.stored
            types = self._retyped.get(column.meaning)
            if found is not None and found.type != column.type:
                widens = True
                if not casts(found.type, column.type) and (types is None or narrowing(*types)):
                    self.obstacles.append(f"{after.meaning}: {column.meaning} was {found.type}, is {column.type}")
            elif found is not None and column.type in _BYTES:
                # Collections are stored as bytes, whatever their elements.
                if column.meaning in self._collections:
                    widens, collections[column.stored] = True, self._collections[column.meaning]
                elif of := [text for text in self._collections if text in column.meaning]:
                    self._refuse_elements(of[0])
            elif found is None and not after.grows:
                self.obstacles.append(f"{after.meaning}: what is stored lacks {column.meaning}")
        for column in after.columns:
            if after.grows and columns[column.stored] is None:
                # It would be taken for set although it is not.
                if column.needs and columns[column.needs] is not None:
                    self.obstacles.append(f"{column.meaning}: was not kept, but the count of its rows was")
                else:
                    self._starts(column.meaning)
        self.losses += [f"{before.meaning}: {column.meaning} goes" for column in old.values()]
        if not self.obstacles:
            empty = self._empty[name]
            self.moves[stored] = TableMove(name, columns, empty, self._keys, self._rekeyed, widens, collections)


def _united(types: Sequence[Mapping[str, str]] | None) -> dict[str, str]:
    return {text: type_ for one in types or () for text, type_ in one.items()}


def _retyped(
    old: Sequence[Mapping[str, str]] | None, new: Sequence[Mapping[str, str]] | None
) -> dict[str, tuple[str, str]]:
    """Columns that both inputs have, with other types; none where types are not known."""
    return {
        text: (before[text], type_)
        for before, after in zip(old or (), new or (), strict=False)
        for text, type_ in after.items()
        if before.get(text, type_) != type_
    }


def _numbered(found: Sequence[T]) -> list[tuple[T, int]]:
    """Equal ones told apart by their order."""
    seen: Counter[T] = Counter()
    numbered = []
    for one in found:
        numbered.append((one, seen[one]))
        seen[one] += 1
    return numbered


def _tables_by_meaning(layout: OperatorLayout) -> dict[tuple[str, int], str]:
    return dict(zip(_numbered([table.meaning for table in layout.tables.values()]), layout.tables, strict=True))


def _by_meaning(table: StateTable) -> dict[tuple[str, int], StateColumn]:
    return dict(zip(_numbered([column.meaning for column in table.columns]), table.columns, strict=True))


def _keys(layout: OperatorLayout) -> str:
    return ", ".join(f"{meaning} ({type_})" for meaning, type_ in layout.keys) or "none"


def _listed(conditions: Sequence[str]) -> str:
    return "'" + " AND ".join(conditions) + "'" if conditions else "nothing was asked of them"


def _zeros(type_: Any, n: int) -> Any:
    if is_bytes_type(type_):
        return pa.nulls(n, type_)
    return pa.Array.from_buffers(type_, n, [None, pa.py_buffer(bytes(n * (type_.bit_width + 7) // 8))])


def check(changes: Sequence[Change], ignore_unclaimed: bool, changed: ChangedState) -> None:
    """Refuse a job that would lose state, or whose results would not be what they seem, unless it is allowed.

    Raises:
        BindError: it names the operator, what is wrong, and the option that allows it.
    """
    for one in changes:
        why = f"{one.uid} ({one.name}): {'; '.join(one.reasons)}"
        match one.fate:
            case Fate.REBUILT if changed is not ChangedState.REBUILD:
                raise BindError(
                    "changed-state",
                    f"The state of an operator does not fit the changed query. {why}.",
                    hint=f"SET '{CHANGED_STATE.key}' = 'rebuild' lets it start empty",
                )
            case Fate.MIGRATED if one.restarts and changed is ChangedState.REFUSE:
                raise BindError(
                    "changed-state",
                    f"The results of an operator would mix two queries. {why}.",
                    hint=f"SET '{CHANGED_STATE.key}' = 'migrate' allows it",
                )
    dropped = [one for one in changes if one.loses and one.fate is not Fate.REBUILT]
    if dropped and not ignore_unclaimed:
        hint = f"SET '{IGNORE_UNCLAIMED.key}' = 'true' drops it"
        operators = [one for one in dropped if one.fate is Fate.DROPPED]
        if operators:
            names = ", ".join(f"{one.uid} ({one.name})" for one in operators[:3]) + (", ..." if operators[3:] else "")
            message = f"The snapshot holds state that no operator of the job takes: {names}."
        else:
            one = dropped[0]
            message = (
                f"The job takes only a part of an operator's state. {one.uid} ({one.name}): {'; '.join(one.reasons)}."
            )
        raise BindError("unclaimed-state", message, hint=hint)
