"""Rows that got lost on their way: those that do not fit their table, and those that came too late."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Sequence

from flowsql_connectors.spi.counters import FIELDS_NULLED, ROWS_SKIPPED
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.job import JobGraph, OperatorNode
from flowsql_core.graph.specs import ScanSpec, SinkSpec
from flowsql_core.record import record
from flowsql_runtime.diagnosis.words import operator_text, rows_text, table_text, tolerance_text
from flowsql_runtime.metrics.registry import LATE_DROPPED, RECORDS_SENT, JobMetrics, OperatorMetrics


class Loss(enum.Enum):
    """What became of rows, or of fields of theirs; values are the counting metrics."""

    SKIPPED = ROWS_SKIPPED
    NULLED = FIELDS_NULLED
    LATE = LATE_DROPPED


@record
class LostRows:
    """What one table or operator lost, over all subtasks, so far.

    ``place``: the table (``'clicks'``), or what dropped late rows (``TUMBLE over 'ts'``). ``count``: rows, or fields
    that became NULL. ``rows``: that the table had, those that were skipped among them; None of late rows.
    ``first``: where the first one is; empty if nobody knows. ``option``: what lets it happen.
    """

    loss: Loss
    place: str
    count: int
    rows: int | None = None
    first: str = ""
    option: str = ""

    def as_dict(self) -> dict[str, str | int | None]:
        """By name, for programs and files."""
        return {
            "loss": self.loss.name.lower(),
            "place": self.place.strip("'"),
            "count": self.count,
            "rows": self.rows,
            "first": self.first,
            "option": self.option,
        }

    def __str__(self) -> str:
        """One sentence."""
        first = f"; first: {self.first}" if self.first else ""
        is_one = self.count == 1
        match self.loss:
            case Loss.SKIPPED:
                of = "" if self.rows is None else f"{self.count:,} of "
                number = of + rows_text(self.count if self.rows is None else self.rows)
                reason = "it does not fit" if is_one else "they do not fit"
                return f"Table {self.place}: {number} skipped, as {reason} its columns ({self.option}){first}."
            case Loss.NULLED:
                number, reason = ("1 field", "it has") if is_one else (f"{self.count:,} fields", "they have")
                return (
                    f"Table {self.place}: {number} read as NULL, as {reason} no value of the column's type "
                    f"({self.option}){first}."
                )
            case Loss.LATE:
                were, them = ("was", "it") if is_one else ("were", "them")
                return (
                    f"{rows_text(self.count)} came too late for {self.place} and {were} dropped; "
                    f"a WATERMARK with more delay keeps {them}."
                )


def lost_rows(metrics: JobMetrics, graph: JobGraph) -> list[LostRows]:
    """What a job lost so far, table by table and operator by operator, sources first."""
    nodes = {node.id: node for vertex in graph.vertices for node in vertex.operators}
    subtasks: dict[int, list[OperatorMetrics]] = {}
    for operator in metrics.operators():
        if operator.node_id in nodes:
            subtasks.setdefault(operator.node_id, []).append(operator)
    return [
        lost
        for loss in Loss
        for node_id, found in subtasks.items()
        if (lost := _lost(loss, nodes[node_id], found)) is not None
    ]


@record
class TableRows:
    """Rows that a job read from a table, or wrote to it, so far."""

    table: str
    verb: str
    rows: int

    def __str__(self) -> str:
        """``Table 'clicks': 120 rows read``."""
        return f"Table '{self.table}': {rows_text(self.rows)} {self.verb}"

    def is_alone(self, others: Sequence[TableRows]) -> bool:
        """Whether no other table of these was read, or was written, as this one was."""
        return sum(one.verb == self.verb for one in others) == 1


def table_rows(metrics: JobMetrics, graph: JobGraph) -> list[TableRows]:
    """What each table of a job gave and took, in the order of the plan; a table that is read twice counts both."""
    nodes = {node.id: node.spec for vertex in graph.vertices for node in vertex.operators}
    found: dict[tuple[str, str], int] = {}
    for operator in metrics.operators():
        match nodes.get(operator.node_id):
            case ScanSpec(table=table):
                key, rows = (table.shown_path[-1], "read"), operator.records_out
            case SinkSpec(table=table):
                key, rows = (table.shown_path[-1], "written"), operator.counted(RECORDS_SENT)
            case _:
                continue
        found[key] = found.get(key, 0) + rows
    return [TableRows(table, verb, rows) for (table, verb), rows in found.items()]


def _lost(loss: Loss, node: OperatorNode, subtasks: list[OperatorMetrics]) -> LostRows | None:
    count = sum(one.counted(loss.value) for one in subtasks)
    if not count:
        return None
    if loss is Loss.LATE:
        return LostRows(loss, operator_text(node), count)
    rows = count * (loss is Loss.SKIPPED) + sum(one.records_out for one in subtasks)
    where = next((one.where[loss.value] for one in subtasks if loss.value in one.where), None)
    first = ""
    if where is not None:
        # The file may be gone by now.
        with contextlib.suppress(OSError, FlowSqlError):
            first = where()
    return LostRows(loss, table_text(node), count, rows, first, tolerance_text(node))
