"""Lineage as a flowchart of Mermaid: tables as boxes of their columns, an arrow for each influence.

Direct influences are solid lines; what only decides about values or rows is dotted. Rows as wholes are the box itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_planner.lineage.model import Influences, Lineage, by_source
from flowsql_planner.lineage.text import title_of


def lineage_mermaid(found: Sequence[Lineage]) -> str:
    """The chart; a table that is written by one INSERT and read by another one is one box."""
    chart = _Chart()
    for lineage in found:
        target = title_of(lineage)
        for source in lineage.sources:
            chart.box(str(source))
        chart.box(target)
        for name, influences in lineage.columns:
            chart.arrows(influences, chart.node(target, name))
        chart.arrows(lineage.rows, chart.box(target))
        if not any(influences for _, influences in lineage.columns) and not lineage.rows:
            # As of COUNT(*): a table is read, and none of its columns.
            for source in lineage.sources:
                chart.edge(f"{chart.box(str(source))} -.-> {chart.box(target)}")
    return chart.text()


class _Chart:
    """Boxes and arrows, each once and in the order in which they were found."""

    def __init__(self) -> None:
        self._boxes: dict[str, dict[str, str]] = {}
        self._edges: dict[str, None] = {}

    def box(self, table: str) -> str:
        """The id of a table's box."""
        self._boxes.setdefault(table, {})
        return f"t{list(self._boxes).index(table)}"

    def node(self, table: str, column: str) -> str:
        """The id of a column."""
        box = self.box(table)
        columns = self._boxes[table]
        return columns.setdefault(column, f"{box}c{len(columns)}")

    def arrows(self, influences: Influences, to: str) -> None:
        """From all columns that take part; copied columns need no word."""
        for source, hows in by_source(influences).items():
            start = self.node(str(source.dataset), source.column)
            direct = [how.value for how in hows if how.direct]
            indirect = [how.value for how in hows if not how.direct]
            if direct:
                self.edge(f"{start} --> {to}" if direct == ["IDENTITY"] else f"{start} -->|{', '.join(direct)}| {to}")
            if indirect:
                self.edge(f"{start} -.->|{', '.join(indirect)}| {to}")

    def edge(self, text: str) -> None:
        """One line between two boxes or columns."""
        self._edges[text] = None

    def text(self) -> str:
        """The chart as Mermaid reads it."""
        lines = ["flowchart LR"]
        for place, (table, columns) in enumerate(self._boxes.items()):
            lines.append(f"  subgraph t{place}[{_quoted(table)}]")
            lines += (f"    {name}[{_quoted(column)}]" for column, name in columns.items())
            lines.append("  end")
        lines += (f"  {edge}" for edge in self._edges)
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A label; Mermaid knows quotes in it by their number only."""
    return '"' + text.replace("#", "#35;").replace('"', "#quot;") + '"'
