"""A project that was read, put in order and bound: what its runs, plans and pictures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowsql.pipeline.fingerprint import fingerprints
from flowsql.pipeline.order import ordered_definitions, ordered_nodes, stored_reads
from flowsql.pipeline.project import Node, Written, read_project
from flowsql.pipeline.rerun import check_partitions, check_repeatable
from flowsql_core.config import RUNTIME_MODE, RuntimeMode
from flowsql_core.errors import InternalError
from flowsql_planner.bind import operations as op
from flowsql_planner.lineage.statements import lineage_of_roots

if TYPE_CHECKING:
    from flowsql.pipeline.folder import ProjectFolder
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_result import TableResult
    from flowsql_core.graph.job import JobGraph
    from flowsql_core.graph.spark import SparkJob
    from flowsql_planner.lineage.model import Lineage
    from flowsql_runtime.checkpoint.continuation import Continuation


class BoundProject:
    """All definitions of a project are known to a session, and all its nodes are bound; nothing was run.

    Args:
        opened: the folder with its profile.
        environment: a fresh session in the mode of the project.

    Raises:
        FlowSqlError: something in the project is wrong.
    """

    def __init__(self, opened: ProjectFolder, environment: TableEnvironment) -> None:
        self.opened = opened
        self.environment = environment
        self.is_batch = environment.configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH
        project = read_project(opened, environment)
        self.inserts: dict[Node, tuple[op.Insert, ...]] = {}
        #: Nodes in the order of the run, and for each those that come right before it.
        self.order, self.before = ordered_nodes(project)
        by_definition = {id(node.definition): node for node in project.nodes if node.definition is not None}
        for definition in ordered_definitions(project):
            self._define(definition, by_definition.get(id(definition)))
        for node in self.order:
            if node not in self.inserts:
                self.inserts[node] = self._bound(node)
        if self.is_batch:
            for node in self.order:
                check_repeatable(node, self.inserts[node])
            check_partitions(self.inserts)
        #: What nodes are known by from run to run.
        self.keys = _keys(self.order)
        #: Tables that they read, through views.
        self.reads = {node: tuple(stored_reads(project, node)) for node in self.order}
        #: What their rows hang on.
        self.parts = {node: fingerprints(project, node, environment.catalogs) for node in self.order}

    def hold(self, written: Written) -> None:
        """Let the options that hold where a statement stands be those of the session."""
        configuration = self.environment.configuration
        configuration.reset_all()
        for key, value in written.settings.items():
            if configuration.text(key) != value:
                configuration.set(key, value)

    def operation(self, inserts: Sequence[op.Insert]) -> op.Insert | op.StatementSet:
        """Several INSERTs of a node are one job."""
        return op.StatementSet(tuple(inserts)) if len(inserts) > 1 else inserts[0]

    def start(self, node: Node, inserts: Sequence[op.Insert], continuation: Continuation | None = None) -> TableResult:
        """Start the job of a node, under the options that are set now; ``continuation``: of a streaming job."""
        return self.environment.run_bound(self.operation(inserts), node.place.source, continuation)

    def plan(self, node: Node) -> JobGraph | SparkJob:
        """The job that a node would start.

        Raises:
            FlowSqlError: there is no plan for it.
        """
        self.hold(node)
        return self.environment.plan_bound(self.inserts[node], node.place.source)

    def explain(self, node: Node) -> str:
        """What EXPLAIN says of a node."""
        self.hold(node)
        explained = op.Explain(self.operation(self.inserts[node]), ())
        return self.environment.run_bound(explained, node.place.source).text()

    def lineage(self) -> list[Lineage]:
        """Where the rows of all nodes come from, in the order of the run.

        Raises:
            PlanError: a statement is nested too deeply.
        """
        return lineage_of_roots([insert.rel for node in self.order for insert in self.inserts[node]])

    def _define(self, definition: Written, node: Node | None) -> None:
        self.hold(definition)
        source = definition.place.source
        operation = self.environment.bind_tree(definition.statement, source)
        if isinstance(operation, op.CreateTableAs):
            assert node is not None
            self.inserts[node] = (operation.insert,)
            operation = operation.create
        self.environment.run_bound(operation, source)

    def _bound(self, node: Node) -> tuple[op.Insert, ...]:
        self.hold(node)
        match self.environment.bind_tree(node.statement, node.place.source):
            case op.Insert() as insert:
                return (insert,)
            case op.StatementSet(inserts):
                return tuple(inserts)
        raise InternalError("a node of a pipeline that writes nothing")


def _keys(nodes: list[Node]) -> dict[Node, str]:
    """Their tables, and the how many-th that writes these."""
    found: dict[Node, str] = {}
    seen: dict[str, int] = {}
    for node in nodes:
        tables = ",".join(map(str, node.tables))
        seen[tables] = seen.get(tables, 0) + 1
        found[node] = f"{tables}#{seen[tables]}"
    return found
