"""Rows that were on their way when an unaligned checkpoint was taken, dealt out to another parallelism."""

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


def dealt_out(elements: Sequence[ChannelElement], place: TaskPlace, name: str) -> InFlight:
    """The rows that this subtask takes, of those on their way to all old subtasks.

    Watermarks among them are left out: they told of channels that are no more, and the sources tell of the time anew.

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
