"""``TablePipeline``: a query on its way into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.common.public_api import public_api
from flowsql.table.catalog import ObjectIdentifier
from flowsql.table.compiled_plan import CompiledPlan
from flowsql.table.syntax.build import ast
from flowsql.table.syntax.method_text import Step
from flowsql_core.catalog import ANONYMOUS

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_result import TableResult
    from flowsql_core.span import Source


@public_api
class TablePipeline:
    """An INSERT, not run yet. Made by ``Table.insert_into``, which checks that the columns fit."""

    def __init__(self, environment: TableEnvironment, insert: ast.Insert, source: Source) -> None:
        step = Step(source, "insert_into", (str(insert.target.last.text),))
        self.environment = environment
        self.insert = step.fill(insert, insert.query)
        self.source = step.source
        environment.bind_tree(self.insert, self.source)

    def execute(self) -> TableResult:
        """Start the job; ``wait()`` on the result waits for its end."""
        return self.environment.execute(self.insert, self.source)

    def explain(self, *extra_details: object) -> str:
        """The plans as text."""
        return self.environment.explain_tree(self.insert, self.source, *extra_details)

    def print_explain(self, *extra_details: object) -> None:
        """Write the plans to standard output."""
        print(self.explain(*extra_details))

    def compile_plan(self) -> CompiledPlan:
        """The plan, to be kept."""
        return CompiledPlan(self.environment, self.environment.compile_tree(self.insert, self.source))

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """The table that is written to; None for one without a name."""
        path = self.environment.catalogs.qualify(self.insert.target.texts)
        return None if path.catalog == ANONYMOUS else ObjectIdentifier.of(*path.parts)

    def __str__(self) -> str:
        return f"TablePipeline into {self.insert.target}"
