"""``TableSchema``: names and types in PyFlink's old form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from flowsql.table.types import DataType, DataTypes, RowType


class TableSchema:
    """Columns of a table: names with types, in order."""

    def __init__(self, field_names: Sequence[str], data_types: Sequence[DataType]) -> None:
        self._names = list(field_names)
        self._types = list(data_types)

    def copy(self) -> TableSchema:
        """The same again."""
        return TableSchema(self._names, self._types)

    def get_field_names(self) -> list[str]:
        """Names in order."""
        return list(self._names)

    def get_field_data_types(self) -> list[DataType]:
        """Types in order."""
        return list(self._types)

    def get_field_count(self) -> int:
        """How many columns there are."""
        return len(self._names)

    def get_field_name(self, field_index: int) -> str | None:
        """A name by position from 0; None where there is none."""
        return self._names[field_index] if 0 <= field_index < len(self._names) else None

    def get_field_data_type(self, field: int | str) -> DataType | None:
        """A type by position or name; None where there is none."""
        if isinstance(field, str):
            return self._types[self._names.index(field)] if field in self._names else None
        return self._types[field] if 0 <= field < len(self._types) else None

    def to_row_data_type(self) -> RowType:
        """The columns as one ROW type, which is NOT NULL: a table has no row that is NULL."""
        return DataTypes.ROW([DataTypes.FIELD(n, t) for n, t in zip(self._names, self._types, strict=True)], False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and (self._names, self._types) == (other._names, other._types)

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._types)))

    def __repr__(self) -> str:
        lines = [f" |-- {name}: {type_}" for name, type_ in zip(self._names, self._types, strict=True)]
        return "\n".join(["root", *lines]) + "\n"

    @classmethod
    def builder(cls) -> TableSchema.Builder:
        """A builder of columns."""
        return TableSchema.Builder()

    class Builder:
        """Collects columns; ``build`` makes the schema."""

        def __init__(self) -> None:
            self._names: list[str] = []
            self._types: list[DataType] = []

        def field(self, name: str, data_type: DataType) -> Self:
            """Add a column."""
            self._names.append(name)
            self._types.append(data_type)
            return self

        def build(self) -> TableSchema:
            """The schema."""
            return TableSchema(self._names, self._types)
