"""Sinks that make results visible by commits, before the tasks of a job start: what an earlier process left to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from flowsql_core.config import Configuration
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import SinkSpec

if TYPE_CHECKING:
    from flowsql_connectors.spi.sink import Committer
    from flowsql_runtime.checkpoint.manifest import Manifest
    from flowsql_runtime.task.services import JobServices


def commit_again(graph: JobGraph, configuration: Configuration, manifest: Manifest, services: JobServices) -> None:
    """Commit what a snapshot says was prepared: the failure may have come before."""
    from flowsql_connectors.spi.sink import Committable

    for uid, committer in _committers(graph, configuration, set(manifest.committables)):
        services.commit_again(uid, committer, [Committable(part) for part in manifest.committables[uid]])


def discard_leftovers(graph: JobGraph, configuration: Configuration, lineage: str) -> None:
    """A process died before anything became visible: remove what its sinks had begun."""
    sinks = {node.uid for vertex in graph.vertices for node in vertex.operators}
    for _, committer in _committers(graph, configuration, sinks):
        committer.discard(lineage)


def _committers(graph: JobGraph, configuration: Configuration, uids: set[str]) -> Iterator[tuple[str, Committer]]:
    from flowsql_connectors import registry

    parameters = dict(configuration.items())
    for vertex in graph.vertices:
        for node in vertex.operators:
            if node.uid in uids and isinstance(node.spec, SinkSpec):
                committer = registry.create_sink(node.spec, parameters).create_committer()
                if committer is not None:
                    yield node.uid, committer
