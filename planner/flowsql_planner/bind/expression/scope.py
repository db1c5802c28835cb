"""Scopes: which columns a name can stand for, where they are in the input row, and what a star expands to."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.expr import Expr, InputRef
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, RowType, Schema


@record
class Namespace:
    """One item of FROM.

    ``alias``: the name columns are qualified with; None for a derived table without one. ``path``: the full path of a
    table that was named without alias, so that ``db.t.column`` works. ``start``: index of its first column in the row.
    """

    alias: str | None
    columns: Schema
    start: int = 0
    path: tuple[str, ...] = ()

    def matches(self, qualifier: Sequence[str]) -> bool:
        """Whether a qualifier of one or more names means this item."""
        if len(qualifier) == 1:
            return self.alias is not None and self.alias == qualifier[0]
        return len(self.path) >= len(qualifier) and tuple(self.path[-len(qualifier) :]) == tuple(qualifier)

    def find(self, name: str) -> list[int]:
        """Indexes (in the row) of the columns of that name."""
        return [self.start + i for i, column in enumerate(self.columns) if column.name == name]

    def ref(self, index: int, span: Span | None = None) -> InputRef:
        """A reference to the column at a row index."""
        return InputRef(index, self.columns[index - self.start].type, span)

    def shifted(self, by: int) -> Namespace:
        """The same item with its columns further right."""
        return Namespace(self.alias, self.columns, self.start + by, self.path)

    def as_nullable(self) -> Namespace:
        """The same item on the side of an outer join that may be padded with NULLs."""
        columns = tuple(Column(column.name, column.type.as_nullable()) for column in self.columns)
        return Namespace(self.alias, columns, self.start, self.path)


@record
class Merged:
    """A column of JOIN USING or NATURAL JOIN: one name for the columns of both sides."""

    name: str
    expr: Expr
    covers: frozenset[int]


@record
class Scope:
    """The row that expressions of one SELECT see."""

    namespaces: tuple[Namespace, ...] = ()
    merged: tuple[Merged, ...] = ()

    @property
    def width(self) -> int:
        """Columns of the row."""
        return sum(len(namespace.columns) for namespace in self.namespaces)

    def namespace_at(self, index: int) -> Namespace | None:
        """The FROM item that a column of the row belongs to."""
        return next((n for n in self.namespaces if n.start <= index < n.start + len(n.columns)), None)

    def column_names(self) -> list[str]:
        """All names, for suggestions."""
        return [column.name for namespace in self.namespaces for column in namespace.columns]

    def resolve_column(self, name: str, span: Span) -> Expr:
        """An unqualified column.

        Raises:
            BindError: there is none (with the nearest name as hint), or more than one.
        """
        for merged in self.merged:
            if merged.name == name:
                return merged.expr
        hits = [(namespace, i) for namespace in self.namespaces for i in namespace.find(name)]
        if not hits:
            hint = did_you_mean(name, self.column_names())
            raise BindError("column-not-found", f"Column '{name}' not found in any table", span, hint)
        if len(hits) > 1:
            aliases = [namespace.alias for namespace, _ in hits if namespace.alias is not None]
            hint = f"qualify it: {' or '.join(f'{alias}.{name}' for alias in dict.fromkeys(aliases))}"
            raise BindError("ambiguous-column", f"Column '{name}' is ambiguous", span, hint if aliases else None)
        namespace, index = hits[0]
        return namespace.ref(index, span)

    def namespace_of(self, qualifier: Sequence[str]) -> Namespace | None:
        """The FROM item that a qualifier means, or None."""
        return next((namespace for namespace in self.namespaces if namespace.matches(qualifier)), None)

    def resolve_path(self, path: Sequence[str], spans: Sequence[Span]) -> tuple[Expr, int]:
        """A dotted path: the column it starts with, and how many of its names that took.

        The rest of the path are fields of the column's row type. The longest table qualifier wins, as in Flink.
        """
        span = spans[0].to(spans[-1])
        for length in range(min(len(path) - 1, 3), 0, -1):
            namespace = self.namespace_of(path[:length])
            if namespace is None:
                continue
            name = path[length]
            hits = namespace.find(name)
            if len(hits) == 1:
                return namespace.ref(hits[0], span), length + 1
            if len(hits) > 1:
                raise BindError("ambiguous-column", f"Column '{name}' is ambiguous", spans[length])
            table = ".".join(path[:length])
            hint = did_you_mean(name, [column.name for column in namespace.columns])
            raise BindError("column-not-found", f"Column '{name}' not found in table '{table}'", spans[length], hint)
        if len(path) == 1:
            return self.resolve_column(path[0], span), 1
        if self.starts_with_row(path):
            return self.resolve_column(path[0], spans[0]), 1
        known = [namespace.alias for namespace in self.namespaces if namespace.alias is not None]
        raise BindError(
            "table-not-found", f"Table '{'.'.join(path[:-1])}' not found", span, did_you_mean(path[0], known)
        )

    def starts_with_row(self, path: Sequence[str]) -> bool:
        """Whether a path may lead into a column that has fields: it starts with its name, or its table's."""
        in_table = len(path) > 1 and self.namespace_of(path[:1]) is not None
        return in_table or any(
            column.name == path[0] and isinstance(column.type, RowType)
            for namespace in self.namespaces
            for column in namespace.columns
        )

    def star(self, qualifier: Sequence[str] | None, span: Span) -> list[tuple[str, Expr]]:
        """What ``*`` or ``t.*`` stands for: names with references, in order."""
        if qualifier is not None:
            namespace = self.namespace_of(qualifier)
            if namespace is None:
                known = [n.alias for n in self.namespaces if n.alias is not None]
                hint = did_you_mean(qualifier[0], known)
                raise BindError("table-not-found", f"Unknown identifier '{'.'.join(qualifier)}'", span, hint)
            return _columns_of(namespace, frozenset(), span)
        if not self.namespaces:
            raise BindError("star-without-from", "SELECT * requires a FROM clause", span)
        covered = frozenset(index for merged in self.merged for index in merged.covers)
        out = [(merged.name, merged.expr) for merged in self.merged]
        for namespace in self.namespaces:
            out.extend(_columns_of(namespace, covered, span))
        return out


def _columns_of(namespace: Namespace, leave_out: frozenset[int], span: Span) -> list[tuple[str, Expr]]:
    names = [column.name for column in namespace.columns]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise BindError(
            "ambiguous-column", f"Column '{twice}' is ambiguous", span, "give its columns names of their own"
        )
    return [
        (column.name, namespace.ref(namespace.start + i, span))
        for i, column in enumerate(namespace.columns)
        if namespace.start + i not in leave_out
    ]


def scope_of(schema: Schema, alias: str | None = None, path: tuple[str, ...] = ()) -> Scope:
    """A scope over one relation."""
    return Scope((Namespace(alias, schema, 0, path),))
