"""What a script would run: definitions and options take effect in the session, jobs are planned and not started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.table import table_result as answers
from flowsql.table.session.execute import StatementExecutor
from flowsql_core.errors import BindError

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.config import Configuration
    from flowsql_core.graph.job import JobGraph
    from flowsql_planner.bind import operations as op
    from flowsql_planner.catalog.manager import CatalogManager
    from flowsql_planner.compiled_plan import CompiledPlan


class PlanningExecutor(StatementExecutor):
    """Carries out statements as its base does, but for those that start jobs: their graphs are in ``jobs``."""

    def __init__(self, catalogs: CatalogManager, configuration: Configuration) -> None:
        super().__init__(catalogs, configuration)
        self.jobs: list[JobGraph] = []

    def execute_compiled(self, plan: CompiledPlan) -> TableResult:
        """Take the plan's job."""
        return self._planned(plan.job)

    def _query(self, query: op.Query) -> TableResult:
        self._refuse_batch()
        return self._planned(self._planner().plan_query(query, None))

    def _change(self, inserts: tuple[op.Insert, ...]) -> TableResult:
        self._refuse_batch()
        return self._planned(self._planner().plan_inserts(inserts))

    def _compile(self, operation: op.CompilePlan) -> TableResult:
        if operation.execute:
            return self._change(operation.inserts)
        return answers.done()

    def _analyze(self, operation: op.AnalyzeTable) -> None:
        """Statistics do not change what is kept."""

    def _refuse_batch(self) -> None:
        if self._is_batch():
            raise BindError("batch-state", "A job of batch mode keeps no state.", hint="plan it in streaming mode")

    def _planned(self, graph: JobGraph) -> TableResult:
        self.jobs.append(self._with_rows(graph))
        return answers.done()


class DefiningExecutor(StatementExecutor):
    """Carries out definitions and settings; what would start a job, change data or stop a job is left out."""

    def run(self, operation: op.Operation) -> TableResult:
        """Do it, or not; of CREATE TABLE AS the first half."""
        from flowsql_planner.bind import operations as op

        match operation:
            case op.CreateTableAs(create, _):
                return super().run(create)
            case op.SetOption() | op.ResetOption():
                return super().run(operation)
            case _ if isinstance(operation, op.DdlOperation):
                return super().run(operation)
        return answers.done()
