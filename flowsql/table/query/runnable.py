"""What runs a query for its rows, as a result, in Arrow or in pandas; its plan without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowsql.common.public_api import public_api
from flowsql.table.syntax.build import ast
from flowsql.table.syntax.operands import QueryOperand
from flowsql.table.table_result import TableResult, progress_of
from flowsql.table.values.final_rows import final_rows, in_zone

if TYPE_CHECKING:
    from flowsql.table.explain_detail import ExplainDetail
    from flowsql.table.session.environment import TableEnvironment
    from flowsql_core.span import Source
    from flowsql_core.types.logical import Schema
    from flowsql_planner.logical.nodes import Rel


@public_api
class RunnableQuery(QueryOperand):
    """A query in its environment. Nothing runs before one of the methods is called."""

    #: The logical plan, and names and types of its columns.
    _rel: Rel
    _schema: Schema

    def __init__(self, environment: TableEnvironment, query: ast.Query, source: Source) -> None:
        self._environment = environment
        self._query = query
        self.source = source

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plans as text."""
        return self._environment.explain_tree(ast.QueryStatement(self._query), self.source, *extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Write the plans to standard output."""
        print(self.explain(*extra_details))

    def lineage(self, form: str = "text") -> str:
        """Where the columns come from; forms as in :meth:`TableEnvironment.lineage_sql`."""
        return self._environment.lineage_tree(ast.QueryStatement(self._query), self.source, form)

    def execute(self) -> TableResult:
        """Start the job; its rows come through the result."""
        return self._environment.execute(ast.QueryStatement(self._query), self.source)

    def to_arrow(self) -> Any:
        """Run the query and return its rows as a ``pyarrow.Table``; of an updating answer those that are left."""
        result = self.execute()
        try:
            with progress_of(result):
                return final_rows(result.batches(), self._schema)
        finally:
            result.cancel()

    def to_pandas(self) -> Any:
        """Run the query and return its rows as a pandas ``DataFrame`` (needs pandas); moments in the session's zone."""
        return in_zone(self.to_arrow(), self._environment.zone()).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for whoever reads Arrow's C stream: ``polars.DataFrame(table)``, ``pyarrow.table(table)``.

        The query is run, as by :meth:`to_arrow`.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def show(self, rows: int = 20, timeout: float | None = None) -> None:
        """Run the query and show its rows; see :meth:`TableResult.show`."""
        self.execute().show(rows, timeout)

    def _repr_html_(self) -> str:
        """The first rows in a notebook, if they end; else the columns."""
        from flowsql.display.preview import query_html

        return query_html(self)

    def to_spark(self) -> Any:
        """The query as a ``DataFrame`` of pyspark, in batch mode: Spark computes its rows when it is asked for them.

        It stands in the session that the environment was created with, else in FlowSQL's own. Columns of types that
        Spark lacks (TIME, intervals, TIMESTAMP of more than six digits, VARIANT, BITMAP) are refused.
        """
        return self._environment.spark_frame(self._query, self.source)
