"""Messages that are JSON objects each, for columns without structure; plain ones are read by a kernel.

Left to lines are escapes in texts, arrays of objects, and whatever an object has that its column does not take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.kernels.json.objects import HEADS, INTEGER, MOST_HEADS, NUMBER, TEXT, TRUTH, read_objects
from flowsql_connectors.formats.messages.by_kernel import KernelMessages, Slots, limits
from flowsql_connectors.formats.messages.lines import LineMessages
from flowsql_connectors.formats.text_values import TextDialect, parse_plain
from flowsql_core.types.logical import (
    BinaryStringType,
    BooleanType,
    CharacterType,
    DateTimeType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    Schema,
)


class ObjectMessages(KernelMessages):
    """Decodes messages of JSON for some columns, for all of which :func:`is_flat` holds."""

    reads_truth = True

    def __init__(self, columns: Schema, dialect: TextDialect, lines: LineMessages) -> None:
        types = [column.type for column in columns]
        super().__init__(types, lines)
        self._dialect = dialect
        names = [column.name.encode() for column in columns]
        self._name_offsets = np.cumsum([0, *map(len, names)], dtype=np.int32)
        self._names = np.frombuffer(b"".join(names) + b"\0", np.uint8)
        self._kinds = np.array([_kind(type_) for type_ in types], np.int64)
        self._limits = np.array([limits(type_) for type_ in types], np.int64).reshape(-1, 2).T.copy()

    def fill(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], slots: Slots) -> int:
        """Run the kernel; how many messages are odd."""
        return int(
            read_objects(
                data, offsets, self._kinds, *self._limits, self._name_offsets, self._names,
                np.zeros(len(self._kinds), np.int64), np.zeros((HEADS, MOST_HEADS), np.int64), slots.values,
                slots.valid, slots.odd,
            )
        )  # fmt: skip

    def parsed(self, found: Any, type_: LogicalType) -> Any | None:
        """By Arrow where all texts have the one form that Arrow and Flink read alike."""
        return found if isinstance(type_, CharacterType) else parse_plain(found, type_, self._dialect)


def is_flat(type_: LogicalType) -> bool:
    """Whether the kernel knows the values of a type."""
    return isinstance(
        type_,
        IntegerType
        | FloatType
        | DoubleType
        | DecimalType
        | BooleanType
        | CharacterType
        | BinaryStringType
        | DateTimeType,
    )


def _kind(type_: LogicalType) -> int:
    match type_:
        case IntegerType():
            return INTEGER
        case BooleanType():
            return TRUTH
        case FloatType() | DoubleType() | DecimalType():
            return NUMBER
    return TEXT
