"""Pipelined regions: which tasks of a job go back and start again together when one of them fails.

Tasks that hand each other rows while they run form a region: a receiver cannot forget what it took from a sender that
goes back, nor a sender repeat for a receiver what it has let go. Between the two ends of a blocking exchange only whole
results pass, so regions end there. Source: Flink, ``RestartPipelinedRegionFailoverStrategy``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flowsql_core.graph.job import JobGraph
from flowsql_runtime.network.selector import receivers
from flowsql_runtime.task.task import TaskKey


@dataclass(frozen=True, slots=True)
class Connection:
    """A channel: position of its edge in the graph, sender and receiver."""

    edge: int
    sender: TaskKey
    receiver: TaskKey


def connections(graph: JobGraph) -> Iterator[Connection]:
    """All channels of a job, edge by edge."""
    width = {vertex.id: vertex.parallelism for vertex in graph.vertices}
    for position, edge in enumerate(graph.edges):
        senders, consumers = width[edge.source_vertex], width[edge.target_vertex]
        for subtask in range(senders):
            for target in receivers(edge.partitioning.strategy, subtask, senders, consumers):
                yield Connection(position, (edge.source_vertex, subtask), (edge.target_vertex, target))


class Regions:
    """The regions of one job.

    Args:
        graph: with its final parallelism.
        blocking: positions of the edges whose receivers wait for the end of the sender.
    """

    def __init__(self, graph: JobGraph, blocking: frozenset[int]) -> None:
        tasks = [(vertex.id, subtask) for vertex in graph.vertices for subtask in range(vertex.parallelism)]
        self._blocking = []
        above = {task: task for task in tasks}

        def root(task: TaskKey) -> TaskKey:
            while above[task] != task:
                above[task] = above[above[task]]
                task = above[task]
            return task

        for connection in connections(graph):
            if connection.edge in blocking:
                self._blocking.append(connection)
            else:
                above[root(connection.receiver)] = root(connection.sender)
        members: dict[TaskKey, list[TaskKey]] = {}
        for task in tasks:
            members.setdefault(root(task), []).append(task)
        self._region = {task: frozenset(region) for region in members.values() for task in region}
        self.all = frozenset(tasks)

    def __len__(self) -> int:
        return len(set(self._region.values()))

    def restarted_with(self, task: TaskKey, intact: Callable[[Connection], bool]) -> frozenset[TaskKey]:
        """The tasks that start again when one fails.

        Its region; those that take the results of a region that starts again, as they may come otherwise this time; and
        those whose results such a region needs and that are not there any more.

        Args:
            intact: whether all that passes a blocking channel is there and can be read again.
        """
        found = set(self._region[task])
        grown = True
        while grown:
            grown = False
            for one in self._blocking:
                if one.sender in found and one.receiver not in found:
                    found |= self._region[one.receiver]
                    grown = True
                elif one.receiver in found and one.sender not in found and not intact(one):
                    found |= self._region[one.sender]
                    grown = True
        return frozenset(found)
