"""What bites in a script: definitions and options take effect, what moves rows is planned and not run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from flowsql.table import table_result as answers
from flowsql.table.session.execute import StatementExecutor
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from flowsql_core.span import Source
from flowsql_grammar import ast, parse_statement, split_statements
from flowsql_planner.bind import operations as op
from flowsql_planner.lint.engine import failure, in_order, lint_statement
from flowsql_planner.lint.model import Finding, Rule, Subject
from flowsql_planner.lint.stand_ins import StandIns

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.config import Configuration
    from flowsql_grammar.ast.statement import Statement
    from flowsql_planner.catalog.manager import CatalogManager

_DEFINITIONS = (ast.CreateTable, ast.CreateView, ast.CreateFunction)
_STAND_INS: Final = StandIns(source="datagen", sink="blackhole")
UNKNOWN_CONNECTOR: Final = "unknown-connector"
#: The name in a definition that cannot be parsed.
_CREATE = re.compile(
    r"(?is)CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?(?:SYSTEM\s+)?(?:TABLE|VIEW|FUNCTION)\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[\w.`]+)"
)


class LintingExecutor(StatementExecutor):
    """Carries out definitions and options as its base does; of what moves rows it fills in the plans of ``subject``."""

    def __init__(self, catalogs: CatalogManager, configuration: Configuration) -> None:
        super().__init__(catalogs, configuration)
        self.subject: Subject | None = None

    def examine(self, subject: Subject) -> Subject:
        """The statement with its plans, or its error."""
        self.subject = subject
        try:
            self.execute(subject.statement, subject.source)
        except FlowSqlError as error:
            return replace(self.subject, error=error)
        return self.subject

    def run(self, operation: op.Operation) -> TableResult:
        """Leave alone what looks at jobs or stops them, what reads plans, and what changes files."""
        match operation:
            case op.Explain() | op.ExecutePlan() | op.ShowJobs() | op.DescribeJob() | op.StopJob():
                return answers.done()
            case op.ShowOperators() | op.AddPartitions() | op.DropPartitions():
                return answers.done()
        return super().run(operation)

    def _query(self, query: op.Query) -> TableResult:
        return self._planned(query)

    def _change(self, inserts: tuple[op.Insert, ...]) -> TableResult:
        return self._planned(op.StatementSet(inserts))

    def _compile(self, operation: op.CompilePlan) -> TableResult:
        return self._change(operation.inserts)

    def _analyze(self, operation: op.AnalyzeTable) -> None:
        """Statistics are of no row that a rule knows."""

    def _planned(self, operation: op.Query | op.StatementSet) -> TableResult:
        assert self.subject is not None
        roots = (operation.rel,) if isinstance(operation, op.Query) else tuple(one.rel for one in operation.inserts)
        self.subject = replace(self.subject, roots=roots)
        try:
            self._plan(operation)
        except NotSupportedYetError:
            if not self._is_batch():
                raise
            # Spark may run it.
        except FlowSqlError as error:
            if error.code == UNKNOWN_CONNECTOR:
                with contextlib.suppress(FlowSqlError):
                    self._plan(_STAND_INS.into(operation))
            raise
        return answers.done()

    def _plan(self, operation: op.Query | op.StatementSet) -> None:
        plans, context = self._planner().physical(operation)
        if self.subject is not None and not self._is_batch():
            self.subject = replace(self.subject, plans=plans, context=context)


def lint_script(
    catalogs: CatalogManager,
    configuration: Configuration,
    source: Source,
    rules: Sequence[Rule],
    definitions: Sequence[tuple[Statement, Source]] = (),
) -> list[Finding]:
    """The findings of a script in order; a statement that fails is one, and those behind it are looked at as well.

    ``definitions``: of other scripts, which take effect first and are not looked at.
    """
    executor = LintingExecutor(catalogs, configuration)
    for definition, text in definitions:
        executor.examine(Subject(definition, text, configuration))
    found: list[Finding] = []
    missing: set[str] = set()
    connectors: set[str] = set()
    for piece in split_statements(source):
        try:
            statement = parse_statement(source, piece)
        except FlowSqlError as error:
            found.append(failure(error, piece, source))
            defined = _CREATE.match(source.text, piece.start, piece.end)
            if defined is not None:
                missing.add(defined["name"].split(".")[-1].strip("`"))
            continue
        if isinstance(statement, ast.ClientCommand):
            if statement.kind is ast.ClientCommandKind.QUIT:
                break
            continue
        subject = executor.examine(Subject(statement, source, configuration))
        if subject.error is not None:
            if subject.error.code == UNKNOWN_CONNECTOR:
                told = subject.error.message in connectors
                connectors.add(subject.error.message)
            else:
                told = any(_names(subject.error.message, name) for name in missing)
            if isinstance(statement, _DEFINITIONS):
                missing.add(statement.name.last.text)
            if told:
                # Told once is enough: it names what an earlier statement failed to define, or lacks the same connector.
                subject = replace(subject, error=None)
        found += lint_statement(subject, rules)
    return in_order(found, source)


def _names(message: str, name: str) -> bool:
    """Whether an error names an object, alone or at the end of a path."""
    return f"'{name}'" in message or f".`{name}`" in message
