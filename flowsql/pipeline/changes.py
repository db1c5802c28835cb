"""What changed in a project since its last run, node by node, and in streaming mode operator by operator."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.pipeline.bound import BoundProject
from flowsql.pipeline.fingerprint import CHANGES
from flowsql.pipeline.kept import Kept
from flowsql.pipeline.project import Node
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.secrets.hidden import hidden
from flowsql_runtime.checkpoint.evolution import Change, compare, remembered_in
from flowsql_runtime.checkpoint.late_calls import with_late_calls
from flowsql_runtime.checkpoint.recovery import open_snapshot


class Kind(enum.Enum):
    """What became of a node."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node against the last run.

    ``where`` and ``title``: its place and tables. ``operators``: what becomes of the state in its savepoint; None where
    it has none.
    """

    kind: Kind
    where: str
    title: str
    reason: str = ""
    operators: Sequence[Change] | None = None


def node_changes(bound: BoundProject, kept: Kept) -> list[NodeChange]:
    """All nodes in the order of the run, then those that are no more.

    Raises:
        FlowSqlError: a node has no plan, or a savepoint cannot be read.
    """
    found = [_of_node(bound, kept, node, key) for node, key in bound.keys.items()]
    for key in kept.keys:
        if key not in bound.keys.values():
            tables, _, _ = key.rpartition("#")
            newest = kept.continuation(key).newest(dict(bound.environment.configuration.items()))
            reason = "" if newest is None else hidden(f"nothing goes on from {newest.path}")
            found.append(NodeChange(Kind.REMOVED, "-", tables, reason))
    return found


def _of_node(bound: BoundProject, kept: Kept, node: Node, key: str) -> NodeChange:
    where, title = str(node.place), node.title
    # A plan is made of each: what has none is told here, too.
    graph = bound.plan(node)
    started, done = kept.jobs.get(key), kept.done.get(key)
    known = started or done
    if known is None:
        return NodeChange(Kind.NEW, where, title)
    # A stream that goes on has new files to read, as is its way.
    kinds = [kind for kind in CHANGES if started is None or kind != "inputs"]
    causes = [CHANGES[kind] for kind in kinds if known.parts.get(kind) != bound.parts[node][kind]]
    kind = Kind.CHANGED if causes else Kind.UNCHANGED
    if started is None or not isinstance(graph, JobGraph):
        return NodeChange(kind, where, title, ", ".join(causes))
    try:
        newest = kept.continuation(key).newest(node.settings)
        if newest is None:
            return NodeChange(kind, where, title, ", ".join([*causes, "starts from the beginning"]))
        remembered = remembered_in(open_snapshot(newest.path, node.settings).manifest)
    except FlowSqlError as error:
        raise node.place.located(error) from None
    reason = ", ".join([*causes, hidden(f"goes on from {newest.path}")])
    return NodeChange(kind, where, title, reason, compare(remembered, with_late_calls(remembered, graph)))
