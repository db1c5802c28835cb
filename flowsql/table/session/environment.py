"""``TableEnvironment``: a session. It holds catalogs and configuration and hands each statement to ``execute``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flowsql.common.public_api import keeps_frames, public_api
from flowsql.configuration import file_configuration, set_options
from flowsql.table.compiled_plan import CompiledPlan
from flowsql.table.session.catalog_objects import CatalogObjects
from flowsql.table.session.execute import StatementExecutor
from flowsql.table.statement_set import StatementSet
from flowsql.table.syntax import build as syntax
from flowsql.table.syntax.object_paths import pinned, split_path
from flowsql.table.syntax.rewrite import placed
from flowsql.table.table_config import TableConfig
from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode, option, parse_bool, parse_text
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.span import Source, Span
from flowsql_planner.catalog.manager import DEFAULT_CATALOG, DEFAULT_DATABASE, CatalogManager

if TYPE_CHECKING:
    from flowsql.table.environment_settings import EnvironmentSettings
    from flowsql.table.plan_reference import PlanReference
    from flowsql.table.table import Known, Table
    from flowsql.table.table_descriptor import TableDescriptor
    from flowsql.table.table_result import TableResult
    from flowsql_core.graph.job import JobGraph
    from flowsql_core.graph.spark import SparkJob
    from flowsql_core.types.logical import LogicalType, Schema
    from flowsql_grammar import ast
    from flowsql_grammar.ast.statement import Statement
    from flowsql_planner.bind import operations as op
    from flowsql_planner.catalog.store import CatalogStore
    from flowsql_planner.lineage.model import Lineage
    from flowsql_planner.lint.model import Finding, Rule
    from flowsql_planner.logical.nodes import Rel
    from flowsql_planner.planner import OnPlan
    from flowsql_runtime.checkpoint.continuation import Continuation

N = TypeVar("N", bound="ast.Node")

DML_SYNC = option(
    "table.dml-sync",
    parse_bool,
    False,
    "Whether a program that inserts goes on only when the job has ended; the command always waits.",
)

CATALOG_NAME = option(
    "table.builtin-catalog-name",
    parse_text,
    DEFAULT_CATALOG,
    "The catalog that a session starts with; read when the session is made.",
)
DATABASE_NAME = option(
    "table.builtin-database-name",
    parse_text,
    DEFAULT_DATABASE,
    "The database that a session starts with; read when the session is made.",
)

#: Numbers behind ``UnnamedTable$``, of all environments of a process, as in Flink.
_UNNAMED = itertools.count()


@public_api
class TableEnvironment(CatalogObjects):
    """A session of SQL and Table API. Statements run one after the other; jobs they start may overlap.

    >>> environment = TableEnvironment.create()
    >>> environment.execute_sql("CREATE TABLE t (x INT) WITH ('connector' = 'blackhole')").print()
    OK
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        keeps_frames(configuration)
        self.catalogs = CatalogManager(
            _catalog_store(configuration), configuration.get(CATALOG_NAME), configuration.get(DATABASE_NAME)
        )
        self._executor = StatementExecutor(self.catalogs, configuration)
        self._inline: set[str] = set()
        self._anonymous = itertools.count(1)

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Any = None, *, spark: Any = None) -> TableEnvironment:
        """A new session: ``config.yaml`` first, the settings (or a ``Configuration`` of options) on top.

        ``spark``: a ``SparkSession`` of the program, classic or over Spark Connect. What runs on Spark then runs there,
        in a session of FlowSQL's own beside it (``newSession()``), so that neither changes the settings of the other.
        Without settings the environment is in batch mode.
        """
        configuration = first_configuration(environment_settings)
        if spark is not None and environment_settings is None:
            configuration = configuration.with_layer({RUNTIME_MODE.key: RuntimeMode.BATCH.value}).with_layer()
        environment = TableEnvironment(configuration)
        if spark is not None:
            environment._executor.use_spark(spark)
        return environment

    @staticmethod
    def of_configuration(configuration: Configuration) -> TableEnvironment:
        """A session over layers that are there already; ``SET`` writes to the uppermost."""
        return TableEnvironment(configuration)

    def get_config(self) -> TableConfig:
        """The session's options."""
        return TableConfig(self.configuration)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_j_", "get_j_", "create_java_")):
            raise AttributeError(
                f"'{name}' does not exist: there is no JVM behind FlowSQL; functions are Python's "
                "(create_temporary_function), and SQL reaches everything else (execute_sql)"
            )
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    # SQL

    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement. Queries and INSERTs start a job and return at once; see :class:`TableResult`.

        Raises:
            FlowSqlError: the statement is wrong, or its job could not be started. ``render()`` shows where.
        """
        from flowsql_grammar import parse_statement

        source = _source(stmt, "execute_sql")
        statement = parse_statement(source)
        with_variables = self.with_variables(statement, source)
        try:
            return self.execute(with_variables, source)
        finally:
            if with_variables is not statement:
                from flowsql.table.session.variables import forget_variables

                forget_variables(self, with_variables)

    def sql_query(self, query: str) -> Table:
        """A query as a :class:`Table`; nothing runs yet, but names and types are checked."""
        from flowsql.table.table import Table
        from flowsql_grammar import ast, parse_statement

        source = _source(query, "sql_query")
        statement = parse_statement(source)
        if not isinstance(statement, ast.QueryStatement):
            message = (
                "Unsupported SQL query! sqlQuery() only accepts a single SQL query of type SELECT, UNION, INTERSECT, "
                "EXCEPT, VALUES, and ORDER_BY."
            )
            raise BindError("not-a-query", message, statement.span).within(source)
        query_ = self.with_variables(statement.query, source)
        return Table(self, pinned(query_, self.catalogs), source)

    def explain_sql(self, stmt: str, *extra_details: object) -> str:
        """The plans of a statement as text; details as in ``EXPLAIN``, e.g. ``ExplainDetail.CHANGELOG_MODE``."""
        words = ", ".join(str(getattr(detail, "value", detail)) for detail in extra_details)
        return self.execute_sql(f"EXPLAIN {words} {stmt}" if words else f"EXPLAIN PLAN FOR {stmt}").text()

    def lineage_sql(self, stmt: str, form: str = "text") -> str:
        """From which columns what an INSERT, a statement set or a query makes comes, and how; nothing is run.

        ``form``: ``text``, ``json`` (OpenLineage's column lineage facet) or ``mermaid``. Flink has no such method.
        """
        from flowsql_grammar import parse_statement

        source = _source(stmt, "lineage_sql")
        return self.lineage_tree(self.with_variables(parse_statement(source), source), source, form)

    def with_variables(self, tree: N, source: Source) -> N:
        """The tree of a text of the program with its variables in place of names that are no tables."""
        from flowsql.table.session.variables import with_variables

        return with_variables(self, tree, source)

    def lint_sql(self, script: str) -> list[Finding]:
        """What bites in the statements of a script, and those that fail; nothing is run. Flink has no such method.

        What the script defines and sets is gone with it.
        """
        return self.lint_script(_source(script, "lint_sql"))

    def create_statement_set(self) -> StatementSet:
        """Collect INSERTs that shall run as one job."""
        return StatementSet(self)

    # Tables

    def from_path(self, path: str) -> Table:
        """A table or view of the catalogs; the path may have up to three dotted parts, in back-ticks where needed."""
        parts = split_path(path)
        whole = self.catalogs.qualify(parts)
        if self.catalogs.lookup(whole) is None:
            shown = ".".join(f"`{part}`" for part in parts)
            raise BindError("table-not-found", f"Table {shown} was not found.")
        return self._table_at(whole.parts, f"from_path({path!r})")

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """The table that a descriptor describes, without a name."""
        path = self.register_anonymous(descriptor)
        return self._table_at(path, f"from_descriptor({descriptor.get_options().get('connector')!r})")

    def from_call(self, func: object, *arguments: object) -> Table:
        """What a process table function makes of its arguments: tables, named or not, and values.

        ``from_call(f, orders.partition_by(col("k")).as_argument("input"), lit(1).as_argument("threshold"))``.
        """
        from flowsql.table.query.table_functions import called
        from flowsql.table.table import Table

        return Table(self, *called(self, func, arguments))

    def from_elements(self, elements: Iterable[Any], schema: Any = None, verify_schema: bool = True) -> Table:
        """Rows of Python values: tuples, lists, dicts, :class:`Row` or, with a type for ``schema``, plain values.

        Args:
            elements: the rows; all of one shape. ``row(...)`` expressions make a VALUES.
            schema: names of columns, a ``DataTypes.ROW``, or the one type of plain values; else inferred.
            verify_schema: whether values that the types cannot hold are refused one by one, with their row.

        Raises:
            BindError: rows of several shapes, or values that do not fit.
        """
        from flowsql.table.expression import Expression
        from flowsql.table.values.input_columns import elements_to_columns, expressions_to_query

        rows = list(elements)
        if rows and all(isinstance(row, Expression) for row in rows):
            from flowsql.table.table import Table

            source = Source("from_elements(...)", "<table>")
            return Table(self, expressions_to_query(rows, schema, source), source)
        return self._from_columns("python-input-format", *elements_to_columns(rows, schema, verify_schema))

    def from_arrow(self, table: Any, schema: Any = None) -> Table:
        """The rows of a ``pyarrow`` Table, RecordBatch or reader of batches; nothing is copied where types agree.

        ``schema``: names of columns, or a ``DataTypes.ROW`` that the columns are cast to.
        """
        from flowsql.table.values.input_columns import arrow_to_columns

        return self._from_columns("arrow", *arrow_to_columns(table, schema))

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """The rows of a pandas ``DataFrame``; NaN is NULL, the index is left out.

        Args:
            pdf: the data frame.
            schema: names of columns, types of columns, or a ``DataTypes.ROW``.
            splits_num: into how many parts the rows are cut, for sources in parallel.
        """
        from flowsql.table.values.input_columns import pandas_to_columns

        schema_, rows = pandas_to_columns(pdf, schema)
        return self._from_columns("arrow", schema_, rows, splits_num)

    def from_spark(self, frame: Any) -> Table:
        """The rows of a bounded ``DataFrame`` of pyspark, which stay in Spark where Spark runs the statement.

        Without a session given to :meth:`create` the frame's own is taken. Rows stand in no order that is known.

        Raises:
            BindError: no DataFrame, an unbounded one, or a column of a type that SQL has not.
        """
        name = f"*anonymous_spark-frame${self._next_anonymous()}*"
        path, columns, variants = self._executor.register_frame(frame, name)
        table = self._table_at(path, f"from_spark({', '.join(columns)})")
        if not variants:
            return table
        from flowsql.table.expressions import call, col

        def value(column: str) -> Any:
            return call("PARSE_JSON", col(column)).alias(column) if column in variants else col(column)

        return table.select(*map(value, columns))

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Give a table a name for SQL; the name may have up to three dotted parts.

        A DataStream, and the ``fields_or_schema`` that it comes with, need a StreamTableEnvironment.
        """
        if fields_or_schema:
            raise BindError("not-a-table", "Only a DataStream takes fields or a schema; a Table has its columns.")
        self._create_view(view_path, table_or_data_stream, temporary=True)

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> bool:
        """Keep a table as a view of its catalog. False when there is one already and that may be."""
        return self._create_view(view_path, table, temporary=False, ignore_if_exists=ignore_if_exists)

    # Compiled plans

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """A compiled plan from its file or text."""
        return CompiledPlan(self, plan_reference.read())

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """The compiled plan of an INSERT or a statement set."""
        from flowsql_grammar import parse_statement

        source = Source(stmt)
        return CompiledPlan(self, self.compile_tree(parse_statement(source), source))

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """``load_plan(plan_reference).execute()``."""
        return self.load_plan(plan_reference).execute()

    # The road of a script: parse lazily, so that what stands before a syntax error still runs.

    def statements(self, source: Source) -> Iterator[Statement]:
        """The statements of a script in order, each parsed when it is its turn."""
        from flowsql_grammar import parse_statement, split_statements

        return (parse_statement(source, piece) for piece in split_statements(source))

    def execute(self, statement: Statement, source: Source, *, waiting: bool = False) -> TableResult:
        """Run a parsed statement. ``waiting``: the caller waits for jobs itself, whatever ``table.dml-sync`` says."""
        with located(source):
            result = self._executor.execute(statement, source)
            return result if waiting else self._synchronous(result)

    def watch_plans(self, watcher: OnPlan | None) -> None:
        """Have ``watcher`` called with the physical plans of each stream that is to run; None: nobody."""
        self._executor.on_plan = watcher

    def check_initial(self, statement: Statement, source: Source) -> None:
        """Refuse what may not stand in an initialization file: queries and changes of data."""
        with located(source):
            self._executor.check_initial(statement)

    def jobs_of(self, source: Source) -> list[JobGraph]:
        """The jobs that a script would start, up to its QUIT; its definitions and options take effect here."""
        from flowsql.table.session.planning import PlanningExecutor

        executor = PlanningExecutor(self.catalogs, self.configuration)
        self._go_through(source, executor)
        return executor.jobs

    def define(self, source: Source) -> None:
        """Let definitions and options of a script take effect, up to its QUIT; its queries and changes are left out."""
        from flowsql.table.session.planning import DefiningExecutor

        self._go_through(source, DefiningExecutor(self.catalogs, self.configuration), leaves_jobs_out=True)

    def job_of(self, statement: Statement, source: Source) -> JobGraph:
        """The job that an INSERT, a statement set or a query would start, in streaming mode."""
        from flowsql.table.session.planning import PlanningExecutor

        executor = PlanningExecutor(self.catalogs, self.configuration)
        with located(source):
            executor.execute(statement, source)
        return executor.jobs[0]

    def lineage_of(self, source: Source) -> list[Lineage]:
        """Where the rows of each INSERT and query of a script come from, up to its QUIT; nothing is run.

        Its definitions and options take effect here.
        """
        from flowsql.table.session.lineage import LineageExecutor

        executor = LineageExecutor(self.catalogs, self.configuration)
        self._go_through(source, executor)
        return executor.lineage

    def lint_script(
        self,
        source: Source,
        rules: Sequence[Rule] | None = None,
        definitions: Sequence[tuple[Statement, Source]] = (),
    ) -> list[Finding]:
        """What bites in a script, up to its QUIT, and its statements that fail; ``rules`` None: all. Nothing is run.

        What it defines and sets is gone with it. ``definitions``: of other scripts, which it finds.
        """
        from flowsql.table.session.linting import lint_script
        from flowsql_planner.catalog.scratch import ScratchCatalogs
        from flowsql_planner.lint.registry import RULES

        catalogs, configuration = ScratchCatalogs(self.catalogs), self.configuration.with_layer()
        return lint_script(catalogs, configuration, source, RULES if rules is None else rules, definitions)

    def _go_through(self, source: Source, executor: StatementExecutor, leaves_jobs_out: bool = False) -> None:
        """Let an executor of its own have the statements of a script, up to its QUIT."""
        from flowsql_grammar.ast import statement as ast
        from flowsql_grammar.ast.statement import ClientCommand, ClientCommandKind

        left_out = (ast.QueryStatement, ast.Insert, ast.StatementSet, ast.Update, ast.Delete, ast.Merge, ast.Explain)
        with located(source):
            for statement in self.statements(source):
                if leaves_jobs_out and isinstance(statement, left_out):
                    continue
                if not isinstance(statement, ClientCommand):
                    executor.execute(statement, source)
                elif statement.kind is ClientCommandKind.QUIT:
                    break

    # What Tables ask: trees are bound, run and explained with the text that their places point into.

    def located(self, source: Source) -> located:
        """``with environment.located(source): ...``: errors that pass belong to this text."""
        return located(source)

    def plan_of(self, query: ast.Query, source: Source, known: Known) -> Rel:
        """The logical plan of a query, whose schema is the answer's; this is where a Table's names are checked.

        ``known``: plans of parts of it, which are not bound again.
        """
        with located(source):
            return self._executor.bind_query(query, source, known)

    def bind_tree(self, statement: Statement, source: Source) -> op.Operation:
        """What a statement asks for, without doing it."""
        with located(source):
            return self._executor.bind(statement, source)

    def run_bound(
        self, operation: op.Operation, source: Source, continuation: Continuation | None = None
    ) -> TableResult:
        """Do what a statement of a text asks for; the caller waits for jobs itself.

        ``continuation``: how the statement's job goes on from its last process.
        """
        with located(source), self._executor.going_on(continuation):
            return self._executor.run(operation)

    def plan_bound(self, inserts: Sequence[op.Insert], source: Source) -> JobGraph | SparkJob:
        """The job that INSERTs of a text would start; nothing is started."""
        with located(source):
            return self._executor.plan(tuple(inserts))

    def tried_out(self) -> TableEnvironment:
        """A session under the same options, whose definitions are gone with it, whatever keeps the catalogs."""
        from flowsql_planner.catalog.scratch import ScratchCatalogs

        made = TableEnvironment(self.configuration)
        made.catalogs = ScratchCatalogs(self.catalogs)
        made._executor = StatementExecutor(made.catalogs, self.configuration)
        return made

    def explain_tree(self, statement: Statement, source: Source, *details: object) -> str:
        """The plans of a statement as text."""
        from flowsql_grammar import ast

        words = tuple(ast.ExplainDetail(str(getattr(detail, "value", detail)).upper()) for detail in details)
        return self.execute(ast.Explain(statement, words, span=statement.span), source).text()

    def lineage_tree(self, statement: Statement, source: Source, form: str) -> str:
        """The lineage of a statement as ``text``, ``json`` or ``mermaid``."""
        from flowsql_planner.lineage.formats import render_lineage
        from flowsql_planner.lineage.statements import lineage_of_operation

        with located(source):
            return render_lineage(lineage_of_operation(self._executor.bind(statement, source)), form)

    def compile_tree(self, statement: Statement, source: Source) -> Any:
        """The compiled plan of an INSERT or a statement set."""
        with located(source):
            return self._executor.compile(statement, source)

    def execute_compiled(self, plan: Any) -> TableResult:
        """Run a compiled plan."""
        return self._synchronous(self._executor.execute_compiled(plan))

    def _synchronous(self, result: TableResult) -> TableResult:
        if self.configuration.get(DML_SYNC):
            result.wait()
        return result

    def attach(self, statement: ast.StatementSet, source: Source) -> None:
        """Refused: there are no streams. Those of a StreamTableEnvironment take INSERTs into their job."""
        raise BindError("no-datastream", "attach_as_datastream() needs the StatementSet of a StreamTableEnvironment.")

    def zone(self) -> str:
        """The session's time zone by its name."""
        return self._executor.zone()

    def spark_frame(self, query: ast.Query, source: Source) -> Any:
        """The answer of a query as a DataFrame of Spark."""
        with located(source):
            return self._executor.spark_frame(query, source)

    def type_of(self, expression: ast.Expression, schema: Schema) -> LogicalType:
        """The type of an expression over columns."""
        return self._executor.type_of(expression, schema)

    def require_own(self, environment: object, method: str) -> None:
        """Refuse a table of another environment."""
        if environment is not self:
            raise BindError(
                "other-environment",
                f"{method}(): the tables belong to different TableEnvironments.",
                hint="make both with the same environment",
            )

    def register_inline(self, name: str, function: object) -> None:
        """Make a function object known that stands in an expression."""
        if name not in self._inline:
            self.create_temporary_system_function(name, function)
            self._inline.add(name)

    def name_of(self, table: Table) -> str:
        """A name under which SQL of this session finds a table."""
        name = f"UnnamedTable${next(_UNNAMED)}"
        self.create_temporary_view(f"`{name}`", table)
        return f"`{name}`"

    def register_variable(self, name: str, schema: Schema, rows: Any) -> tuple[str, ...]:
        """Rows of a variable of the program; the path under which trees find them."""
        return self._executor.register_rows(f"*{name}${self._next_anonymous()}*", "arrow", schema, rows, 1)

    def forget_anonymous(self, path: Sequence[str]) -> None:
        """Let go of rows that only a statement could name which has started."""
        self._executor.forget_rows(path)

    def _next_anonymous(self) -> int:
        return next(self._anonymous)

    def _table_at(self, path: Sequence[str], text: str) -> Table:
        from flowsql.table.table import Table
        from flowsql_grammar import ast

        source = Source(text, "<table>")
        query = ast.Query(syntax.select(ast.TableRef(syntax.path(*path))))
        table = Table(self, placed(query, Span(0, len(text))), source)
        table.path = self.catalogs.qualify(path)
        return table

    def _from_columns(self, connector: str, schema: Schema, rows: Any, splits: int = 1) -> Table:
        path = self._executor.register_rows(f"*anonymous_{connector}${self._next_anonymous()}*", connector,
                                            schema, rows, splits)  # fmt: skip
        names = ", ".join(column.name for column in schema)
        return self._table_at(path, f"from_{'arrow' if connector == 'arrow' else 'elements'}({names})")


def first_configuration(settings: Any) -> Configuration:
    """The layers that a session starts with; the uppermost is empty and takes what SET says."""
    values: dict[str, str] = {}
    if settings is not None:
        options = settings.get_configuration() if hasattr(settings, "get_configuration") else settings
        values = options.to_dict() if hasattr(options, "to_dict") else dict(options.items())
    return set_options(file_configuration().with_layer(), values.items()).with_layer()


def _source(text: object, method: str) -> Source:
    if not isinstance(text, str):
        raise BindError("not-a-text", f"{method}() takes SQL as a text, got {text!r}.")
    return Source(text)


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
