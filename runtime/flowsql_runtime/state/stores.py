"""What operators see of keyed state: stores that take slots and columns and give columns, never an array of their own.

A slot is what a ``KeyIndex`` hands out for a key. It is good until the operator has dealt with the element (batch,
watermark or timer) for which it was asked: then a backend may write it out and give its number to another key.
``docs/adr/013-stores.md`` says how a backend stands behind these protocols.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_core.record import record
from flowsql_runtime.state.rankings import Places, Ranked

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NO_BYTES: Final = np.zeros(0, np.uint8)


@record
class StoredColumn:
    """Name and Arrow type of a column; ``nullable`` costs a bit a row."""

    name: str
    type: Any
    nullable: bool = True


@record
class SortColumn:
    """A column that rows are sorted by: its place in the row, direction, and where NULLs go.

    ``nulls_first`` None is Flink's default: NULL is the smallest value.
    """

    index: int
    ascending: bool = True
    nulls_first: bool | None = None


class EncodedKeys(ABC):
    """Keys of a batch as one index takes them; what is in them is the index's own matter."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def with_namespaces(self, namespaces: Int64s) -> EncodedKeys:
        """The same keys of a namespaced index under other namespaces."""


class KeyIndex(Protocol):
    """Key columns -> slots, one call per batch. A namespace (int64, e.g. a window end) may be part of the key."""

    @property
    def types(self) -> tuple[Any, ...]:
        """Arrow types of the key columns; none: one global key."""
        ...

    def __len__(self) -> int: ...

    def encode(
        self, columns: Sequence[Any], namespaces: Int64s | None = None, num_rows: int | None = None
    ) -> EncodedKeys:
        """Keys of a batch: Arrow arrays of the index's types, with the namespaces if it has them."""
        ...

    def encoded_at(self, slots: Int32s) -> EncodedKeys:
        """The keys of live slots, for this index or another of the same shape."""
        ...

    def lookup(self, keys: EncodedKeys, skip: Bytes = NO_BYTES) -> Int32s:
        """Slot of each row, int32 (n,); -1 where the key is not there or ``skip`` is not 0."""
        ...

    def find_or_insert(self, keys: EncodedKeys, skip: Bytes = NO_BYTES) -> tuple[Int32s, Int32s]:
        """Slot of each row, int32 (n,), -1 where skipped; and the rows (rising) whose keys were new."""
        ...

    def expect(self, columns: Sequence[Any], num_rows: int) -> None:
        """Keys that will be asked for soon, as in ``encode``: those that are outside memory may come back at once."""
        ...

    def remove(self, slots: Int32s) -> None:
        """Forget the keys of live, distinct slots. The stores that hang on the index forget them first."""
        ...

    def clear(self) -> None:
        """Forget every key. The stores that hang on the index forget them first."""
        ...

    def columns_at(self, slots: Int32s) -> list[Any]:
        """Key columns of live slots as Arrow arrays of the index's types."""
        ...


class WindowIndex(KeyIndex, Protocol):
    """A ``KeyIndex`` with namespaces that knows its keys by namespace: what windows wait, and for which end."""

    def namespaces_at(self, slots: Int32s) -> Int64s:
        """Namespace of each slot."""
        ...

    def earliest(self) -> int | None:
        """The smallest namespace, None without keys."""
        ...

    def namespaces(self) -> Int64s:
        """All namespaces that have keys, rising."""
        ...

    def up_to(self, namespace: int) -> tuple[Int64s, Int32s]:
        """Namespaces and slots of all keys at or before a namespace: by namespace, then as they were put in.

        Costs what it returns.
        """
        ...

    def numbered(self, slots: Int32s) -> Int32s:
        """A number for the key of each slot, whatever its namespace, int32 (n,); good as long as the slot is."""
        ...

    def most_numbers(self) -> int:
        """Above every number that :meth:`numbered` gives."""
        ...


class ColumnStore(Protocol):
    """Typed columns by slot."""

    def gather(self, slots: Int32s) -> list[Any]:
        """All columns at the slots, as Arrow arrays."""
        ...

    def scatter(self, slots: Int32s, arrays: Sequence[Any]) -> None:
        """Write all columns at the slots; of equal slots the last row stays."""
        ...

    def clear(self, slots: Int32s) -> None:
        """Make the slots as new."""
        ...


@record
class Folded:
    """What a fold did; valid until the store folds again.

    ``slots`` (m,), ``first_rows`` (m,): whose change, and the first row of the batch behind it, in row order.
    ``states`` (2m, w): words before (even rows) and after (odd rows). ``more_than_one``: a SINGLE met a second row.
    """

    slots: Int32s
    first_rows: Int32s
    states: Int64s
    more_than_one: bool


class AccumulatorStore(ColumnStore, Protocol):
    """Accumulators of aggregates: a row of 64-bit words a slot, word 0 counts the slot's rows.

    Programs (``ops``) are those of ``kernels/accumulate.py``. Texts in words are references, good until ``prepare``.
    """

    @property
    def width(self) -> int:
        """Words of a row."""
        ...

    def prepare(self) -> None:
        """Before a batch puts texts in: make room, and give back what texts left behind."""
        ...

    def store_bytes(self, array: Any) -> Int64s:
        """References of a string or binary Arrow array's values, int64 (n,); 0 at NULL."""
        ...

    def bytes_at(self, refs: Int64s, type_: Any) -> Any:
        """Arrow array of references; 0 gives NULL."""
        ...

    def equal_bytes(self, left: Int64s, right: Int64s) -> Bools:
        """Whether references hold equal values; NULL equals NULL."""
        ...

    def known_signs(self, slots: Int32s, signs: Int8s) -> Int8s:
        """The signs without retractions of slots that have no rows at that moment."""
        ...

    def fold(
        self, slots: Int32s, ops: Int64s, arguments: Int64s, signs: Int8s, record: int, clear: bool = False
    ) -> Folded:
        """Fold a batch into the slots by a program.

        Args:
            ops: (k, 5), and ``arguments`` (a, n), ``signs`` (s, n), as the kernel takes them.
            record: ``ONCE`` a touched slot, ``EVERY`` row or ``NOTHING``.
            clear: a slot whose row count comes to 0 starts over.
        """
        ...

    def merged(self, positions: Int32s, count: int, members: Int32s, ops: Int64s) -> Int64s:
        """Rows of ``members`` (slots) merged by position, (count, width); the slots stay as they are."""
        ...

    def row_counts(self, slots: Int32s) -> Int64s:
        """Word 0 of the slots."""
        ...

    def words_at(self, slots: Int32s) -> Int64s:
        """Rows of the slots, (n, width)."""
        ...

    def word_columns_at(self, slots: Int32s) -> Int64s:
        """The same as columns, (width, n)."""
        ...

    def put_words(self, slots: Int32s, words: Int64s) -> None:
        """Write whole rows (n, width)."""
        ...

    def clear_all(self) -> None:
        """Make every slot as new; before the index is emptied."""
        ...


class MapStore(Protocol):
    """(slot, key) -> columns. An entry's number is good as long as its slot's."""

    def find_or_insert(self, slots: Int32s, keys: Sequence[Any], skip: Bytes = NO_BYTES) -> tuple[Int32s, Int32s]:
        """Entry of each (slot, key), int32 (n,), -1 where skipped; and the rows whose entries are new (values zero)."""
        ...

    def lookup(self, slots: Int32s, keys: Sequence[Any], skip: Bytes = NO_BYTES) -> Int32s:
        """Entry of each (slot, key), or -1."""
        ...

    def gather(self, entries: Int32s) -> list[Any]:
        """Columns of entries."""
        ...

    def scatter(self, entries: Int32s, arrays: Sequence[Any]) -> None:
        """Write the columns of entries."""
        ...

    def keys_at(self, entries: Int32s) -> list[Any]:
        """Key columns of entries."""
        ...

    def iterate_slot(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, entry), by position, then as entries were put in. Costs what it returns."""
        ...

    def count_distinct(self, entries: Int32s, signs: Int8s, bits: bool) -> Int8s:
        """Take each row's entry in or out, and say where a value came for the first time or went for the last.

        Args:
            entries: -1 takes no part.
            signs: (f, n): one row of signs a filter.
            bits: nothing is ever taken out: the first column has a bit a filter, else there is a count a filter.

        Returns:
            (f, n): 1, -1 or 0. Entries whose counts all came to 0 are gone.
        """
        ...

    def count_distinct_net(self, entries: Int32s, changes: Int64s) -> Int8s:
        """Change the counts of each row's entry, and say where a value is there from now on or no longer.

        Args:
            entries: -1 takes no part.
            changes: (f, n): how often the value came more than it went, by filter; there is a count a filter.

        Returns:
            (f, n): 1, -1 or 0. Entries whose counts all came to 0 are gone.
        """
        ...

    def remove(self, entries: Int32s) -> None:
        """Delete live, distinct entries."""
        ...

    def drop_slots(self, slots: Int32s) -> None:
        """Delete every entry of the slots. Costs what it deletes."""
        ...


class Rows(Protocol):
    """Slot -> rows in arrival order, which stay. A row's number is good as long as its slot's."""

    def append(self, slots: Int32s, columns: Sequence[Any], associations: Int32s | None = None) -> None:
        """Keep rows; slot -1 takes no part. ``associations``: their partners (n,), where rows are ``counted``."""
        ...

    def rows_of(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row), by position and arrival; slot -1 or an empty one has none."""
        ...

    def counts(self, slots: Int32s) -> Int32s:
        """Rows of each slot."""
        ...

    def gather(self, rows: Int32s) -> Sequence[Any]:
        """Columns of rows, maybe gathered only when they are read."""
        ...

    def associate(self, rows: Int32s, changes: Int32s, stamp: int | None = None) -> Int32s:
        """Count the partners of rows up or down, in order, where rows are ``counted``; rows may repeat.

        ``stamp``: where rows are ``stamped``, the time at which these were written to once more.

        Returns:
            int32 (n,): partners before each change: an outer join pads a row that has 0 with NULLs.
        """
        ...

    def associations(self, rows: Int32s) -> Int32s:
        """Partners of rows."""
        ...


class RowList(Rows, Protocol):
    """Slot -> rows in arrival order, which may be taken out."""

    def apply(
        self,
        signs: Int8s,
        slots: Int32s,
        columns: Sequence[Any],
        stamp: int = 0,
        associations: Int32s | None = None,
    ) -> Int32s:
        """Put rows in (sign 1) and take equal ones out (sign -1), in order; slot -1 takes no part.

        Args:
            stamp: time of the rows put in, where the list is ``stamped``.
            associations: partners of the rows put in (n,), where the list is ``counted``; default: none.

        Returns:
            int32 (n,): the row put in or taken out; -1 where there was none.
        """
        ...

    def apply_latest(self, signs: Int8s, slots: Int32s, columns: Sequence[Any]) -> tuple[Int8s, Int32s]:
        """:meth:`apply` of rows that may be taken out, and how each changes the newest row of its slot.

        Returns:
            int8 (n,): the kind of change, -1 where the newest row stays. int32 (n,): -1 where it is the row itself that
            changes, else a row that is the newest again; gather those before the next call.
        """
        ...

    def row_bytes(self, rows: Int32s) -> Int64s:
        """Bytes of all variable-length values of each row, int64 (n,)."""
        ...

    def younger(self, rows: Int32s, stamp: int) -> Bools:
        """Whether each row was stamped after ``stamp``."""
        ...

    def remove_older(self, stamp: int) -> Int32s:
        """Take out rows stamped at or before ``stamp``; returns their slots. Costs what it takes out."""
        ...

    def drop_slots(self, slots: Int32s) -> None:
        """Take out every row of the slots. Costs what it takes out."""
        ...


class RowFifo(Rows, Protocol):
    """Slot -> rows in arrival order, which leave in that order."""

    def first(self, slots: Int32s, counts: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row) of the oldest rows, ``counts[i]`` of slot i, which has so many."""
        ...

    def count_below(self, slots: Int32s, column: int, limits: Int64s) -> Int32s:
        """How many of the oldest rows of each slot have less than its limit in an int64 column.

        Rows are looked at up to the first that has not. Costs what it counts.
        """
        ...

    def drop_first(self, slots: Int32s, counts: Int32s) -> None:
        """Take out the oldest rows of live, distinct slots, which have so many. Costs what it takes out."""
        ...

    def drop_slots(self, slots: Int32s) -> None:
        """Take out every row of the slots. Costs what it takes out."""
        ...


class SortedList(Protocol):
    """Slot -> rows in sort order; rows that sort alike stand in order of arrival.

    What a row costs to put in, take out, find or rank is a logarithm of its slot's rows.
    """

    def apply(
        self, signs: Int8s, slots: Int32s, columns: Sequence[Any], associations: Int32s | None = None
    ) -> tuple[Int32s, Int32s]:
        """Put rows in (sign 1) and take equal ones out (sign -1), in order; slot -1 and sign 0 take no part.

        Args:
            associations: partners of the rows put in (n,), where the list is ``counted``; default: none.

        Returns:
            int32 (n,): the row put in or taken out; -1 where there was none. int32 (n,): how many rows of the slot
            stood before it then, after it was put in or before it was taken out; -1 likewise.
        """
        ...

    def remove(self, rows: Int32s) -> None:
        """Take live, distinct rows out by number, where the list is ``numbered``."""
        ...

    def associate(self, rows: Int32s, changes: Int32s) -> Int32s:
        """Count the partners of rows up or down, where the list is ``counted``; see ``RowList``."""
        ...

    def associations(self, rows: Int32s) -> Int32s:
        """Partners of rows."""
        ...

    def rank(self, signs: Int8s, slots: Int32s, columns: Sequence[Any], places: Places) -> Iterator[Ranked]:
        """Put rows in and take equal ones out, in order, and tell what changes at the first places of their slots.

        What is kept is up to how the list was made (``Keeping``). It has to be read to its end.
        """
        ...

    def ranks(self, rows: Int32s) -> Int32s:
        """How many rows of its slot stand before each row now."""
        ...

    def rows_of(self, slots: Int32s, first: Int64s | int = 0, count: int | None = None) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row), by position and sort order; slot -1 or an empty one has none.

        Args:
            first: how many rows to leave out at the front, for all slots or for each.
            count: at most so many of each slot; None: all. Costs what it returns, and a logarithm a slot.
        """
        ...

    def between(
        self,
        slots: Int32s,
        low: Sequence[Any] | None = None,
        high: Sequence[Any] | None = None,
        *,
        with_low: bool = True,
        with_high: bool = True,
    ) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row) of rows that sort between two bounds of their slot.

        Args:
            low, high: Arrow arrays (n,) of values of the first sort columns, as many as wanted; None: no bound.
                ``low`` is what sorts first, whatever the direction; NULL stands where NULLs of the column do.
            with_low, with_high: whether rows that sort like a bound belong to it.
        """
        ...

    def count_between(self, slots: Int32s, low: Sequence[Any] | None, high: Sequence[Any] | None) -> Int64s:
        """How many rows of each slot :meth:`between` finds, bounds included, int64 (n,)."""
        ...

    def counts(self, slots: Int32s) -> Int32s:
        """Rows of each slot."""
        ...

    def gather(self, rows: Int32s) -> Sequence[Any]:
        """Columns of rows."""
        ...

    def drop_slots(self, slots: Int32s) -> None:
        """Take out every row of the slots. Costs what it takes out."""
        ...


class RowQueue(Protocol):
    """Rows of all slots in one order of arrival, taken from the front. The slots of its rows stay good."""

    def __len__(self) -> int: ...

    def append(self, slots: Int32s, signs: Int8s, columns: Sequence[Any]) -> None:
        """Rows that wait from now on."""
        ...

    def first(self, rows: int) -> tuple[Int32s, Int8s, list[Any]]:
        """Slots, signs and columns of the first rows."""
        ...

    def drop_first(self, rows: int) -> None:
        """The first rows wait no longer."""
        ...

    def slots(self) -> Int32s:
        """Slots of all rows."""
        ...


class ExtremeValues(Protocol):
    """Slot -> multiset of values that knows its least or greatest. NULLs stay out."""

    @property
    def type(self) -> Any:
        """Arrow type of the values."""
        ...

    def update(self, slots: Int32s, array: Any, signs: Int8s) -> Int32s:
        """Count values up (sign 1) or down (-1), in order; sign 0 and NULL take no part.

        Returns:
            int32 (n,): the entry on top of the row's slot after the row, -1 when nothing is left, -2 where the row took
            no part. Read it before the next update.
        """
        ...

    def words_at(self, entries: Int32s) -> list[Int64s]:
        """Words (n,) of fixed-width values; what stands at negative entries means nothing."""
        ...

    def values_at(self, entries: Int32s) -> Any:
        """Arrow array of values, NULL at negative entries."""
        ...

    def drop_slots(self, slots: Int32s) -> None:
        """Forget all values of the slots. Costs what it forgets."""
        ...


class Timers(Protocol):
    """(Time, slot) pairs, each once: what an operator waits for on behalf of a key. Saved with the state."""

    def __len__(self) -> int: ...

    def register(self, times_ms: Int64s, slots: Int32s) -> None:
        """Wait for times, (n,) each; a pair that is there already stays one pair, slot -1 takes no part."""
        ...

    def delete(self, times_ms: Int64s, slots: Int32s) -> None:
        """Forget pairs; unknown ones are ignored."""
        ...

    def earliest(self) -> int | None:
        """The time of the next pair, None without pairs."""
        ...

    def due(self, until_ms: int) -> tuple[Int64s, Int32s]:
        """Take out the pairs at or before a time: times, rising, and slots, (n,) each. Costs what it returns."""
        ...


class SlotTimes(Protocol):
    """When each slot was written to last: state that expires."""

    def touch(self, slots: Int32s, now_ms: int) -> None:
        """They were written to now; -1 takes no part."""
        ...

    def expired(self, until_ms: int) -> Int32s:
        """Take out the slots that were written to last at or before a time. Costs what it returns."""
        ...

    def drop_slots(self, slots: Int32s) -> None:
        """Forget slots."""
        ...
