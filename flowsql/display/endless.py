"""Whether the rows of a query ever end, and whether a row that came can still change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql_core.graph.specs import CollectSinkSpec, ScanSpec

if TYPE_CHECKING:
    from flowsql_core.config import Configuration
    from flowsql_core.graph.job import JobGraph
    from flowsql_planner.logical.nodes import Rel


def query_is_endless(rel: Rel, configuration: Configuration) -> bool:
    """Whether a query that has not been planned reads a table whose rows never end."""
    from flowsql_planner.logical.nodes import Scan
    from flowsql_planner.logical.rewrite import walk
    from flowsql_planner.physical.context import PlanContext

    context = PlanContext(configuration)
    return any(isinstance(node, Scan) and not context.table_source(node.table, node.span).bounded for node in walk(rel))


def job_is_endless(graph: JobGraph) -> bool:
    """Whether a job reads a table whose rows never end."""
    from flowsql_connectors import registry

    scans = [node.spec for vertex in graph.vertices for node in vertex.operators if isinstance(node.spec, ScanSpec)]
    return any(not registry.create_source(spec, {}).bounded for spec in scans)


def has_only_inserts(graph: JobGraph) -> bool:
    """Whether the rows that a program gets of a job are final, each of them."""
    sinks = [node.spec for vertex in graph.vertices for node in vertex.operators]
    return all(spec.changelog_mode.insert_only for spec in sinks if isinstance(spec, CollectSinkSpec))
