"""``TableEnvironment``: a session. It holds catalogs and configuration and hands each statement to ``execute``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from flowsql.configuration import file_configuration
from flowsql.table.config import TableConfig
from flowsql.table.execute import StatementExecutor
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Source

if TYPE_CHECKING:
    from flowsql.table.result import TableResult
    from flowsql.table.settings import EnvironmentSettings
    from flowsql.table.statement_set import StatementSet
    from flowsql.table.table import Table
    from flowsql_grammar.ast.statement import Statement
    from flowsql_planner.catalog.store import CatalogStore


class TableEnvironment:
    """A session of SQL and Table API. Statements run one after the other; jobs they start may overlap.

    >>> environment = TableEnvironment.create()
    >>> environment.execute_sql("CREATE TABLE t (x INT) WITH ('connector' = 'blackhole')").print()
    OK
    """

    def __init__(self, configuration: Configuration) -> None:
        from flowsql_planner.catalog.manager import CatalogManager

        self.configuration = configuration
        self.catalogs = CatalogManager(_catalog_store(configuration))
        self._executor = StatementExecutor(self.catalogs, configuration)

    @staticmethod
    def create(settings: EnvironmentSettings | None = None) -> TableEnvironment:
        """A new session: ``config.yaml`` first, the settings on top."""
        layer = file_configuration().with_layer(
            None if settings is None else dict(settings.get_configuration().items())
        )
        return TableEnvironment(layer.with_layer())

    @staticmethod
    def of_configuration(configuration: Configuration) -> TableEnvironment:
        """A session over layers that are there already; ``SET`` writes to the uppermost."""
        return TableEnvironment(configuration)

    def get_config(self) -> TableConfig:
        """The session's options."""
        return TableConfig(self.configuration)

    def execute_sql(self, statement: str) -> TableResult:
        """Run one statement. Queries and INSERTs start a job and return at once; see :class:`TableResult`.

        Raises:
            FlowSqlError: the statement is wrong, or its job could not be started. ``render()`` shows where.
        """
        from flowsql_grammar import parse_statement

        source = Source(statement)
        return self.execute(parse_statement(source), source)

    def sql_query(self, query: str) -> Table:
        """A query as a :class:`Table`; nothing runs yet, but names and types are checked."""
        from flowsql.table.table import Table
        from flowsql_grammar import parse_statement

        source = Source(query)
        with located(source):
            return Table(self, self._executor.bind_query(parse_statement(source), source), source)

    def explain_sql(self, statement: str, *details: object) -> str:
        """The plans of a statement as text; details as in ``EXPLAIN``, e.g. ``ExplainDetail.CHANGELOG_MODE``."""
        words = ", ".join(str(getattr(detail, "value", detail)) for detail in details)
        return self.execute_sql(f"EXPLAIN {words} {statement}" if words else f"EXPLAIN PLAN FOR {statement}").text()

    def create_temporary_view(self, path: str, table: Table) -> None:
        """Give a table a name for SQL; the name may have up to three dotted parts."""
        self._executor.create_temporary_view(path, table.source.text)

    def create_statement_set(self) -> StatementSet:
        """Collect INSERTs that shall run as one job."""
        from flowsql.table.statement_set import StatementSet

        return StatementSet(self)

    def list_tables(self) -> list[str]:
        """Tables and views of the current database, sorted."""
        return self.catalogs.object_names(self.catalogs.current_catalog, self.catalogs.current_database)

    def use_catalog(self, name: str) -> None:
        """Make a catalog current."""
        self.catalogs.use_catalog(name)

    def use_database(self, name: str) -> None:
        """Make a database of the current catalog current."""
        self.catalogs.use_database(self.catalogs.current_catalog, name)

    def get_current_catalog(self) -> str:
        """The name of the current catalog."""
        return self.catalogs.current_catalog

    def get_current_database(self) -> str:
        """The name of the current database."""
        return self.catalogs.current_database

    # The road of a script: parse lazily, so that what stands before a syntax error still runs.

    def statements(self, source: Source) -> Iterator[Statement]:
        """The statements of a script in order, each parsed when it is its turn."""
        from flowsql_grammar import parse_statement, split_statements

        return (parse_statement(source, piece) for piece in split_statements(source))

    def execute(self, statement: Statement, source: Source) -> TableResult:
        """Run a parsed statement."""
        with located(source):
            return self._executor.execute(statement, source)

    def check_initial(self, statement: Statement, source: Source) -> None:
        """Refuse what may not stand in an initialization file: queries and changes of data."""
        with located(source):
            self._executor.check_initial(statement)


def _catalog_store(configuration: Configuration) -> CatalogStore | None:
    """The store that the configuration names; most sessions name none and keep their catalogs to themselves."""
    if configuration.text("table.catalog-store.kind") is None:
        return None
    from flowsql_planner.catalog.store import make_store

    return make_store(configuration)


class located:  # noqa: N801 - reads like a statement: ``with located(source): ...``
    """Tell FlowSqlErrors that pass which text their positions belong to."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FlowSqlError):
            error.within(self._source)
