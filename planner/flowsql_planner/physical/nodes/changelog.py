"""What makes one changelog of another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import ChangelogNormalizeSpec, DropUpdateBeforeSpec, OperatorSpec
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.physical.nodes.base import Connectors, JobContext, PassesThrough, named
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.traits.changes import ALL, Modifies, Updates, where_updated
from flowsql_planner.traits.cost import selectivity
from flowsql_planner.traits.determinism import NONE, Columns
from flowsql_planner.traits.lineage import conditions, united
from flowsql_planner.traits.window import WindowColumns


@record(kw_only=True)
class DropUpdateBefore(PassesThrough):
    """Drops -U where upserts suffice."""

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """As asked: rows go on as they are."""
        return (required if self.inputs[0].retracts else NONE,)

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
    """Makes a complete changelog of upserts, or of changes that come twice, by their key; its input is an Exchange.

    ``condition``: of the rows that there shall be; a filter above that looks at other columns than the key's.
    """

    keys: tuple[int, ...]
    condition: Expr | None = None
    mini_batch: bool = False

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """A full changelog."""
        return ALL

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Upserts suffice: the old rows are in state."""
        return (tuple(where_updated(modifies, Updates.AFTER) for modifies in arriving),)

    def takes_key_deletes(self, place: int, above: bool, connectors: Connectors) -> bool:
        """Yes: the old rows are in state."""
        return True

    def window_columns(self) -> WindowColumns | None:
        """It stands on a source."""
        return None

    def uid_keys(self, arriving: Sequence[Lineage]) -> tuple[str, ...]:
        """The key."""
        return tuple(sorted(arriving[0].columns[index] for index in self.keys))

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's columns, of fewer rows."""
        source = arriving[0]
        return Lineage(source.columns, united(source.conditions, conditions(self.condition, source.columns)))

    def same_in_batch(self) -> bool:
        """A bounded input has no upserts."""
        return False

    def waits_for_mini_batch(self) -> bool:
        """Where the options say so."""
        return self.mini_batch

    def expressions(self) -> tuple[Expr, ...]:
        """The condition."""
        return () if self.condition is None else (self.condition,)

    def row_estimate(self, arriving: Sequence[float]) -> float:
        """What the condition keeps."""
        return arriving[0] if self.condition is None else max(arriving[0] * selectivity(self.condition), 1.0)

    def attributes(self, infix: bool) -> Attributes:
        """The key and the condition."""
        attributes = [("key", ", ".join(named(self, self.keys)))]
        if self.condition is not None:
            attributes.append(("condition", ExpressionPrinter(self.names, infix).print(self.condition)))
        return attributes

    def spec(self, job: JobContext) -> OperatorSpec:
        """An operator with the row of each key in state."""
        return ChangelogNormalizeSpec(
            self.inputs[0].schema,
            self.keys,
            self.condition,
            " AND ".join(conditions(self.condition, self.names)),
            emit_update_before=self.emits_before,
            mini_batch=job.mini_batch,
            state_ttl_ms=job.state_ttl_ms(),
        )
