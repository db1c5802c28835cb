"""Accumulators and the values beside them, named by columns of tables instead of places in the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flowsql_core.expr import AggregateCall
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.aggregate.inputs import Sign
from flowsql_runtime.state.flat_rows import flat_types
from flowsql_runtime.state.names import TableNames

if TYPE_CHECKING:
    from flowsql_runtime.operators.aggregate.program import Label


class ProgramNames:
    """Names of one program.

    Args:
        columns: canonical texts of the input's columns.
        groups: of DISTINCT: columns, whether NULL is a value, FILTER columns.
    """

    def __init__(
        self, columns: Sequence[str], groups: Sequence[tuple[tuple[int, ...], bool, tuple[int | None, ...]]]
    ) -> None:
        self._columns = columns
        self._groups = groups

    def accumulators(self, labels: Mapping[str, Label], extremes: Sequence[int]) -> TableNames:
        """The row of accumulators. ``extremes``: the column of each MIN or MAX that keeps its values."""
        by_word = {label.word: name for name, label in labels.items()}
        names = {}
        counts = {}
        for stored, label in labels.items():
            text = label.kind
            if label.argument is not None:
                place = label.argument.column
                text += f"({self._columns[extremes[place] if label.argument.top else place]})"
                text += " of kept values" if label.argument.top else ""
            names[f"v:{stored}"] = text + self._of(label.sign)
            if label.count >= 0:
                counts[f"v:{stored}"] = f"v:{by_word.get(label.count, 'rows')}"
        return TableNames("accumulators", {"v:rows": "rows", **names}, grows=True, counts=counts)

    def distinct(self, group: int, bits: bool, width: int) -> TableNames:
        """Values that DISTINCT calls have seen; a bit a FILTER, or a count."""
        columns, _, filters = self._groups[group]
        shown = ["all" if one is None else self._columns[one] for one in filters]
        seen = {f"v:{index}": f"rows where {shown[index]}" for index in range(width)}
        if bits:
            seen = {"v:0": f"whether there were rows where {', '.join(shown)}"}
        keys = {f"m{index}": self._columns[column] for index, column in enumerate(columns)}
        return TableNames(self._distinct(group), {**keys, **seen})

    def values_of_extreme(self, column: int, largest: bool, sign: Sign) -> TableNames:
        """Values of a MIN or MAX over rows that are taken back."""
        return TableNames(f"values of {'MAX' if largest else 'MIN'}({self._columns[column]}){self._of(sign)}")

    def values_of_call(self, call: AggregateCall, sign: Sign, input: Schema) -> TableNames:
        """Values that a call keeps in order; nested ones take several columns."""
        arguments = [self._columns[arg.index] for arg in call.args]
        stored = [
            f"{text} [{part}]" if part else text
            for arg, text in zip(call.args, arguments, strict=True)
            for part in range(len(flat_types(to_arrow(input[arg.index].type))))
        ]
        options = "".join(f" {key}={value}" for key, value in call.options)
        order = "".join(f" {self._columns[index]}{' DESC' if down else ''}" for index, down in call.order_by)
        meaning = f"values of {call.function}({', '.join(arguments)}{order}{options}){self._of(sign)}"
        return TableNames(meaning, {f"r{index}": text for index, text in enumerate(stored)})

    def _distinct(self, group: int) -> str:
        columns, nulls, _ = self._groups[group]
        return f"DISTINCT({', '.join(self._columns[column] for column in columns)}{', NULL' if nulls else ''})"

    def _of(self, sign: Sign) -> str:
        """Which rows take part."""
        parts = [f"{self._columns[column]} IS NOT NULL" for column in sign.not_null]
        if sign.filter is not None:
            parts.append(self._columns[sign.filter])
        if sign.group is not None:
            chosen = self._groups[sign.group][2][sign.place]
            parts.append(self._distinct(sign.group) + ("" if chosen is None else f" FILTER {self._columns[chosen]}"))
        if sign.late:
            parts.append("it came after a restore")
        return f" WHERE {' AND '.join(parts)}" if parts else ""
