"""Joins with what a table holds at the moment."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Expr, InputRef, conjuncts
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind, OperatorSpec, ScanSpec
from flowsql_core.graph.time_join_specs import AsyncLookup, LookupJoinSpec, LookupKey
from flowsql_core.record import record
from flowsql_planner.logical.expression_text import ExpressionPrinter, literal_text
from flowsql_planner.physical.nodes.base import JobContext, PassesThrough
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.traits.cost import Cost
from flowsql_planner.traits.determinism import NONE, Columns, refuse_condition
from flowsql_planner.traits.keys import NO_KEYS, Keys
from flowsql_planner.traits.lineage import conditions, texts, united
from flowsql_planner.traits.window import WindowColumns


@record
class Retry:
    """A key that finds nothing is asked for again: ``attempts`` in all, ``delay_ms`` apart."""

    attempts: int
    delay_ms: int


@record(kw_only=True)
class LookupJoin(PassesThrough):
    """Each row beside the rows of a table that have its key now.

    ``table_keys``: columns of the scan that identify its rows, if the table says so. ``projections``, ``filter``: over
    the scan's columns. ``condition``: the whole one; ``rest``: what the keys do not say, over the node's columns.
    ``asynchronous``: parts of a batch are asked for side by side. ``unordered``: as the plan shows it.
    """

    kind: JoinKind
    scan: ScanSpec
    keys: tuple[LookupKey, ...]
    unique: bool
    projections: tuple[Expr, ...]
    filter: Expr | None
    condition: Expr | None
    rest: Expr | None
    retry: Retry | None = None
    asynchronous: AsyncLookup | None = None
    unordered: bool = False

    def determined(self, required: Columns) -> tuple[Columns, ...]:
        """What is asked for of the row. What was looked up would have to be kept: Flink does, this does not."""
        if not self.inputs[0].retracts or not required:
            return (NONE,)
        refuse_condition(self.condition, self.span)
        width = len(self.inputs[0].schema)
        if any(index >= width for index in required):
            raise NotSupportedYetError(
                "a lookup join behind updates whose answers are kept for them",
                self.span,
                "SET 'table.optimizer.non-deterministic-update.strategy' = 'IGNORE'",
            )
        return (required,)

    def upsert_keys(self) -> Keys:
        """Those of the input, where a row finds one row at most."""
        return self.inputs[0].upsert_keys() if self.unique else NO_KEYS

    def window_columns(self) -> WindowColumns | None:
        """Those of the input."""
        return self.inputs[0].window_columns()

    def own_lineage(self) -> frozenset[str]:
        """The table."""
        return frozenset({self.scan.table.name})

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The input's columns, and those of the table."""
        source = arriving[0]
        table = tuple(f"{self.scan.table.name}.{column.name}" for column in self.scan.output)
        columns = (*source.columns, *texts(self.projections, table))
        pairs = tuple(
            sorted(f"{source.columns[key.left]} = {table[key.column]} now" for key in self.keys if key.left is not None)
        )
        made = (*conditions(self.filter, table), *conditions(self.rest, columns), *pairs, self.kind.value)
        return Lineage(columns, united(source.conditions, made))

    def same_in_batch(self) -> bool:
        """A lookup is one, whoever asks."""
        return True

    def own_cost(self, rows: float, arriving: Sequence[float]) -> Cost:
        """One look at each row."""
        return Cost(rows, rows)

    def expressions(self) -> tuple[Expr, ...]:
        """What is computed from the table's rows, and the condition."""
        parts = (*self.projections, *conjuncts(self.filter))
        return parts if self.rest is None else (*parts, self.rest)

    def attributes(self, infix: bool) -> Attributes:
        """Table, kind, keys, conditions, columns, and how it is asked."""
        left = self.inputs[0].names
        shown = []
        for key in self.keys:
            name = self.scan.output[key.column].name
            if key.left is not None:
                shown.append(f"{name}={left[key.left]}")
            elif key.constant is not None:
                shown.append(f"{name}={literal_text(key.constant.value, key.constant.type)}")
        attributes = [
            ("table", ".".join(self.scan.table.shown_path)),
            ("joinType", self.kind.value),
            ("lookup", ", ".join(shown)),
        ]
        if self.filter is not None:
            names = [column.name for column in self.scan.output]
            attributes.append(("where", ExpressionPrinter(names, infix).print(self.filter)))
        attributes.append(("select", ", ".join(self.names)))
        if self.rest is not None:
            attributes.append(("joinCondition", ExpressionPrinter(self.names, infix).print(self.rest)))
        if self.asynchronous is not None:
            mode = "UNORDERED" if self.unordered else "ORDERED"
            attributes.append(("async", f"{mode}, {self.asynchronous.timeout_ms}ms, {self.asynchronous.capacity}"))
        if self.retry is not None:
            attributes.append(("retry", f"lookup_miss, FIXED_DELAY, {self.retry.delay_ms}ms, {self.retry.attempts}"))
        return attributes

    def spec(self, job: JobContext) -> OperatorSpec:
        """Stateless."""
        return LookupJoinSpec(
            self.kind,
            self.scan,
            self.keys,
            self.projections,
            self.filter,
            self.rest,
            self.inputs[0].schema,
            self.schema,
            1 if self.retry is None else self.retry.attempts,
            0 if self.retry is None else self.retry.delay_ms,
            self.asynchronous,
        )


def plain_columns(projections: Sequence[Expr]) -> dict[int, int]:
    """Projected column -> column below it, of those that are passed on as they are."""
    return {place: expr.index for place, expr in enumerate(projections) if isinstance(expr, InputRef)}
