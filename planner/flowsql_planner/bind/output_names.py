"""Names of output columns: ``EXPR$0`` for what has none, counters behind names that stand twice."""

from __future__ import annotations

from collections.abc import Iterable

from flowsql_grammar import ast


def unnamed(position: int) -> str:
    """The name of an output column without one; ``position`` counts from 0."""
    return f"EXPR${position}"


def column_alias(item: ast.SelectItem) -> str | None:
    """The alias of a select item, or the last name of its path; None for other expressions."""
    if item.alias is not None:
        return item.alias.text
    if isinstance(item.expression, ast.ColumnRef):
        return item.expression.path.last.text
    return None


def uniquify(names: Iterable[str]) -> tuple[str, ...]:
    """Later ones of equal names get a counter: ``id, id`` becomes ``id, id0``, as in Flink's plans and answers."""
    wanted = list(names)
    used: set[str] = set()
    out = []
    for name in wanted:
        candidate, counter = name, 0
        while candidate in used:
            candidate, counter = f"{name}{counter}", counter + 1
        used.add(candidate)
        out.append(candidate)
    return tuple(out)
