"""What the nodes of batch mode answer alike: rows come once and leave once."""

from __future__ import annotations

from abc import ABC

from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_planner.physical.nodes.base import Connectors, InsertOnly
from flowsql_planner.physical.nodes.mini_batch import MiniBatchMode
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class BoundedNode(InsertOnly, ABC):
    """A node that takes insert-only inputs and answers when they have ended."""

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """There are no changes to see."""
        return observed

    def upsert_keys(self) -> Keys:
        """Nobody asks: no row is updated."""
        return NO_KEYS

    def window_columns(self) -> WindowColumns | None:
        """Windows are columns like others in batch mode."""
        return None

    def repeatable(self) -> bool:
        """Nothing is drawn here."""
        return True

    def same_in_batch(self) -> bool:
        """Made for it."""
        return True

    def mini_batches_below(self, above: MiniBatchMode) -> MiniBatchMode:
        """As above."""
        return above

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()
