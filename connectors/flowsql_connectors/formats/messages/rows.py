"""Messages that are csv rows each, for columns without structure; plain ones are read by a kernel.

Left to lines are escapes, quotes inside of quotes, rows of another width, and texts that are no values of their column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_compute.kernels.csv_messages import INTEGER, SKIP, TEXT, read_csv_messages
from flowsql_connectors.formats.messages.by_kernel import KernelMessages, Slots, limits
from flowsql_connectors.formats.messages.lines import LineMessages
from flowsql_connectors.formats.text_values import parse_texts
from flowsql_core.arrow import compute as pc
from flowsql_core.types.logical import ArrayType, CharacterType, IntegerType, LogicalType, RowType, Schema

if TYPE_CHECKING:
    from flowsql_connectors.formats.csv import CsvFormat

#: A byte that no text has.
_NONE: Final = 255


class RowMessages(KernelMessages):
    """Decodes messages of csv where :meth:`reads` holds.

    Args:
        columns: of the table.
        projection: the wanted ones.
    """

    def __init__(self, format_: CsvFormat, columns: Schema, projection: tuple[int, ...], lines: LineMessages) -> None:
        super().__init__([columns[index].type for index in projection], lines)
        self._texts = format_.texts
        dialect = format_.dialect
        self._marks = [
            np.uint8(_NONE if mark is None else ord(mark))
            for mark in (dialect.delimiter, dialect.quote, dialect.escape)
        ]
        literal = "".join(format_.null_literals).encode()
        self._null = np.frombuffer(literal + b"\0", np.uint8)
        self._null_size = len(literal) if format_.null_literals else -1
        self._kinds = np.full(len(columns), SKIP, np.int64)
        self._places = np.zeros(len(columns), np.int64)
        for place, index in enumerate(projection):
            self._kinds[index] = INTEGER if isinstance(columns[index].type, IntegerType) else TEXT
            self._places[index] = place
        self._limits = np.array([limits(column.type) for column in columns], np.int64).reshape(-1, 2).T.copy()

    @staticmethod
    def reads(format_: CsvFormat, columns: Schema, projection: tuple[int, ...]) -> bool:
        """Whether rows of a table can be plain at all: the kernel knows one text for NULL, and no structure."""
        dialect = format_.dialect
        marks = [mark for mark in (dialect.delimiter, dialect.quote, dialect.escape) if mark is not None]
        return (
            not dialect.comments
            and len(format_.null_literals) <= 1
            and len(set(projection)) == len(projection)
            and all(mark.isascii() and mark not in "\r\n" for mark in marks)
            and not any(isinstance(columns[index].type, ArrayType | RowType) for index in projection)
        )

    def fill(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], slots: Slots) -> int:
        """Run the kernel; how many messages are odd."""
        return int(
            read_csv_messages(
                data, offsets, *self._marks, self._null, self._null_size, self._kinds, self._places, *self._limits,
                slots.values, slots.valid, slots.odd,
            )
        )  # fmt: skip

    def parsed(self, found: Any, type_: LogicalType) -> Any | None:
        """By the rules of all formats."""
        if isinstance(type_, CharacterType):
            return found
        values, bad, _ = parse_texts(found, type_, self._texts)
        return None if bad is not None and pc.any(bad).as_py() else values
