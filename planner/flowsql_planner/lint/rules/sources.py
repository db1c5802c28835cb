"""Sources that cannot keep their tasks busy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flowsql_core.errors import FlowSqlError
from flowsql_planner.lint.model import Hit, Rule, Subject
from flowsql_planner.physical.nodes import TableSourceScan

#: How names of tables begin that are rows which a program gave.
_OF_PROGRAMS: Final = "*anonymous"


def parallelism_above_splits(subject: Subject) -> Iterator[Hit]:
    """Tables whose input has fewer parts than the job has tasks to read them."""
    if subject.parallelism < 2 or subject.context is None:
        return
    for node in subject.physical():
        if not isinstance(node, TableSourceScan) or node.table.shown_path[-1].startswith(_OF_PROGRAMS):
            continue
        try:
            enumerator = subject.context.table_source(node.table, node.span).create_enumerator()
            dealt = enumerator.initial_splits(subject.parallelism)
        except (FlowSqlError, OSError):
            # What the table reads is not there, or not here.
            continue
        busy = sum(map(bool, dealt))
        if 0 < busy < subject.parallelism and enumerator.discovery_interval_ms() is None:
            idle, name = subject.parallelism - busy, node.table.shown_path[-1]
            message = (
                f"'{name}' has {busy} part{'s' * (busy > 1)} to read: {idle} of {subject.parallelism} tasks get none."
            )
            yield Hit(subject.place(node.span), message)


RULES = (
    Rule(
        "parallelism-above-splits",
        "A 'parallelism.default' above the number of parts that a table can be read in.",
        "tasks without a part read nothing, and the others set the pace: a compressed file is one part",
        "lower 'parallelism.default', or write the input as several files that are not compressed as a whole",
        parallelism_above_splits,
    ),
)
