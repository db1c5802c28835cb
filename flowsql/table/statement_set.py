"""``StatementSet``: several INSERTs as one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from flowsql.common.public_api import public_api
from flowsql.common.without_java import WithoutJava
from flowsql.table.compiled_plan import CompiledPlan
from flowsql.table.syntax.build import ast
from flowsql.table.syntax.rewrite import moved
from flowsql_core.errors import BindError
from flowsql_core.span import Source, Span

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table import Table
    from flowsql.table.table_descriptor import TableDescriptor
    from flowsql.table.table_pipeline import TablePipeline
    from flowsql.table.table_result import TableResult


@public_api
class StatementSet(WithoutJava):
    """Collects INSERTs; ``execute`` runs them together, reading a shared source once."""

    def __init__(self, environment: TableEnvironment) -> None:
        self._environment = environment
        self._inserts: list[tuple[ast.Insert, Source]] = []

    def add(self, table_pipeline: TablePipeline) -> Self:
        """Add what ``Table.insert_into`` made."""
        self._environment.require_own(table_pipeline.environment, "add")
        self._inserts.append((table_pipeline.insert, table_pipeline.source))
        return self

    def add_insert_sql(self, stmt: str) -> Self:
        """Add an INSERT statement; its names and types are checked at once."""
        from flowsql_grammar import parse_statement

        source = Source(stmt.strip().rstrip(";"))
        statement = self._environment.with_variables(parse_statement(source), source)
        if not isinstance(statement, ast.Insert):
            raise BindError("statement-set", "Only insert statement is supported now.", statement.span).within(source)
        self._environment.bind_tree(statement, source)
        self._inserts.append((statement, source))
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> Self:
        """Add an INSERT of a table's rows."""
        return self.add(table.insert_into(target_path_or_descriptor, overwrite))

    def attach_as_datastream(self) -> None:
        """Add the INSERTs to the job of the DataStream environment, which its ``execute`` runs; the set is empty again.

        Raises:
            BindError: the environment has no streams.
        """
        try:
            self._environment.attach(*self._whole())
        finally:
            self._inserts.clear()

    def explain(self, *extra_details: object) -> str:
        """The plans of the whole set."""
        statement, source = self._whole()
        return self._environment.explain_tree(statement, source, *extra_details)

    def print_explain(self, *extra_details: object) -> None:
        """Write the plans to standard output."""
        print(self.explain(*extra_details))

    def lineage(self, form: str = "text") -> str:
        """Where the columns that the set writes come from; forms as in :meth:`TableEnvironment.lineage_sql`."""
        return self._environment.lineage_tree(*self._whole(), form)

    def compile_plan(self) -> CompiledPlan:
        """The plan of the whole set, to be kept."""
        return CompiledPlan(self._environment, self._environment.compile_tree(*self._whole()))

    def execute(self) -> TableResult:
        """Start the job; the set is empty again afterwards, also where the job could not be started."""
        try:
            return self._environment.execute(*self._whole())
        finally:
            self._inserts.clear()

    def _whole(self) -> tuple[ast.StatementSet, Source]:
        """All INSERTs as one statement, and the text that its places point into: theirs, one below the other."""
        if not self._inserts:
            raise BindError("statement-set", "NO statements in the statement set.")
        text, statements = "", []
        for insert, source in self._inserts:
            statements.append(moved(insert, len(text)) if text else insert)
            text += f"{source.text};\n"
        return ast.StatementSet(tuple(statements), span=Span(0, len(text))), Source(text, "<statement set>")
