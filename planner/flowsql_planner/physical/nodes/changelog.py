"""What makes one changelog of another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Expr
from flowsql_core.graph.specs import DropUpdateBeforeSpec, OperatorSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes.base import Connectors, JobContext, PassesThrough, named
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.traits.changes import ALL, Modifies, Updates, where_updated
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class DropUpdateBefore(PassesThrough):
    """Drops -U where upserts suffice."""

    def window_columns(self) -> WindowColumns | None:
        """It stands on a source."""
        return None

    def same_in_batch(self) -> bool:
        """A bounded input has no updates."""
        return False

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """Nothing to say."""
        return []

    def spec(self, job: JobContext) -> OperatorSpec:
        """A filter of kinds."""
        return DropUpdateBeforeSpec()


@record(kw_only=True)
class ChangelogNormalize(PassesThrough):
    """Completes an upsert changelog by its key."""

    keys: tuple[int, ...]

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """A full changelog."""
        return ALL

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Upserts suffice: the old rows are in state."""
        return (tuple(where_updated(modifies, Updates.AFTER) for modifies in arriving),)

    def window_columns(self) -> WindowColumns | None:
        """It stands on a source."""
        return None

    def same_in_batch(self) -> bool:
        """A bounded input has no upserts."""
        return False

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The key."""
        return [("key", ", ".join(named(self, self.keys)))]

    def spec(self, job: JobContext) -> OperatorSpec:
        """Not yet."""
        raise NotSupportedYetError("an upsert source (ChangelogNormalize)", self.span)
