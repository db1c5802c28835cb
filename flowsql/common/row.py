"""``Row``: one row as user code sees it, with the kind of change that it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flowsql_core.row import RowKind

_new = object.__new__


class Row:
    """Values in order, with names where they are known, and a :class:`RowKind` (``INSERT`` unless told).

    >>> Row(1, "a")
    <Row(1, 'a')>
    >>> row = Row(name="ann", age=11)
    >>> row.name, row["age"], row[0]
    ('ann', 11, 'ann')

    A row of a result prints as one without names, as PyFlink's does; its values are found by the columns' names too.
    """

    __slots__ = ("_kind", "_labels", "_names", "_values")

    def __init__(self, *values: Any, **named: Any) -> None:
        if values and named:
            raise ValueError("a Row has positional values or named ones, not both")
        self._values: list[Any] = list(values) if values else list(named.values())
        self._names: tuple[str, ...] | None = tuple(named) if named else None
        #: Names that values are found by, and nothing else.
        self._labels: tuple[str, ...] | None = self._names
        self._kind = RowKind.INSERT

    @staticmethod
    def of_kind(kind: RowKind, *values: Any, **named: Any) -> Row:
        """A row with a kind of change."""
        row = Row(*values, **named)
        row._kind = kind
        return row

    @staticmethod
    def of_names(names: Sequence[str] | None, values: Sequence[Any], kind: RowKind = RowKind.INSERT) -> Row:
        """A row whose names need not be Python identifiers, nor distinct."""
        row = _new(Row)
        row._values = list(values)
        row._names = row._labels = None if names is None else tuple(names)
        row._kind = kind
        return row

    @staticmethod
    def of_labels(labels: tuple[str, ...], values: Sequence[Any], kind: RowKind = RowKind.INSERT) -> Row:
        """A row without names whose values are found by those of their columns."""
        row = _new(Row)
        row._values = list(values)
        row._names = None
        row._labels = labels
        row._kind = kind
        return row

    def copy(self) -> Row:
        """Another row of the same names, values and kind."""
        made = Row.of_names(self._names, self._values, self._kind)
        made._labels = self._labels
        return made

    def get_row_kind(self) -> RowKind:
        """What the row does to the table."""
        return self._kind

    def set_row_kind(self, kind: RowKind) -> None:
        """Change what the row does to the table."""
        self._kind = kind

    def set_field_names(self, names: Sequence[str]) -> None:
        """Name the values."""
        self._names = self._labels = tuple(names)

    def has_names(self, names: Sequence[str]) -> bool:
        """Whether every one of these names is a field's."""
        return self._names is not None and set(names) <= set(self._names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Values under names, in the order asked."""
        return [self[name] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Values by name; with ``recursive`` nested rows too. TypeError when the row has no names."""
        if self._labels is None:
            raise TypeError("this Row has no field names")
        values = map(_as_dict, self._values) if recursive else self._values
        return dict(zip(self._labels, values, strict=True))

    def _index(self, key: int | str) -> int:
        if isinstance(key, str):
            if self._labels is None or key not in self._labels:
                raise KeyError(key)
            return self._labels.index(key)
        return key

    def __call__(self, *values: Any) -> Row:
        """A row of these values, this one's values being the names: ``Row("id", "name")(1, "ann")``."""
        if len(values) > len(self._values):
            raise ValueError(f"{len(values)} values do not fit {self!r}")
        return Row.of_names([str(name) for name in self._values], values, self._kind)

    def __getitem__(self, key: int | str | slice) -> Any:
        return self._values[key if isinstance(key, slice) else self._index(key)]

    def __setitem__(self, key: int | str, value: Any) -> None:
        self._values[self._index(key)] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this Row has no field '{name}'") from None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._names is None and self._labels is not None:
            return Row.of_labels, (self._labels, tuple(self._values), self._kind)
        return Row.of_names, (self._names, tuple(self._values), self._kind)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __contains__(self, item: object) -> bool:
        # Names where there are some, else values: as in PyFlink.
        return item in (self._values if self._names is None else self._names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._kind == other._kind and self._names == other._names and self._values == other._values

    def __hash__(self) -> int:
        return hash((self._kind, tuple(self._values)))

    def __repr__(self) -> str:
        if self._names is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._names, self._values, strict=True))})"


def _as_dict(value: Any) -> Any:
    """A value with the rows in it as dicts."""
    match value:
        case Row():
            return value.as_dict(True)
        case list():
            return [_as_dict(item) for item in value]
        case dict():
            return {key: _as_dict(item) for key, item in value.items()}
    return value
