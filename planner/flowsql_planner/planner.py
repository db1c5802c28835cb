"""The front door: bound queries and inserts -> JobGraph, or the text of EXPLAIN.

Logical plan -> rules -> physical plan -> shared scans -> changelog modes -> shared sub-plans -> operators and chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.java.regex_limit import REGEX_LIMIT_MS
from flowsql_core.config import PARALLELISM, RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import PlanError
from flowsql_core.expr import Expr
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import streams_on_spark
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.interpreter.large_stack import with_room
from flowsql_core.record import record
from flowsql_core.types.logical import Column, is_rowtime
from flowsql_planner.bind import operations as op
from flowsql_planner.explain.advice import Advice, advise
from flowsql_planner.explain.execution_notes import execution_notes
from flowsql_planner.explain.sections import (
    ADVICE_TITLE,
    AST_TITLE,
    CHAINING_TITLE,
    EXECUTION_TITLE,
    JSON_TITLE,
    NOTES_TITLE,
    PHYSICAL_TITLE,
    Detail,
    render_execution,
    render_logical,
    render_physical,
)
from flowsql_planner.explain.stream_graph import chaining_text, json_plan
from flowsql_planner.logical.nodes import Filter, Project, Rel, Scan, Sink, Union, Values
from flowsql_planner.logical.rewrite import retype, walk
from flowsql_planner.optimize.driver import Trace, optimize
from flowsql_planner.optimize.programs import bounded, streaming
from flowsql_planner.optimize.queries.correlated_values import refuse_correlated_values
from flowsql_planner.physical.bounded.inputs import Inputs, inputs_of
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.materialize_time import read_clocks
from flowsql_planner.physical.nodes import Physical, SinkNode
from flowsql_planner.physical.nodes.base import cumulative_cost, estimate_rows
from flowsql_planner.physical.options import MULTI_JOIN
from flowsql_planner.physical.plan import plan_physical
from flowsql_planner.physical.program import EXECUTION, OBSERVED, PHYSICAL, run_passes
from flowsql_planner.physical.refusals import refuse_other_in_batch, refuse_stray_windows
from flowsql_planner.physical.scan import primary_key_places
from flowsql_planner.traits.cost import scientific
from flowsql_planner.translate.graph import StreamGraph, build_stream_graph, to_job_graph
from flowsql_planner.translate.options import PIPELINE_NAME

#: Takes the physical plans of a job that is to run, and what they were planned with.
OnPlan = Callable[[tuple[Physical, ...], PlanContext], None]
Explainable = op.Query | op.Insert | op.StatementSet
_COLLECT_NAME = "*anonymous_collect$1*"


class Planner:
    """Plans statements under one configuration. Cheap to make; keeps nothing between statements."""

    def __init__(self, configuration: Configuration, on_plan: OnPlan | None = None) -> None:
        self._configuration = configuration
        self._on_plan = on_plan

    def plan_query(self, query: op.Query, collector: object) -> JobGraph:
        """The job whose rows go to ``collector`` (``accept(batch)``, ``finish()``).

        Raises:
            PlanError: no plan, or one that FlowSQL cannot execute yet.
        """
        sink = Sink(query.rel, None, _COLLECT_NAME, span=query.span)
        return self.plan((sink,), self._job_name("collect"), {"collect": collector}, {_COLLECT_NAME: "collect"})

    def plan_inserts(self, inserts: Sequence[op.Insert]) -> JobGraph:
        """One job for all inserts.

        Raises:
            PlanError: as for :meth:`plan_query`; also a sink that cannot take the changes of its query.
        """
        sinks = tuple(insert.rel for insert in inserts)
        return self.plan(sinks, self._job_name("insert-into_" + ",".join(sink.name for sink in sinks)))

    def plan(
        self,
        sinks: Sequence[Sink],
        job_name: str,
        resources: Mapping[str, Any] | None = None,
        collect_resources: Mapping[str, str] | None = None,
    ) -> JobGraph:
        """The job of some sinks. ``collect_resources``: sink name -> key in ``resources`` of each collected answer."""

        def planned() -> JobGraph:
            context = PlanContext(self._configuration)
            roots = self._physical(sinks, context)
            refuse_other_in_batch(roots, self._configuration)
            if streams_on_spark(self._configuration):
                # Only these plans load what knows about Spark.
                from flowsql_planner.spark.streaming import refuse_on_spark

                refuse_on_spark(roots, context)
            if self._on_plan is not None:
                self._on_plan(roots, context)
            graph = build_stream_graph(roots, context, collect_resources or {})
            return to_job_graph(graph, job_name, context, resources or {})

        try:
            return with_room(planned)
        except RecursionError:
            raise _too_deep(sinks) from None

    def explain(self, operation: Explainable, details: Sequence[str] = ()) -> str:
        """EXPLAIN in Flink's sections; ``details`` are names of :class:`Detail`."""
        wanted = {Detail(str(detail).upper()) for detail in details}
        logical = _roots(operation)
        try:
            return with_room(lambda: self._explained(logical, wanted))
        except RecursionError:
            raise _too_deep(logical) from None

    def physical(self, operation: Explainable) -> tuple[tuple[Physical, ...], PlanContext]:
        """The physical plans that run for a statement, and what they were planned with.

        Raises:
            PlanError: as for :meth:`plan_query` and :meth:`plan_inserts`.
        """
        queries = operation.inserts if isinstance(operation, op.StatementSet) else (operation,)
        sinks = tuple(
            each.rel if isinstance(each, op.Insert) else Sink(each.rel, None, _COLLECT_NAME, span=each.span)
            for each in queries
        )
        context = PlanContext(self._configuration)

        def planned() -> tuple[Physical, ...]:
            roots = self._physical(sinks, context)
            refuse_other_in_batch(roots, self._configuration)
            # Some refusals are those of operators.
            self._stream_graph(roots, context)
            return roots

        try:
            return with_room(planned), context
        except RecursionError:
            raise _too_deep(sinks) from None

    def row_times(self, query: op.Query) -> frozenset[int]:
        """The columns that are row times in the query's plan: what functions make of one has its type alone.

        Raises:
            PlanError: no plan.
        """
        root = with_room(lambda: self._physical((query.rel,), PlanContext(self._configuration))[0])
        return frozenset(index for index, column in enumerate(root.schema) if is_rowtime(column.type))

    def inputs(self, operation: Explainable) -> Inputs:
        """What a bounded statement reads.

        Raises:
            PlanError: no plan, or one that FlowSQL cannot execute.
        """
        logical = _roots(operation)

        def found() -> Inputs:
            context = PlanContext(self._configuration)
            return inputs_of(self._physical(logical, context), context)

        try:
            return with_room(found)
        except RecursionError:
            raise _too_deep(logical) from None

    def _job_name(self, otherwise: str) -> str:
        return self._configuration.get(PIPELINE_NAME) or otherwise

    # Planning

    def optimized(self, root: Rel, context: PlanContext, trace: Trace | None = None) -> Rel:
        """The logical plan after all rules."""
        evaluation = EvalContext(zone=context.zone, regex_limit_s=self._configuration.get(REGEX_LIMIT_MS) / 1000)
        ranks = self._configuration.get(RUNTIME_MODE) is not RuntimeMode.BATCH
        multi_joins = ranks and self._configuration.get(MULTI_JOIN)
        program = streaming(_Abilities(context), evaluation, ranks, multi_joins)
        return retype(optimize(refuse_correlated_values(root), program, trace))

    def optimized_bounded(self, root: Rel, context: PlanContext) -> Rel:
        """The logical plan as homes of bounded inputs get it."""
        evaluation = EvalContext(zone=context.zone, regex_limit_s=self._configuration.get(REGEX_LIMIT_MS) / 1000)
        return retype(optimize(refuse_correlated_values(root), bounded(_Abilities(context), evaluation)))

    def _physical(self, roots: Sequence[Rel], context: PlanContext) -> tuple[Physical, ...]:
        """Physical plans with modes, equal parts being the same objects."""
        return run_passes(EXECUTION, self._planned(roots, context), context)

    def _planned(self, roots: Sequence[Rel], context: PlanContext) -> tuple[Physical, ...]:
        context.without_mini_batches = not any(map(_keeps_rows, roots))
        trees: list[Physical] = []
        for root in roots:
            optimized = self.optimized(root, context)
            refuse_stray_windows(optimized)
            tree = plan_physical(optimized, context)
            if isinstance(tree, SinkNode) and isinstance(root, Sink) and root.table is None:
                tree = _named_as(tree, root)
            elif not isinstance(tree, SinkNode) and not context.bounded:
                # What EXPLAIN shows of a query: its rows leave as those of a sink would.
                tree = read_clocks(tree)
            trees.append(tree)
        return run_passes(PHYSICAL, tuple(trees), context)

    # EXPLAIN

    def _explained(self, logical: tuple[Rel, ...], wanted: set[Detail]) -> str:
        context = PlanContext(self._configuration)
        planned = self._planned(logical, context)
        trees = run_passes(OBSERVED, planned, context)
        advice = advise(trees, self._configuration) if Detail.PLAN_ADVICE in wanted else None
        sections = [
            (AST_TITLE, render_logical(logical)),
            self._physical_section(trees, wanted, advice),
        ]
        shared = run_passes(EXECUTION, planned, context)
        sections.append((EXECUTION_TITLE, render_execution(shared)))
        notes = execution_notes(shared, self._configuration.get(PARALLELISM), context)
        if notes:
            sections.append((NOTES_TITLE, notes))
        if wanted & {Detail.JSON_EXECUTION_PLAN, Detail.CHAINING}:
            graph = self._stream_graph(shared, context)
            if Detail.CHAINING in wanted:
                sections.append((CHAINING_TITLE, chaining_text(graph)))
            if Detail.JSON_EXECUTION_PLAN in wanted:
                sections.append((JSON_TITLE, json_plan(graph)))
        return "\n".join(f"{title}\n{text}" for title, text in sections)

    @staticmethod
    def _physical_section(trees: tuple[Physical, ...], wanted: set[Detail], advice: Advice | None) -> tuple[str, str]:
        changelog = Detail.CHANGELOG_MODE in wanted
        suffix = _cost_suffix if Detail.ESTIMATED_COST in wanted else None
        marks = None if advice is None else advice.marks
        text = render_physical(trees, changelog=changelog, suffix=suffix, advice=marks)
        if advice is None:
            return PHYSICAL_TITLE, text
        return ADVICE_TITLE, f"{text}\n{advice.text}\n"

    @staticmethod
    def _stream_graph(roots: tuple[Physical, ...], context: PlanContext) -> StreamGraph:
        return build_stream_graph(roots, context, {root.name: "" for root in roots if isinstance(root, SinkNode)})


def _roots(operation: Explainable) -> tuple[Rel, ...]:
    match operation:
        case op.Query(rel=rel):
            return (rel,)
        case op.Insert(rel=sink):
            return (sink,)
        case op.StatementSet(inserts=inserts):
            return tuple(insert.rel for insert in inserts)
        case _:
            assert_never(operation)


def _named_as(tree: SinkNode, root: Sink) -> SinkNode:
    """The names that the query was written with: inside a plan they may have gone."""
    schema = tuple(Column(wanted.name, column.type) for wanted, column in zip(root.schema, tree.schema, strict=True))
    return replace(tree, schema=schema)


def _cost_suffix(node: Physical, line: int) -> str:
    del line
    cost = cumulative_cost(node)
    return (
        f": rowcount = {scientific(estimate_rows(node))}, cumulative cost = {{{scientific(cost.rows)} rows, "
        f"{scientific(cost.cpu)} cpu, {scientific(cost.io)} io, {scientific(cost.network)} network, "
        f"{scientific(cost.memory)} memory}}"
    )


@record
class _Abilities:
    """What rules ask of sources, answered by connectors."""

    context: PlanContext

    def _source(self, scan: Scan) -> Any:
        return self.context.source(ScanSpec(scan.table, scan.projection, scan.schema, scan.metadata), scan.span)

    def supports_projection(self, scan: Scan) -> bool:
        return bool(self._source(scan).supports_projection())

    def kept_columns(self, scan: Scan) -> tuple[int, ...]:
        if not self.context.normalizes(scan.table, scan.span):
            return ()
        return primary_key_places(scan.table, scan.projection)

    def updates(self, scan: Scan) -> bool:
        return not self._source(scan).changelog_mode.insert_only

    def handled_filters(self, scan: Scan, filters: tuple[Expr, ...]) -> tuple[bool, ...]:
        return tuple(self._source(scan).supports_filters(filters))

    def shows_filters(self, scan: Scan) -> bool:
        return bool(self._source(scan).shows_filters())

    def supports_limit(self, scan: Scan) -> bool:
        return bool(self._source(scan).supports_limit())


def _too_deep(roots: Sequence[Rel]) -> PlanError:
    message = "The statement is nested too deeply to be planned"
    return PlanError("nested-too-deeply", message, roots[0].span, "split it with views or WITH")


def _keeps_rows(root: Rel) -> bool:
    """Whether a query as it is written does more than to pass rows on. As in Flink, queries in its expressions do not
    count: with nothing else beside them no mini-batches are made."""
    return not all(isinstance(node, Scan | Values | Project | Filter | Union | Sink) for node in walk(root))
