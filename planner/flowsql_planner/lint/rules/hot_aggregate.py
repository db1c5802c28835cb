"""Aggregates whose rows all meet in one place."""

from __future__ import annotations

from collections.abc import Iterator

from flowsql_core.config import MINI_BATCH_ENABLED
from flowsql_planner.lint.growth import is_narrow
from flowsql_planner.lint.model import Hit, Rule, Subject
from flowsql_planner.physical.nodes import GroupAggregate


def hot_aggregate(subject: Subject) -> Iterator[Hit]:
    """Aggregates of few keys, or none, that answer each row of a stream without end."""
    if not subject.streaming or subject.configuration.get(MINI_BATCH_ENABLED):
        return
    for node in subject.physical():
        if not isinstance(node, GroupAggregate) or not subject.grows(node.inputs[0]):
            continue
        if not node.grouping:
            message = f"{node.title} without a key: every row goes to one task and updates one result."
            yield Hit(subject.node_place(node), message)
        elif subject.parallelism > 1 and is_narrow(node.inputs[0], node.grouping):
            keys = ", ".join(node.names[: len(node.grouping)])
            message = (
                f"{node.title} by '{keys}' has a few keys for {subject.parallelism} tasks: most have nothing to do."
            )
            yield Hit(subject.node_place(node), message)


RULES = (
    Rule(
        "hot-aggregate",
        "An aggregate with few keys, or none, over an input that never ends, with mini-batches off.",
        "each row makes an update of the same few results: one task does it all, and whoever reads gets two changes a "
        "row",
        "SET 'table.exec.mini-batch.enabled' = 'true', 'table.exec.mini-batch.allow-latency' = '1 s' and "
        "'table.exec.mini-batch.size' = '5000': tasks aggregate first what they have, and results leave once a batch",
        hot_aggregate,
    ),
)
