"""Flink's built-in process table functions about changelogs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from flowsql_core.errors import PlanError
from flowsql_core.expr import Expr
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import FromChangelogSpec, OperatorSpec, ToChangelogSpec
from flowsql_core.process_function import TIMES_WITH_UPDATES
from flowsql_core.record import record
from flowsql_core.row import RowKind
from flowsql_planner.logical.expression_text import record_type
from flowsql_planner.physical.nodes.base import Connectors, JobContext, Keyless
from flowsql_planner.physical.nodes.line import Attributes
from flowsql_planner.traits.changes import ALL, INSERTS, Modifies, Updates, where_updated
from flowsql_planner.traits.window import WindowColumns

_TITLE: Final = "ProcessTableFunction"


@record(kw_only=True)
class ChangelogFunctionNode(Keyless):
    """TO_CHANGELOG, or, with ``op_index``, FROM_CHANGELOG, which reads kinds from that column.

    ``codes``: texts and the kinds that they stand for. ``time_index``: the column that is told once
    more as the last one. ``uid``: what the call says; without state it names nothing.
    """

    codes: tuple[tuple[str, RowKind], ...]
    invocation: str
    op_index: int | None
    time_index: int | None = None
    uid: str | None = None

    @property
    def title(self) -> str:
        """Flink's name for what runs functions over tables."""
        return _TITLE

    def takes(self, arriving: Modifies, connectors: Connectors) -> Modifies:
        """Any change, or rows that tell of one."""
        return ALL if self.op_index is None else INSERTS

    def provides(self, arriving: Sequence[Modifies], connectors: Connectors) -> Modifies:
        """Rows that tell of changes, or the changes."""
        if self.time_index is not None and (self.op_index is not None or arriving[0] - INSERTS):
            raise PlanError("on-time", TIMES_WITH_UPDATES, self.span)
        return INSERTS if self.op_index is None else ALL

    def asks(
        self, required: Updates, arriving: Sequence[Modifies], connectors: Connectors
    ) -> Iterable[tuple[Updates, ...]]:
        """Every change is told; and rows cannot be asked to tell of updates otherwise than they do."""
        if self.op_index is not None and required is Updates.AFTER:
            return ()
        return (tuple(where_updated(modifies, Updates.BEFORE_AND_AFTER) for modifies in arriving),)

    def observes_input(self, observed: bool, connectors: Connectors) -> bool:
        """Each change is a row."""
        return True

    def window_columns(self) -> WindowColumns | None:
        """None go on."""
        return None

    def lineage(self, arriving: Sequence[Lineage]) -> Lineage:
        """The columns of the rows, with that of kinds or without it."""
        source = arriving[0]
        if self.op_index is None:
            time = () if self.time_index is None else (f"on_time of {source.columns[self.time_index]}",)
            return Lineage((f"op of {len(self.codes)} codes", *source.columns, *time), source.conditions)
        rest = source.columns[: self.op_index] + source.columns[self.op_index + 1 :]
        return Lineage(rest, source.conditions)

    def same_in_batch(self) -> bool:
        """Rows for rows."""
        return self.op_index is None

    def expressions(self) -> tuple[Expr, ...]:
        """None."""
        return ()

    def attributes(self, infix: bool) -> Attributes:
        """The call."""
        return [
            ("invocation", self.invocation),
            ("uid", self.uid or "null"),
            ("select", ",".join(self.names)),
            ("rowType", record_type(self.schema)),
        ]

    def spec(self, job: JobContext) -> OperatorSpec:
        """An operator without state."""
        if self.op_index is not None:
            return FromChangelogSpec(self.op_index, self.codes)
        return ToChangelogSpec(tuple(sorted((kind, code) for code, kind in self.codes)), self.time_index)
