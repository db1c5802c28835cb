"""The front door of bounded plans: bound queries and inserts -> :class:`SparkJob`, or the text of EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from flowsql_core.config import RUNTIME_MODE, Configuration
from flowsql_core.errors import PlanError
from flowsql_core.expr import Cast
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import STAGE_RESOURCE, KernelFunction, SparkJob, SparkQuery
from flowsql_core.interpreter.large_stack import with_room
from flowsql_planner.bind import operations as op
from flowsql_planner.explain.sections import AST_TITLE, JSON_TITLE, Detail, render_logical
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.logical.nodes import Project, Rel, Scan, Sink
from flowsql_planner.logical.rewrite import refs, walk
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.refusals import refuse_stray_windows, refuse_unbounded
from flowsql_planner.planner import Explainable, Planner
from flowsql_planner.spark.compile import SparkCompiler
from flowsql_planner.spark.shared_scans import share_scans
from flowsql_planner.translate.options import SQL_PARALLELISM

LOGICAL_TITLE = "== Optimized Logical Plan =="
READERS_TITLE = "== FlowSQL Readers =="
SPARK_TITLE = "== Spark SQL =="
KERNELS_TITLE = "== Arrow Functions =="
T = TypeVar("T")

_COLLECT_NAME: Final = "*anonymous_collect$1*"
_STAGE_NAME: Final = "*spark_input*"


class SparkPlanner:
    """Plans statements for Spark under one configuration.

    Args:
        configuration: of the session.
        folder: a path that no other job uses; files of the job will be there.
    """

    def __init__(self, configuration: Configuration, folder: str) -> None:
        self._configuration = configuration
        self._folder = folder
        self._planner = Planner(configuration)
        self._around = Planner(configuration.with_layer({RUNTIME_MODE.key: "streaming"}))
        self._alone = Planner(configuration.with_layer({SQL_PARALLELISM.key: "1"}))

    def plan_query(self, query: op.Query, collector: object) -> SparkJob:
        """The job whose rows go to ``collector``.

        Raises:
            PlanError: as for :meth:`plan`.
        """
        sink = Sink(query.rel, None, _COLLECT_NAME, span=query.span)
        return self.plan((sink,), "collect", {"collect": collector})

    def plan_frame(self, query: op.Query) -> SparkJob:
        """The job whose one answer stays in Spark as a DataFrame.

        Raises:
            PlanError: as for :meth:`plan`.
        """
        sink = Sink(query.rel, None, _COLLECT_NAME, span=query.span)
        job = self._planned((sink,), "frame", {}, SparkCompiler.compile_frame)
        (answer,) = job.queries
        # A projection that only renames columns is left out of the plan.
        named = zip(answer.columns, query.schema, strict=True)
        columns = tuple(replace(column, name=asked.name) for column, asked in named)
        return replace(job, queries=(replace(answer, columns=columns),))

    def plan_inserts(self, inserts: Sequence[op.Insert]) -> SparkJob:
        """One job for all inserts.

        Raises:
            PlanError: as for :meth:`plan`.
        """
        sinks = tuple(insert.rel for insert in inserts)
        return self.plan(sinks, "insert-into_" + ",".join(sink.name for sink in sinks))

    def plan(self, sinks: Sequence[Sink], name: str, resources: Mapping[str, Any] | None = None) -> SparkJob:
        """The job of some sinks.

        Raises:
            NotSupportedYetError: something that Spark, and FlowSQL around it, does not answer exactly.
            PlanError: no plan at all.
        """
        return self._planned(sinks, name, resources or {}, SparkCompiler.compile)

    def _planned(
        self,
        sinks: Sequence[Sink],
        name: str,
        resources: Mapping[str, Any],
        compile_root: Callable[[SparkCompiler, Sink], SparkQuery],
    ) -> SparkJob:
        def planned() -> SparkJob:
            compiler, roots = self._compiler(sinks, resources)
            queries = tuple(compile_root(compiler, root) for root in roots)
            return SparkJob(
                name,
                tuple(compiler.staged.values()),
                queries,
                self._folder,
                tuple(self._configuration.items()),
                tuple(compiler.subqueries),
                tuple(compiler.kernels.functions.values()),
            )

        return self._with_room(planned, sinks[0].span)

    def explain(self, operation: Explainable, details: Sequence[str], spark_plan: Callable[[SparkJob], str]) -> str:
        """EXPLAIN: the plan as bound, after all rules, and as Spark gets it; with JSON_EXECUTION_PLAN Spark's own.

        Args:
            operation: what to explain.
            details: names of :class:`Detail`.
            spark_plan: asks Spark for its plan of a job.
        """
        wanted = {Detail(str(detail).upper()) for detail in details}
        match operation:
            case op.Query(rel=rel):
                sinks: tuple[Sink, ...] = (Sink(rel, None, _COLLECT_NAME, span=operation.span),)
            case op.Insert(rel=sink):
                sinks = (sink,)
            case op.StatementSet(inserts=inserts):
                sinks = tuple(insert.rel for insert in inserts)

        def explained() -> tuple[list[tuple[str, str]], SparkJob]:
            compiler, roots = self._compiler(sinks, {"collect": None})
            queries = tuple(map(compiler.compile, roots))
            inputs = tuple(compiler.staged.values())
            kernels = tuple(compiler.kernels.functions.values())
            job = SparkJob(
                "explain", inputs, queries, self._folder, tuple(self._configuration.items()), kernels=kernels
            )
            readers = "\n".join(f"{staged.view}:\n{render_logical((rel,))}" for rel, staged in compiler.staged.items())
            asked = [f"-- for {staged.view}\n{staged.source.sql}" for staged in inputs if staged.source is not None]
            return [
                (AST_TITLE, render_logical(sinks)),
                (LOGICAL_TITLE, render_logical(roots)),
                (READERS_TITLE, readers),
                (SPARK_TITLE, "\n\n".join([*asked, *(query.sql for query in queries)]) + "\n"),
                *([(KERNELS_TITLE, "\n".join(map(_kernel_line, kernels)) + "\n")] if kernels else []),
            ], job

        sections, job = self._with_room(explained, sinks[0].span)
        if Detail.JSON_EXECUTION_PLAN in wanted:
            sections.append((JSON_TITLE, spark_plan(job) + "\n"))
        return "\n".join(f"{title}\n{text}" for title, text in sections)

    # Parts

    def _compiler(self, sinks: Sequence[Sink], resources: Mapping[str, Any]) -> tuple[SparkCompiler, tuple[Sink, ...]]:
        context = PlanContext(self._configuration)

        def optimized(rel: Rel) -> Rel:
            return self._planner.optimized_bounded(rel, context)

        def tail(sink: Sink) -> JobGraph:
            return self._behind(sink, resources)

        roots: list[Sink] = []
        for sink in sinks:
            made = optimized(sink)
            assert isinstance(made, Sink)
            refuse_stray_windows(made)
            for node in walk(made):
                if isinstance(node, Scan):
                    refuse_unbounded(node, context)
            roots.append(made)
        shared, scans = share_scans(roots)
        return SparkCompiler(self._stage, tail, optimized, scans), shared

    def _stage(self, rel: Rel, waits: bool) -> JobGraph:
        """The job that hands its rows to Spark. ``waits``: one of its nodes has state, and answers at the end."""
        # A source may break its word about NOT NULL; only a sink of the statement judges that.
        loose = tuple(Cast(ref, ref.type.as_nullable(), implicit=True) for ref in refs(rel.schema))
        rel = Project(rel, loose, tuple(column.name for column in rel.schema), getattr(rel, "span", None))
        sink = Sink(rel, None, _STAGE_NAME, span=getattr(rel, "span", None))
        planner = self._alone if waits else self._around
        return planner.plan((sink,), "spark-input", {}, {_STAGE_NAME: STAGE_RESOURCE})

    def _behind(self, sink: Sink, resources: Mapping[str, Any]) -> JobGraph:
        """The job that takes an answer further, in the driver or in each task. One reader keeps the rows' order."""
        collects = {sink.name: "collect"} if sink.table is None else {}
        return self._alone.plan((sink,), f"behind-spark_{sink.name}", resources, collects)

    @staticmethod
    def _with_room(make: Callable[[], T], span: Any) -> T:
        try:
            return with_room(make)
        except RecursionError:
            raise PlanError(
                "nested-too-deeply", "The statement is nested too deeply to be planned", span, "split it with views"
            ) from None


def _kernel_line(kernel: KernelFunction) -> str:
    """``flowsql_kernel_0(STRING): UPPER($0), of which Spark has no exact form``; that is why it is one."""
    types = ", ".join(str(type_.as_nullable()) for type_ in kernel.arguments)
    shown = ExpressionPrinter(None).print(kernel.expr)
    return f"{kernel.name}({types}): {shown}, of which Spark has no exact form"
