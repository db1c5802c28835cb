"""One kind of statement, one way to carry it out: what binding made of a statement becomes a :class:`TableResult`."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flowsql.common.job_client import JobClient
from flowsql.configuration import set_option
from flowsql.jobs.watch import watch
from flowsql.session_zone import check_zone, session_zone
from flowsql.table import table_result as answers
from flowsql.table.session.collect import CollectBuffer
from flowsql.table.table_result import AnswerKind, TableResult
from flowsql.table.values.tableau import MAX_COLUMN_WIDTH
from flowsql_connectors import registry
from flowsql_core.catalog import ANONYMOUS, CatalogTable, ObjectPath, TableColumn
from flowsql_core.config import LOCAL_TIME_ZONE, RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import EXECUTION_TARGET, streams_on_spark
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import RowKind
from flowsql_core.secrets.hidden import hidden
from flowsql_core.secrets.shown import shown_value
from flowsql_core.span import Source, Span
from flowsql_core.types.logical import STRING, Column
from flowsql_planner.bind import operations as op

if TYPE_CHECKING:
    from flowsql.table.schema import Schema as GivenSchema
    from flowsql.table.table import Known
    from flowsql_connectors.inline import InlineRows
    from flowsql_core.graph.spark import SparkJob
    from flowsql_core.types.logical import LogicalType, Schema
    from flowsql_grammar import ast
    from flowsql_grammar.ast.statement import Statement
    from flowsql_planner.catalog.manager import CatalogManager
    from flowsql_planner.compiled_plan import CompiledPlan
    from flowsql_planner.logical.nodes import Rel
    from flowsql_planner.planner import Explainable, OnPlan, Planner
    from flowsql_runtime.checkpoint.continuation import Continuation
    from flowsql_runtime.cluster.local import LocalCluster
    from flowsql_runtime.spark.sessions.host import SparkHost


#: DataFrames of the program.
_FRAMES = registry.Connector(source="flowsql_runtime.spark.frames:FrameSourceFactory")
#: ``state('savepoint', 'operator')`` in FROM.
_STATE = registry.Connector(source="flowsql_runtime.reading.source:StateSourceFactory", table_function="state")
#: What EXPLAIN tells instead of plans.
LINEAGE: Final = "LINEAGE"


class StatementExecutor:
    """Carries out the statements of one session, one at a time."""

    def __init__(self, catalogs: CatalogManager, configuration: Configuration) -> None:
        # The runtime knows snapshots, and connectors know nothing of the runtime.
        registry.provide("savepoint", _STATE)
        self._catalogs = catalogs
        self._configuration = configuration
        #: INSERTs of a ``BEGIN STATEMENT SET`` that is still open; None outside of one.
        self._collected: list[op.Insert] | None = None
        #: Runs every job of the session within one memory budget; made for the first one.
        self._cluster: LocalCluster | None = None
        #: Beside the session of Spark that the program handed in.
        self.spark: SparkHost | None = None
        #: Views of the program's DataFrames.
        self._frames: list[str] = []
        #: Of the job that the next statement starts.
        self._continuation: Continuation | None = None
        #: Is told the physical plans of streams before they run.
        self.on_plan: OnPlan | None = None
        #: Rows of tables that the program gave, by the id under which jobs find them.
        self._rows: dict[str, InlineRows] = {}

    @contextlib.contextmanager
    def going_on(self, continuation: Continuation | None) -> Iterator[None]:
        """Within the block a job goes on from its last process, as told; None: as its options say."""
        self._continuation = continuation
        try:
            yield
        finally:
            self._continuation = None

    def execute(self, statement: Statement, source: Source) -> TableResult:
        """Run a statement."""
        return self.run(self.bind(statement, source))

    def create_table(self, statement: Statement, source: Source, given: GivenSchema | None) -> None:
        """Run a CREATE TABLE; expressions that ``given`` has as text are kept as that text."""
        operation = self.bind(statement, source)
        assert isinstance(operation, op.CreateTable)
        if given is not None:
            operation = replace(operation, table=given.with_texts(operation.table))
        self.run(operation)

    def bind_query(self, query: ast.Query, source: Source, known: Known) -> Rel:
        """The logical plan of a query; ``known``: plans of parts of it."""
        from flowsql_grammar import ast
        from flowsql_planner.bind.context import BindContext
        from flowsql_planner.bind.statement import bind_statement

        context = BindContext(self._catalogs, self._with_zone(), source, known=known)
        operation = bind_statement(ast.QueryStatement(query, span=query.span), context)
        assert isinstance(operation, op.Query)
        return operation.rel

    def check_initial(self, statement: Statement) -> None:
        """Refuse queries and changes of data, as the initialization file of Flink's client does."""
        from flowsql_grammar.ast import statement as ast

        if isinstance(statement, ast.QueryStatement | ast.Insert | ast.StatementSet | ast.Update | ast.Delete):
            raise BindError(
                "not-initial",
                "Unsupported operation in the initialization file.",
                statement.span,
                "only definitions, USE, SET and RESET may stand there",
            )

    def bind(self, statement: Statement, source: Source) -> op.Operation:
        """What a statement asks for: its names and types, nothing is done."""
        from flowsql_planner.bind.context import BindContext
        from flowsql_planner.bind.statement import bind_statement

        return bind_statement(statement, BindContext(self._catalogs, self._with_zone(), source))

    def type_of(self, expression: ast.Expression, schema: Schema) -> LogicalType:
        """The type of an expression over columns."""
        from flowsql_planner.bind.context import BindContext
        from flowsql_planner.bind.expression.aggregate_calls import AggregateCollector
        from flowsql_planner.bind.expression.binder import ExpressionBinder
        from flowsql_planner.bind.expression.scope import scope_of

        context = BindContext(self._catalogs, self._with_zone())
        collector = AggregateCollector(grouped=True)
        return ExpressionBinder(context, scope_of(schema), "SELECT", collector).bind(expression).type

    def register_rows(
        self, name: str, connector: str, schema: Schema, rows: InlineRows, splits: int
    ) -> tuple[str, str, str]:
        """Rows that the program gave, as a table without a name; the path under which trees find it."""
        self._rows[name] = rows
        options = (("connector", connector), ("rows", name), ("row-count", str(rows.count)), ("splits", str(splits)))
        return self._register(name, schema, options)

    def forget_rows(self, path: Sequence[str]) -> None:
        """Let go of rows that the program gave, unless a statement set that is open reads them."""
        if self._collected is None and self._rows.pop(path[-1], None) is not None:
            self._catalogs.drop(ObjectPath(*path), CatalogTable, temporary=True, if_exists=True)

    def use_spark(self, session: Any) -> None:
        """Run what runs on Spark beside a session of the program."""
        from flowsql_runtime.spark.sessions.current import beside

        self.spark = beside(session)

    def register_frame(self, frame: Any, name: str) -> tuple[tuple[str, str, str], list[str], tuple[str, ...]]:
        """Let a DataFrame of Spark be a table without a name.

        Returns:
            The path under which trees find it, its columns, and those of them that are JSON texts of VARIANTs.
        """
        from flowsql_runtime.spark import frames
        from flowsql_runtime.spark.sessions.current import is_own

        registry.provide(frames.IDENTIFIER, _FRAMES)
        view, schema, variants = frames.register_frame(frame)
        if not self._frames:
            # At the end of the program Spark is gone, or no longer spoken to.
            weakref.finalize(self, frames.forget_frames, self._frames).atexit = False
        self._frames.append(view)
        if self.spark is None and not is_own(frame.sparkSession):
            self.use_spark(frame.sparkSession)
        path = self._register(name, schema, (("connector", frames.IDENTIFIER), (frames.VIEW.key, view)))
        return path, [column.name for column in schema], variants

    def _register(self, name: str, schema: Schema, options: tuple[tuple[str, str], ...]) -> tuple[str, str, str]:
        """A table that the program made, which has no path of its own."""
        path = ObjectPath(ANONYMOUS, ANONYMOUS, name)
        columns = tuple(TableColumn(column.name, column.type) for column in schema)
        self._catalogs.create(path, CatalogTable(columns, options, resource=name), temporary=True, replace=True)
        return path.parts

    def spark_frame(self, query: ast.Query, source: Source) -> Any:
        """The answer of a query as a DataFrame of Spark."""
        from flowsql.table.session import batch_mode as bounded
        from flowsql_grammar import ast
        from flowsql_runtime.cluster.local import LocalCluster

        if not self._is_batch():
            raise BindError(
                "not-batch",
                "to_spark() needs batch mode: a DataFrame is bounded.",
                hint=f"SET '{RUNTIME_MODE.key}' = 'batch', or TableEnvironment.create(..., spark=session)",
            )
        operation = self.bind(ast.QueryStatement(query, span=query.span), source)
        assert isinstance(operation, op.Query)
        if self._cluster is None:
            self._cluster = LocalCluster()
        return bounded.frame_of(self._with_zone(), operation, self._cluster, self._spark_with_rows, self.spark)

    def zone(self) -> str:
        """The session's time zone by its name."""
        return session_zone(self._configuration)

    def use_cluster(self, cluster: LocalCluster) -> None:
        """Run jobs there, by its clock."""
        self._cluster = cluster

    def run(self, operation: op.Operation) -> TableResult:
        """Do what a statement asks for that was bound before."""
        if self._collected is not None and not isinstance(operation, op.Insert | op.EndStatementSet):
            raise BindError(
                "statement-set", "Only INSERT statement is allowed in Statement Set.", hint="END; closes the set"
            )
        match operation:
            case op.Query():
                return self._query(operation)
            case op.Insert():
                return self._insert(operation)
            case op.StatementSet(inserts):
                return self._change(inserts)
            case op.BeginStatementSet():
                self._collected = []
                return answers.done()
            case op.EndStatementSet():
                return self._end_statement_set()
            case op.Explain(explained, details):
                return answers.text_answer(hidden(self._explain(explained, details)))
            case op.CreateTableAs(create, insert):
                # Also when IF NOT EXISTS found a table: as in Flink, the rows go to that one.
                self._apply(create)
                return self._change((insert,))
            case op.CompilePlan():
                return self._compile(operation)
            case op.ExecutePlan(path, span):
                from flowsql.table.session.plan_files import load_plan

                return self.execute_compiled(load_plan(path, span))
            case op.AnalyzeTable():
                self._analyze(operation)
            case op.Rows(schema, rows):
                return answers.listing(schema, list(rows))
            case op.ShowJobs() | op.DescribeJob() | op.StopJob():
                from flowsql.table.session.job_statements import run_job_statement

                return run_job_statement(operation, self._configuration)
            case op.ShowOperators(savepoint, span):
                return self._show_operators(savepoint, span)
            case op.SetOption(key, value):
                self._set(key, value)
            case op.ShowOptions():
                schema = (Column("key", STRING), Column("value", STRING))
                options = [(key, hidden(shown_value(key, value))) for key, value in self._configuration.items()]
                return answers.listing(schema, options)
            case op.ResetOption(key):
                self._reset(key)
            case op.ClientCommand(name):
                raise BindError("client-command", f"{name} is a command of the shell.")
            case op.NoOperation():
                pass
            case _:
                self._apply(operation)
        return answers.done()

    def _show_operators(self, savepoint: str, span: Span) -> TableResult:
        from flowsql_planner.error_position import errors_at
        from flowsql_runtime.reading import operators

        with errors_at(span):
            return answers.listing(operators.SCHEMA, operators.operator_rows(savepoint))

    def _apply(self, operation: op.DdlOperation) -> bool:
        from flowsql_planner.catalog.apply import apply_ddl

        return apply_ddl(operation, self._catalogs)

    def _reset(self, key: str | None) -> None:
        if key is None:
            self._configuration.reset_all()
        else:
            self._configuration.reset(key)

    def _set(self, key: str, value: str) -> None:
        if key == LOCAL_TIME_ZONE.key:
            check_zone(value)
        set_option(self._configuration, key, value, lambda warning: print(f"[WARNING] {warning}", file=sys.stderr))

    def _insert(self, insert: op.Insert) -> TableResult:
        if self._collected is None:
            return self._change((insert,))
        self._collected.append(insert)
        return answers.done()

    def _end_statement_set(self) -> TableResult:
        inserts, self._collected = self._collected, None
        if inserts is None:
            raise BindError(
                "statement-set",
                "No Statement Set to submit. 'END' statement should be used after 'BEGIN STATEMENT SET'.",
            )
        if not inserts:
            raise BindError("statement-set", "NO statements in the statement set.")
        return self._change(tuple(inserts))

    def _query(self, query: op.Query) -> TableResult:
        buffer = CollectBuffer()
        job = self._submit_query(query, buffer)
        return TableResult(
            AnswerKind.QUERY,
            query.schema,
            collected=buffer,
            job=job,
            streaming=self._configuration.get(RUNTIME_MODE) is not RuntimeMode.BATCH,
            max_column_width=self._configuration.get(MAX_COLUMN_WIDTH),
            zone=session_zone(self._configuration),
        )

    def _change(self, inserts: tuple[op.Insert, ...]) -> TableResult:
        job = self._submit_inserts(inserts)
        return answers.change(_distinct([insert.rel.name for insert in inserts]), job)

    def _compile(self, operation: op.CompilePlan) -> TableResult:
        from flowsql.table.session.plan_files import load_plan, may_write, write_plan
        from flowsql_planner.compiled_plan import compile_plan

        names = [insert.rel.name for insert in operation.inserts]
        if may_write(operation.path, operation.if_not_exists or operation.execute, self._configuration, operation.span):
            graph = self._with_rows(self._planner().plan_inserts(operation.inserts))
            write_plan(compile_plan(graph, names), operation.path)
        if not operation.execute:
            return answers.done()
        return self.execute_compiled(load_plan(operation.path, operation.span))

    def compile(self, statement: Statement, source: Source) -> CompiledPlan:
        """The compiled plan of an INSERT or a statement set.

        Raises:
            BindError: another statement.
        """
        from flowsql_planner.compiled_plan import compile_plan

        match self.bind(statement, source):
            case op.Insert() as insert:
                inserts: tuple[op.Insert, ...] = (insert,)
            case op.StatementSet(inserts):
                pass
            case _:
                raise BindError(
                    "not-compilable", "Unsupported SQL query! compilePlanSql() only accepts a single SQL statement of "
                    "type INSERT", statement.span
                )  # fmt: skip
        graph = self._with_rows(self._planner().plan_inserts(inserts))
        return compile_plan(graph, [insert.rel.name for insert in inserts])

    def execute_compiled(self, plan: CompiledPlan) -> TableResult:
        """Run a compiled plan."""
        if self._is_on_spark():
            raise NotSupportedYetError("EXECUTE PLAN in a stream on Spark", hint="run the statement itself")
        return answers.change(list(plan.sinks), self._submit(plan.job))

    def _analyze(self, operation: op.AnalyzeTable) -> None:
        """Run the counting query as a stream over the bounded table and keep its last answer for each group."""
        from flowsql.table.values.result_rows import rows_of
        from flowsql_planner.bind.ddl.analyze_table import store_statistics
        from flowsql_planner.planner import Planner

        buffer = CollectBuffer()
        # It counts what is there: no job goes on from it.
        layer = {RUNTIME_MODE.key: "streaming", EXECUTION_TARGET.key: "local", "execution.state-recovery.path": ""}
        planner = Planner(self._with_zone().with_layer(layer))
        job = self._submit(planner.plan_query(operation.query, buffer))
        result = TableResult(AnswerKind.QUERY, operation.query.schema, collected=buffer, job=job, streaming=True)
        keys = len(operation.partition_keys)
        found = {}
        for batch in result.batches():
            for row in rows_of(batch, result.schema):
                values = list(row)
                if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                    found[tuple(values[:keys])] = values
        store_statistics(operation, list(found.values()), self._catalogs)

    def _planner(self) -> Planner:
        from flowsql_planner.planner import Planner

        return Planner(self._with_zone(), self.on_plan)

    def _with_zone(self) -> Configuration:
        """The session's options with the machine's time zone by its name, so that everyone below means the same."""
        return self._configuration.with_layer({LOCAL_TIME_ZONE.key: session_zone(self._configuration)})

    def _is_batch(self) -> bool:
        return self._configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH

    def _is_on_spark(self) -> bool:
        return streams_on_spark(self._configuration)

    def _explain(self, explained: Explainable, details: tuple[str, ...]) -> str:
        if LINEAGE in details:
            from flowsql_planner.lineage.formats import render_lineage
            from flowsql_planner.lineage.statements import lineage_of_operation

            return render_lineage(lineage_of_operation(explained), "text")
        if self._is_batch():
            from flowsql.table.session import batch_mode as bounded

            return bounded.explain(self._with_zone(), explained, details, self.spark)
        if self._is_on_spark():
            from flowsql.table.session import spark_streaming

            return spark_streaming.explain(self._with_zone(), explained, details)
        return self._planner().explain(explained, details)

    def _submit_query(self, query: op.Query, buffer: CollectBuffer) -> JobClient:
        if self._is_batch():
            from flowsql.table.session import batch_mode as bounded

            return self._submit_bounded(bounded.plan_query(self._with_zone(), query, buffer, self.spark), buffer)
        if self._is_on_spark():
            from flowsql.table.session import spark_streaming

            return spark_streaming.submit_query(self._with_zone(), query, buffer, self.spark)
        return self._submit(self._planner().plan_query(query, buffer))

    def _submit_inserts(self, inserts: tuple[op.Insert, ...]) -> JobClient:
        if self._is_batch():
            from flowsql.table.session import batch_mode as bounded
            from flowsql_runtime.checkpoint.resume_folder import check_streaming

            check_streaming(self._configuration)
            return self._submit_bounded(bounded.plan_inserts(self._with_zone(), inserts, self.spark), None)
        if self._is_on_spark():
            from flowsql.table.session import spark_streaming

            return spark_streaming.submit_inserts(self._with_zone(), inserts, self.spark)
        return self._submit(self._planner().plan_inserts(inserts))

    def plan(self, inserts: tuple[op.Insert, ...]) -> JobGraph | SparkJob:
        """The job that INSERTs would start; nothing is started, Spark neither."""
        if self._is_batch():
            from flowsql.table.session import batch_mode as bounded

            return bounded.plan_inserts(self._with_zone(), inserts, self.spark, starts=False)
        return self._planner().plan_inserts(inserts)

    def _submit_bounded(self, planned: JobGraph | SparkJob, buffer: CollectBuffer | None) -> JobClient:
        """Start a job of batch mode on the engine that it was planned for."""
        from flowsql.table.session import batch_mode as bounded
        from flowsql_runtime.cluster.local import LocalCluster

        if isinstance(planned, JobGraph):
            return self._submit(planned)
        if self._cluster is None:
            self._cluster = LocalCluster()
        return bounded.submit(self._cluster, self._spark_with_rows(planned), buffer, self.spark)

    def _submit(self, graph: JobGraph) -> JobClient:
        from flowsql_runtime.cluster.local import LocalCluster

        if self._cluster is None:
            self._cluster = LocalCluster()
        graph = self._with_rows(graph)
        job = self._cluster.submit(graph, continuation=self._continuation)
        watch(job)
        return JobClient(job, graph)

    def _spark_with_rows(self, job: SparkJob) -> SparkJob:
        return replace(job, inputs=tuple(replace(staged, job=self._with_rows(staged.job)) for staged in job.inputs))

    def _with_rows(self, graph: JobGraph) -> JobGraph:
        """The graph with the rows that its scans name."""
        if not self._rows:
            return graph
        specs = [node.spec for vertex in graph.vertices for node in vertex.operators]
        names = {spec.table.option("rows") for spec in specs if isinstance(spec, ScanSpec)}
        found = {name: rows for name, rows in self._rows.items() if name in names}
        return replace(graph, resources={**graph.resources, **found}) if found else graph


def _distinct(names: list[str]) -> list[str]:
    """Names of sinks, with a number behind those that are written several times."""
    return [
        name if names.count(name) == 1 else f"{name}_{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]
