"""What the author of a connector in plain Python extends: :class:`RowSource` and :class:`BatchSink`.

Whoever needs more (push-down, lookups, two-phase commits) implements the interfaces of ``flowsql_connectors.spi``.
"""

from __future__ import annotations

import os
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.row import INSERT_ONLY, ChangelogMode, RowKind

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


def failure_text(error: BaseException) -> str:
    """What a connector's own code raised, and where."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    return f"{text} ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else text


class DeclaredTable:
    """The table that a statement reads or writes, as its CREATE TABLE declares it."""

    def __init__(self, spec: TableSpec, values: OptionValues, metadata: tuple[str, ...] = ()) -> None:
        #: ``catalog.database.table``.
        self.name = spec.name
        #: Names of the physical columns, in order.
        self.columns = tuple(column.name for column in spec.columns)
        #: Their types as SQL writes them, e.g. ``DECIMAL(10, 2)``.
        self.types = tuple(str(column.type) for column in spec.columns)
        self.primary_key = spec.primary_key
        #: Keys of the metadata columns that are read or written.
        self.metadata = metadata
        self._values = values

    def option(self, option: ConnectorOption[T]) -> T:
        """The value of an option of the WITH clause, or its default."""
        return self._values.get(option)


class At:
    """A row together with the position behind it.

    Args:
        row: a tuple or list of values in the order of the columns, a dict by column, one value of a table of one
            column, or a ``pyarrow.RecordBatch`` of rows, which may hold metadata as columns named by their keys.
        position: what :meth:`RowSource.read` gets to go on behind the row: numbers, texts, lists and dicts of them.
        kind: of the change, for sources whose ``changelog`` has more than inserts.
        metadata: values by key, for sources that have ``metadata``; NULL where it is left out.
    """

    __slots__ = ("kind", "metadata", "position", "row")

    def __init__(
        self,
        row: Any,
        position: Any = None,
        kind: RowKind = RowKind.INSERT,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.row = row
        self.position = position
        self.kind = kind
        self.metadata = metadata


class RowSource:
    """Rows of a table, made by Python code: an iterator for each split, which a checkpoint can go on from.

    One object is made for each subtask. Each split is read in a thread of its own, so that ``read`` may wait.
    """

    #: Options of the WITH clause beside ``connector``.
    options: ClassVar[OptionSet] = OptionSet()
    #: Whether the rows end. Batch mode takes only tables whose rows do.
    bounded: ClassVar[bool] = True
    #: The kinds of change that come.
    changelog: ClassVar[ChangelogMode] = INSERT_ONLY
    #: Keys of metadata with their types as SQL writes them, e.g. ``{"offset": "BIGINT"}``.
    metadata: ClassVar[Mapping[str, str]] = {}
    #: Whether :meth:`lookup` may be called from several threads at once.
    concurrent_lookups: ClassVar[bool] = False
    #: Of rows without end: whether ``read`` yields None where it has given all that is there (``flowsql.trigger``).
    tells_backlog: ClassVar[bool] = False

    def __init__(self, table: DeclaredTable) -> None:
        self.table = table

    def splits(self) -> Sequence[str]:
        """Names of the parts of the input that can be read side by side. The same whenever it is asked."""
        return ("all",)

    def read(self, split: str, position: Any) -> Iterator[Any]:
        """The rows of a split, in order.

        Args:
            split: one of :meth:`splits`.
            position: of the last :class:`At` behind which rows are wanted; None: from the start.

        Yields:
            A row (see :class:`At` for its forms), an :class:`At`, or None: nothing comes now. Rows that come without a
            position are found again by their number behind the last position: they must be the same ones then.
        """
        raise ConnectorError(
            "no-scan", f"Table '{self.table.name}' can only be looked up: its connector has no read()."
        )

    def lookup(self, keys: pa.RecordBatch) -> Iterable[Any] | pa.RecordBatch:
        """The rows of some keys, for ``JOIN ... FOR SYSTEM_TIME AS OF``. A class without this is not looked up.

        Args:
            keys: columns of the join by their names, distinct rows without NULL.

        Returns:
            Rows in any order, in the forms of :class:`At`, each with its key; rows of other keys are left out.
        """
        raise NotImplementedError

    @classmethod
    def reads(cls) -> bool:
        """Whether the class has :meth:`read`."""
        return cls.read is not RowSource.read

    @classmethod
    def looks_up(cls) -> bool:
        """Whether the class has :meth:`lookup`."""
        return cls.lookup is not RowSource.lookup

    @classmethod
    def read_whole(cls) -> bool:
        """Whether all rows can be read and kept for lookups: they end, and none is taken back."""
        return cls.reads() and cls.bounded and cls.changelog.insert_only

    def close(self) -> None:
        """Release what the object holds; ``read`` of other threads may still run."""


class BatchSink(ABC):
    """Takes the rows of an INSERT, batch by batch. One object is made for each subtask.

    What ``flush`` has let through is there at least once: after a failure rows behind the last checkpoint come again.
    """

    #: Options of the WITH clause beside ``connector``.
    options: ClassVar[OptionSet] = OptionSet()
    #: Keys of metadata that rows may have, with their types as SQL writes them.
    metadata: ClassVar[Mapping[str, str]] = {}
    #: Whether updates and deletes are taken. With a primary key, ``-U`` is left out.
    takes_changes: ClassVar[bool] = False

    def __init__(self, table: DeclaredTable) -> None:
        self.table = table

    @abstractmethod
    def write(self, rows: pa.RecordBatch, kinds: pa.StringArray | None) -> None:
        """Take rows.

        Args:
            rows: columns of the table, then those of the metadata that is written, by key.
            kinds: of each row, ``+I``, ``-U``, ``+U`` or ``-D``; None where all rows are ``+I``.
        """

    def flush(self) -> None:
        """Let everything that was written arrive: at each checkpoint and at the end of the input."""

    def close(self) -> None:
        """Release what the object holds."""

    @classmethod
    def accepted(cls, wanted: ChangelogMode, has_key: bool) -> ChangelogMode:
        """The changes that the sink takes of a query."""
        if not cls.takes_changes:
            return INSERT_ONLY
        return ChangelogMode(wanted.kinds - {RowKind.UPDATE_BEFORE}) if has_key else wanted
