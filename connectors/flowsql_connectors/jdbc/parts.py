"""Parts of a scan: ranges of ``scan.partition.column``, dealt out to readers and numbered for snapshots."""

from __future__ import annotations

import datetime
import json
from itertools import pairwise
from typing import Final

from flowsql_connectors.jdbc.options import COLUMN, LOWER, NUMBER, UPPER
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types import logical as t

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


@record
class Part:
    """A range of a column: ``first <= column < end`` in the units of :meth:`Dialect.number`, with ``end`` in it where
    the part is the ``last``."""

    column: int
    first: int
    end: int
    last: bool


def parts_of(table: TableSpec, values: OptionValues) -> tuple[Part, ...]:
    """Parts that hold the rows of a table between the bounds, as in Flink: those without a value and those beyond the
    bounds are in none. No parts: the table is read whole.

    Raises:
        BindError: there is no such column, or its type has no ranges, or a bound is no value of it.
    """
    name, number = values.get(COLUMN), values.get(NUMBER)
    lower, upper = values.get(LOWER), values.get(UPPER)
    if name is None or number is None or lower is None or upper is None:
        return ()
    names = [column.name for column in table.columns]
    index = next((at for at, each in enumerate(names) if each == name), None)
    if index is None:
        index = next((at for at, each in enumerate(names) if each.lower() == name.lower()), None)
    if index is None:
        raise BindError(
            "partition-column",
            f"'{COLUMN.key}': table {table.name} has no column '{name}'.",
            hint=did_you_mean(name, names),
        )
    type_ = table.columns[index].type
    first, last = _bound(lower, type_, LOWER.key, name), _bound(upper, type_, UPPER.key, name)
    if first > last:
        raise BindError(
            "partition-bounds",
            f"'{LOWER.key}'='{lower}' must not be larger than '{UPPER.key}'='{upper}'.",
            hint="rows between the two are read, the bounds among them",
        )
    count = min(number, last - first + 1)
    bounds = [*(first + (last - first + 1) * at // count for at in range(count)), last]
    return tuple(Part(index, *ends, at == count) for at, ends in enumerate(pairwise(bounds), start=1))


def _bound(text: str, type_: t.LogicalType, key: str, column: str) -> int:
    try:
        match type_:
            case t.IntegerType() | t.DecimalType() | t.ApproximateType():
                return int(text.strip())
            case t.DateType():
                return (datetime.date.fromisoformat(text.strip()) - _EPOCH.date()).days
            case t.TimestampType():
                return (datetime.datetime.fromisoformat(text.strip()) - _EPOCH) // _MICROSECOND
    except (ValueError, TypeError):
        raise BindError(
            "invalid-option-value",
            f"Could not parse value '{text}' for key '{key}'.",
            hint=f"column '{column}' is {type_}: give an integer, 2026-01-31 or 2026-01-31 12:00:00",
        ) from None
    raise BindError(
        "partition-column",
        f"'{COLUMN.key}': column '{column}' is {type_}, of which there are no ranges.",
        hint="take a column of numbers, dates or timestamps",
    )


class PartCode:
    """Parts by their numbers."""

    def encode(self, part: int, rows: int) -> Split:
        """A part with the number of rows that were read of it."""
        return Split(f"part-{part:05d}", json.dumps({"part": part, "rows": rows}).encode())

    def decode(self, split: Split) -> tuple[int, int]:
        """Number of the part, and of rows read."""
        data = json.loads(split.data)
        return int(data["part"]), int(data["rows"])


class PartEnumerator(SplitEnumerator):
    """All parts at once."""

    def __init__(self, count: int) -> None:
        self._count = count

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """One part behind another to the subtasks."""
        code = PartCode()
        return [
            [code.encode(index, 0) for index in range(subtask, self._count, parallelism)]
            for subtask in range(parallelism)
        ]
