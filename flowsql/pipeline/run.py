"""Runs a project: definitions first, then its nodes in order, those alone whose rows may be other ones."""

from __future__ import annotations

import enum
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flowsql.common.public_api import public_api
from flowsql.pipeline.fingerprint import CHANGES, fingerprints
from flowsql.pipeline.kept import Done, Kept
from flowsql.pipeline.order import ordered_definitions, ordered_nodes
from flowsql.pipeline.project import Node, Written, read_project
from flowsql.pipeline.rerun import check_partitions, check_repeatable, gone, leave_folder, replacing
from flowsql_core.errors import FlowSqlError, InternalError
from flowsql_planner.bind import operations as op
from flowsql_planner.lineage.statements import lineage_of_roots

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_result import TableResult
    from flowsql_core.graph.expectation import ExpectationCounts
    from flowsql_core.span import Source
    from flowsql_planner.lineage.model import Lineage
    from flowsql_runtime.diagnosis.lost import LostRows
    from flowsql_runtime.metrics.volumes import Volumes


class Status(enum.Enum):
    """What became of a node."""

    WAITING = "waiting"
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Outcome:
    """A node of a run. ``reason``: why it runs, or is skipped; empty where it does not run as nothing changed."""

    node: Node
    reason: str
    status: Status = Status.WAITING
    rows: int | None = None
    seconds: float | None = None
    expectations: list[ExpectationCounts] = field(default_factory=list)
    lost: list[LostRows] = field(default_factory=list)
    volumes: Volumes | None = None
    error: FlowSqlError | None = None


#: Waits for the job of a statement.
Wait = Callable[["TableResult", "Source"], None]


@public_api
class Pipeline:
    """A project that was read, bound and compared with its last runs; nothing was run.

    Args:
        folder: of the project.
        environment: a fresh session in batch mode.
        full: everything runs, whatever changed.

    Raises:
        FlowSqlError: something in the project is wrong.
    """

    def __init__(self, folder: Path, environment: TableEnvironment, *, full: bool = False) -> None:
        self._environment = environment
        self._kept = Kept(folder)
        project = read_project(folder, environment)
        self._inserts: dict[Node, tuple[op.Insert, ...]] = {}
        by_definition = {id(node.definition): node for node in project.nodes if node.definition is not None}
        order, self._before = ordered_nodes(project)
        for definition in ordered_definitions(project):
            self._define(definition, by_definition.get(id(definition)))
        for node in order:
            if node not in self._inserts:
                self._inserts[node] = self._bound(node)
            check_repeatable(node, self._inserts[node])
        check_partitions(self._inserts)
        self._keys = _keys(order)
        self._parts = {node: fingerprints(project, node, environment.catalogs) for node in order}
        reasons = self._reasons(order, full)
        self.outcomes = [Outcome(node, reasons.get(node, "")) for node in order]

    # Binding

    def _hold(self, written: Written) -> None:
        """The options that hold where a statement stands."""
        configuration = self._environment.configuration
        configuration.reset_all()
        for key, value in written.settings.items():
            if configuration.text(key) != value:
                configuration.set(key, value)

    def _define(self, definition: Written, node: Node | None) -> None:
        self._hold(definition)
        source = definition.place.source
        operation = self._environment.bind_tree(definition.statement, source)
        if isinstance(operation, op.CreateTableAs):
            assert node is not None
            self._inserts[node] = (operation.insert,)
            operation = operation.create
        self._environment.run_bound(operation, source)

    def _bound(self, node: Node) -> tuple[op.Insert, ...]:
        self._hold(node)
        match self._environment.bind_tree(node.statement, node.place.source):
            case op.Insert() as insert:
                return (insert,)
            case op.StatementSet(inserts):
                return tuple(inserts)
        raise InternalError("a node of a pipeline that writes nothing")

    # What has to run

    def _reasons(self, order: list[Node], full: bool) -> Mapping[Node, str]:
        """Why nodes run; no entry for those that need not."""
        found: dict[Node, str] = {}
        for node in order:
            reason = "--full" if full else self._own_reason(node)
            if reason is not None:
                found[node] = reason
        # What runs again makes those behind it run, and all that write its tables, as the first of them replaces them.
        grown = True
        while grown:
            grown = False
            for node in order:
                if node in found:
                    continue
                cause = next((other for other in self._before[node] if other in found), None)
                if cause is None:
                    mates = (other for other in found if not set(other.tables).isdisjoint(node.tables))
                    cause = next(mates, None)
                if cause is not None:
                    found[node] = f"{cause.place} runs"
                    grown = True
        return found

    def _own_reason(self, node: Node) -> str | None:
        done = self._kept.done.get(self._keys[node])
        if done is None:
            return "it has not run to its end yet"
        changed = [text for kind, text in CHANGES.items() if done.parts.get(kind) != self._parts[node][kind]]
        if changed:
            return ", ".join(changed)
        if done.rows and all(map(gone, self._inserts[node])):
            return "what it wrote is gone"
        return None if dict(done.before) == self._runs_before(node) else "what it reads was made anew"

    def _runs_before(self, node: Node) -> dict[str, str]:
        runs = self._kept.done
        return {key: runs[key].run for key in (self._keys[other] for other in self._before[node]) if key in runs}

    def lineage(self) -> list[Lineage]:
        """Where the rows of all nodes come from, in the order of the run.

        Raises:
            PlanError: a statement is nested too deeply.
        """
        roots = [insert.rel for outcome in self.outcomes for insert in self._inserts[outcome.node]]
        return lineage_of_roots(roots)

    # Running

    def run(self, wait: Wait, told: Callable[[Outcome], None]) -> bool:
        """Run what has to run; whether all went well. ``told`` hears of each node when it is over.

        Raises:
            KeyboardInterrupt: the node that ran was cancelled.
        """
        self._kept.keep_only(set(self._keys.values()))
        by_node = {outcome.node: outcome for outcome in self.outcomes}
        begun: set[tuple[str, str, str]] = set()
        for outcome in self.outcomes:
            node = outcome.node
            broken = [by_node[other] for other in self._before[node] if by_node[other].status in _BROKEN]
            if broken:
                outcome.status = Status.SKIPPED
                outcome.reason = f"{broken[0].node.place} {broken[0].status.value}"
                self._kept.forget(self._keys[node])
            elif not outcome.reason:
                outcome.status = Status.UNCHANGED
            else:
                self._run_node(outcome, wait, begun)
            told(outcome)
        return not any(outcome.status in _BROKEN for outcome in self.outcomes)

    def _run_node(self, outcome: Outcome, wait: Wait, begun: set[tuple[str, str, str]]) -> None:
        node, key = outcome.node, self._keys[outcome.node]
        started = time.monotonic()
        self._kept.forget(key)
        self._hold(node)
        source = node.place.source
        tables = {path.parts for path in node.tables}
        try:
            inserts = replacing(self._inserts[node], tables - begun)
            begun |= tables
            result = self._environment.run_bound(op.StatementSet(inserts) if len(inserts) > 1 else inserts[0], source)
            try:
                wait(result, source)
            finally:
                result.cancel()
            job = result.get_job_client()
            assert job is not None
            for insert in inserts:
                leave_folder(insert)
            outcome.rows, outcome.expectations = job.records_written(), job.expectations()
            outcome.lost = job.lost_rows()
            outcome.volumes = job.get_volumes()
            outcome.status = Status.DONE
            self._kept.note(key, Done(self._parts[node], secrets.token_hex(8), outcome.rows, self._runs_before(node)))
        except FlowSqlError as error:
            outcome.error = error.within(source)
            outcome.status = Status.FAILED
        except KeyboardInterrupt:
            outcome.status = Status.CANCELLED
            raise
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            outcome.error = InternalError(f"{type(error).__name__}: {error}").within(source)
            outcome.error.__cause__ = error
            outcome.status = Status.FAILED
        finally:
            outcome.seconds = time.monotonic() - started


_BROKEN = (Status.FAILED, Status.SKIPPED)


def _keys(nodes: list[Node]) -> dict[Node, str]:
    """What nodes are known by from run to run: their tables, and the how many-th that writes these."""
    found: dict[Node, str] = {}
    seen: dict[str, int] = {}
    for node in nodes:
        tables = ",".join(map(str, node.tables))
        seen[tables] = seen.get(tables, 0) + 1
        found[node] = f"{tables}#{seen[tables]}"
    return found
