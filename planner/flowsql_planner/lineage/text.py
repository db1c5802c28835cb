"""Lineage as text: a block for each table that is written, a line for each column that takes part."""

from __future__ import annotations

from collections.abc import Iterable

from flowsql_planner.lineage.model import Influences, Lineage, by_source

#: What stands for all columns at once.
ALL_ROWS = "(rows)"
_QUERY = "(query)"


def title_of(lineage: Lineage) -> str:
    """The table that is written, or what stands for the answer of a query."""
    return _QUERY if lineage.target is None else str(lineage.target)


def lineage_text(found: Iterable[Lineage]) -> str:
    """All blocks, aligned, one below the other."""
    return "\n".join(_block(lineage) for lineage in found)


def _block(lineage: Lineage) -> str:
    lines: list[tuple[str, str, str]] = []
    for name, influences in lineage.columns:
        lines += _lines(name, influences) or [(name, "-", "")]
    lines += _lines(ALL_ROWS, lineage.rows)
    widths = [max(len(line[place]) for line in lines) for place in (0, 1)]
    read = ", ".join(map(str, lineage.sources)) or "no table"
    body = [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in lines]
    return "\n".join([f"{title_of(lineage)} <- {read}", *body, ""])


def _lines(name: str, influences: Influences) -> list[tuple[str, str, str]]:
    """The name stands in the first line only."""
    ways = [(str(source), ", ".join(how.value for how in hows)) for source, hows in by_source(influences).items()]
    return [("" if place else name, source, hows) for place, (source, hows) in enumerate(ways)]
