"""Runs a project in batch mode: its nodes in order, those alone whose rows may be other ones."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from flowsql.common.public_api import public_api
from flowsql.pipeline.bound import BoundProject
from flowsql.pipeline.fingerprint import CHANGES
from flowsql.pipeline.kept import Done, Kept
from flowsql.pipeline.outcome import BROKEN, Outcome, Status
from flowsql.pipeline.project import Node
from flowsql.pipeline.rerun import gone, leave_folder, replacing

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.span import Source


#: Waits for the job of a statement.
Wait = Callable[["TableResult", "Source"], None]


@public_api
class Pipeline:
    """A project in batch mode that was compared with its last runs; nothing was run.

    Args:
        bound: the project.
        kept: what is known of its last runs.
        full: everything runs, whatever changed.
        nodes: those that this run is about; the others are as they are.
    """

    def __init__(self, bound: BoundProject, kept: Kept, *, full: bool, nodes: Collection[Node]) -> None:
        self._bound = bound
        self._kept = kept
        order = [node for node in bound.order if node in nodes]
        reasons = self._reasons(order, full)
        self.outcomes = [Outcome(node, reasons.get(node, "")) for node in order]

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
                cause = next((other for other in self._bound.before[node] if other in found), None)
                if cause is None:
                    mates = (other for other in found if not set(other.tables).isdisjoint(node.tables))
                    cause = next(mates, None)
                if cause is not None:
                    found[node] = f"{cause.place} runs"
                    grown = True
        return found

    def _own_reason(self, node: Node) -> str | None:
        done = self._kept.done.get(self._bound.keys[node])
        if done is None:
            return "it has not run to its end yet"
        changed = [text for kind, text in CHANGES.items() if done.parts.get(kind) != self._bound.parts[node][kind]]
        if changed:
            return ", ".join(changed)
        if done.rows and all(map(gone, self._bound.inserts[node])):
            return "what it wrote is gone"
        return None if dict(done.before) == self._runs_before(node) else "what it reads was made anew"

    def _runs_before(self, node: Node) -> dict[str, str]:
        runs = self._kept.done
        return {
            key: runs[key].run for key in (self._bound.keys[other] for other in self._bound.before[node]) if key in runs
        }

    # Running

    def run(self, wait: Wait, told: Callable[[Outcome], None]) -> bool:
        """Run what has to run; whether all went well. ``told`` hears of each node when it is over.

        Raises:
            KeyboardInterrupt: the node that ran was cancelled.
        """
        self._kept.keep_only(set(self._bound.keys.values()))
        by_node = {outcome.node: outcome for outcome in self.outcomes}
        begun: set[tuple[str, str, str]] = set()
        for outcome in self.outcomes:
            node = outcome.node
            earlier = [by_node[other] for other in self._bound.before[node] if other in by_node]
            broken = [other for other in earlier if other.status in BROKEN]
            if broken:
                outcome.status = Status.SKIPPED
                outcome.reason = f"{broken[0].node.place} {broken[0].status.value}"
                self._kept.forget(self._bound.keys[node])
            elif not outcome.reason:
                outcome.status = Status.UNCHANGED
            else:
                self._run_node(outcome, wait, begun)
            told(outcome)
        return not any(outcome.status in BROKEN for outcome in self.outcomes)

    def _run_node(self, outcome: Outcome, wait: Wait, begun: set[tuple[str, str, str]]) -> None:
        node, key = outcome.node, self._bound.keys[outcome.node]
        started = time.monotonic()
        self._kept.forget(key)
        self._bound.hold(node)
        source = node.place.source
        tables = {path.parts for path in node.tables}
        try:
            inserts = replacing(self._bound.inserts[node], tables - begun)
            begun |= tables
            result = self._bound.start(node, inserts)
            try:
                wait(result, source)
            finally:
                result.cancel()
            job = result.get_job_client()
            assert job is not None
            for insert in inserts:
                leave_folder(insert)
            outcome.count(job)
            outcome.status = Status.DONE
            self._kept.note(
                key, Done(self._bound.parts[node], secrets.token_hex(8), outcome.rows or 0, self._runs_before(node))
            )
        except KeyboardInterrupt:
            outcome.status = Status.CANCELLED
            raise
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            outcome.fail(error)
        finally:
            outcome.seconds = time.monotonic() - started
