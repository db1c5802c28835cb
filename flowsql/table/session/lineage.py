"""Lineage of what a script would run: definitions and options take effect in the session, nothing is run or planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.table import table_result as answers
from flowsql.table.session.execute import StatementExecutor
from flowsql_core.errors import BindError, PlanError
from flowsql_planner.bind import operations as op
from flowsql_planner.large_stack import with_room
from flowsql_planner.lineage.flow import lineage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flowsql.table.table_result import TableResult
    from flowsql_core.config import Configuration
    from flowsql_planner.catalog.manager import CatalogManager
    from flowsql_planner.lineage.model import Lineage
    from flowsql_planner.logical.nodes import Rel


def lineage_of_operation(operation: op.Operation) -> list[Lineage]:
    """The lineage of a query, or of each INSERT.

    Raises:
        BindError: the statement moves no rows.
        PlanError: it is nested too deeply.
    """
    match operation:
        case op.Query(rel):
            return lineage_of_roots([rel])
        case op.Insert(rel):
            return lineage_of_roots([rel])
        case op.StatementSet(inserts):
            return lineage_of_roots([insert.rel for insert in inserts])
        case op.CreateTableAs(insert=insert):
            return lineage_of_roots([insert.rel])
    raise BindError("no-lineage", "Only queries and INSERTs have a lineage.")


def lineage_of_roots(roots: Sequence[Rel]) -> list[Lineage]:
    """The lineage of plans.

    Raises:
        PlanError: one is nested too deeply.
    """
    try:
        return with_room(lambda: [lineage_of(root) for root in roots])
    except RecursionError:
        message = "The statement is nested too deeply to be followed"
        raise PlanError("nested-too-deeply", message, roots[0].span, "split it with views or WITH") from None


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
