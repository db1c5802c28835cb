"""What a run of a project tells: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowsql.pipeline.outcome import Outcome, Status
from flowsql_runtime.metrics.volumes import size_text

_HEAD = ("node", "table", "status", "rows", "seconds", "read", "written", "dropped", "warned")


def report_table(outcomes: Sequence[Outcome]) -> str:
    """A line for each node, columns aligned."""
    lines = [_HEAD, *(_cells(outcome) for outcome in outcomes)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    numbers = _HEAD.index("rows")
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column >= numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(outcome: Outcome) -> tuple[str, ...]:
    dropped = sum(counts.dropped for counts in outcome.expectations)
    warned = sum(counts.warned for counts in outcome.expectations)
    return (
        str(outcome.node.place),
        outcome.node.title,
        outcome.status.value,
        "" if outcome.rows is None else f"{outcome.rows:,}",
        "" if outcome.seconds is None else f"{outcome.seconds:.1f}",
        "" if outcome.volumes is None else _size(outcome.volumes.bytes_read),
        "" if outcome.volumes is None else _size(outcome.volumes.bytes_written),
        f"{dropped:,}" if dropped else "",
        f"{warned:,}" if warned else "",
    )


def _size(count_bytes: int | None) -> str:
    return "" if count_bytes is None else size_text(count_bytes)


def report_json(outcomes: Sequence[Outcome], seconds: float) -> dict[str, Any]:
    """``--report``: ``status`` of the whole is ``done``, ``failed``, ``cancelled`` or ``stopped``."""
    states = {outcome.status for outcome in outcomes}
    worst = (Status.CANCELLED, Status.FAILED, Status.STOPPED, Status.DONE)
    status = next((status.value for status in worst if status in states), Status.DONE.value)
    return {"status": status, "seconds": round(seconds, 3), "nodes": [_node(outcome) for outcome in outcomes]}


def _node(outcome: Outcome) -> dict[str, Any]:
    return {
        "node": str(outcome.node.place),
        "tables": [str(path) for path in outcome.node.tables],
        "status": outcome.status.value,
        "reason": outcome.reason,
        "rows": outcome.rows,
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 3),
        "volumes": None if outcome.volumes is None else outcome.volumes.as_dict(),
        "expectations": [
            {
                "table": each.table,
                "name": each.name,
                "passed": each.passed,
                "dropped": each.dropped,
                "warned": each.warned,
            }
            for each in outcome.expectations
        ],
        "lost_rows": [lost.as_dict() for lost in outcome.lost],
        "error": None if outcome.error is None else outcome.error.render(),
    }
