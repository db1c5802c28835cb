"""Tables whose connector is not there: others stand for them, so that a plan can be looked at all the same."""

from __future__ import annotations

from dataclasses import replace

from flowsql_connectors import registry
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_planner.bind import operations as op
from flowsql_planner.logical.nodes import Rel, Scan, Sink
from flowsql_planner.logical.rewrite import transform_up


@record
class StandIns:
    """Connectors: ``source`` of an input that never ends and only grows, ``sink`` of one that takes all changes."""

    source: str
    sink: str

    def into(self, operation: op.Query | op.StatementSet) -> op.Query | op.StatementSet:
        """The statement over tables that can be planned; queries inside of expressions keep theirs."""
        if isinstance(operation, op.Query):
            return replace(operation, rel=transform_up(operation.rel, self._standing))
        inserts = []
        for insert in operation.inserts:
            sink = transform_up(insert.rel, self._standing)
            assert isinstance(sink, Sink)
            inserts.append(replace(insert, rel=sink))
        return op.StatementSet(tuple(inserts))

    def _standing(self, rel: Rel) -> Rel:
        match rel:
            case Scan(table=table) if not _is_known(table):
                return replace(rel, table=replace(table, options=(("connector", self.source),)))
            case Sink(table=TableSpec() as table) if not _is_known(table):
                return replace(rel, table=replace(table, options=(("connector", self.sink),)))
        return rel


def _is_known(table: TableSpec) -> bool:
    return table.option("connector") in registry.identifiers()
