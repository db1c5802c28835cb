"""Rows that were on their way when an unaligned checkpoint was taken, for a job that starts from it.

Their watermarks stay behind: each told of what one producer still had to send. The enumerators deal the splits out
anew, also at the same parallelism, so that the producer at the same place may come from further back. All operators
begin with the lowest watermark of their old subtasks and tell it to their receivers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError
from flowsql_core.graph.job import ShipStrategy
from flowsql_runtime.network.in_flight import ChannelElement, InFlight
from flowsql_runtime.network.selector import make_selector
from flowsql_runtime.task.restore import TaskPlace

#: Exchanges whose rows any receiver may take.
_ANYWHERE = (ShipStrategy.REBALANCE, ShipStrategy.RESCALE, ShipStrategy.SHUFFLE)


def rows_of(in_flight: InFlight) -> InFlight:
    """The rows alone, for the same subtask at the same parallelism."""
    found = []
    for one in in_flight.elements:
        if isinstance(one.element, ChangelogBatch) and one.element.num_rows:
            found.append(ChannelElement(one.input_index, one.channel, one.element.with_track(None)))
    return InFlight((), tuple(found))


def dealt_out(elements: Sequence[ChannelElement], place: TaskPlace, name: str) -> InFlight:
    """The rows that this subtask takes, of those on their way to all old subtasks.

    Args:
        name: of the operator, for messages.

    Raises:
        BindError: rows of an exchange that says nothing about where they belong at another parallelism.
    """
    found = []
    for number, one in enumerate(elements):
        if not isinstance(one.element, ChangelogBatch):
            continue
        batch = one.element.with_track(None)
        if not batch.num_rows:
            continue
        partitioning, producers = place.inputs[one.input_index]
        strategy = partitioning.strategy
        part: ChangelogBatch | None = None
        if strategy is ShipStrategy.HASH:
            selector = make_selector(partitioning, place.parallelism, place.max_parallelism, random.Random(0), {})
            part = selector.select(batch)[place.subtask]
        elif strategy in _ANYWHERE:
            part = batch if number % place.parallelism == place.subtask else None
        elif strategy is ShipStrategy.GLOBAL:
            part = batch if place.subtask == 0 else None
        else:
            raise BindError(
                "in-flight-rows",
                f"The checkpoint holds rows on their way to '{name}' through a {strategy.value} exchange, which "
                "cannot be dealt out to another parallelism.",
                hint="start at the old parallelism, or from an aligned checkpoint or a savepoint",
            )
        if part is not None and part.num_rows:
            found.append(ChannelElement(one.input_index, number % producers, part))
    return InFlight((), tuple(found))
