"""Lineage of what a script would run: definitions and options take effect in the session, nothing is run or planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.table import table_result as answers
from flowsql.table.session.execute import StatementExecutor
from flowsql_core.errors import BindError
from flowsql_planner.bind import operations as op
from flowsql_planner.lineage.statements import lineage_of_operation

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.config import Configuration
    from flowsql_planner.catalog.manager import CatalogManager
    from flowsql_planner.lineage.model import Lineage


class LineageExecutor(StatementExecutor):
    """Carries out definitions and options as its base does; of what moves rows it finds ``lineage`` alone."""

    def __init__(self, catalogs: CatalogManager, configuration: Configuration) -> None:
        super().__init__(catalogs, configuration)
        self.lineage: list[Lineage] = []

    def run(self, operation: op.Operation) -> TableResult:
        """Leave alone what plans, what looks at jobs or stops them, and what changes files."""
        match operation:
            case op.ExecutePlan(span=span):
                # It has operators, and no logical plan any more.
                message = "A compiled plan has no lineage."
                raise BindError("compiled-lineage", message, span, "take that of its INSERTs")
            case op.Explain() | op.ShowJobs() | op.DescribeJob() | op.StopJob() | op.ShowOperators():
                return answers.done()
            case op.AddPartitions() | op.DropPartitions():
                return answers.done()
        return super().run(operation)

    def _query(self, query: op.Query) -> TableResult:
        return self._followed(query)

    def _change(self, inserts: tuple[op.Insert, ...]) -> TableResult:
        return self._followed(op.StatementSet(inserts))

    def _compile(self, operation: op.CompilePlan) -> TableResult:
        return self._change(operation.inserts)

    def _analyze(self, operation: op.AnalyzeTable) -> None:
        """Statistics are of no column."""

    def _followed(self, operation: op.Operation) -> TableResult:
        self.lineage += lineage_of_operation(operation)
        return answers.done()
