"""Watermark alignment: sources that are far ahead of others wait for them."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import WatermarkAlignment, WatermarkAssignerSpec


class AlignmentGroups:
    """How far the sources of a job are, by group. Any thread.

    Source: Flink, ``SourceCoordinator``; FLIP-182.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[str, dict[Hashable, int]] = {}

    def report(self, group: str, member: Hashable, watermark_ms: int) -> int:
        """A member has come so far; the lowest watermark of the group, MAX_WATERMARK where nobody holds it back.

        A member counts from its first report on; MIN_WATERMARK before its first watermark, MAX_WATERMARK while idle.
        """
        with self._lock:
            members = self._groups.setdefault(group, {})
            members[member] = watermark_ms
            return min(members.values())

    def expect(self, graph: JobGraph) -> None:
        """Count all subtasks of a job from its start on, so that none runs ahead of those that are still being made."""
        for vertex in graph.vertices:
            for node in vertex.operators:
                if isinstance(node.spec, WatermarkAssignerSpec) and node.spec.alignment is not None:
                    for subtask in range(vertex.parallelism):
                        self.report(node.spec.alignment.group, (node.uid, subtask), MIN_WATERMARK)

    def leave(self, group: str, member: Hashable) -> None:
        """A member is over: nobody waits for it."""
        with self._lock:
            self._groups.get(group, {}).pop(member, None)


class AlignedSource:
    """One subtask of a source in its group."""

    def __init__(self, alignment: WatermarkAlignment, groups: AlignmentGroups, member: Hashable) -> None:
        self.update_interval_ms = alignment.update_interval_ms
        self._alignment = alignment
        self._groups = groups
        self._member = member
        #: Whether it is too far ahead to read on.
        self.waits = False
        self.reached(MIN_WATERMARK)

    def reached(self, watermark_ms: int) -> None:
        """The subtask's watermark; MAX_WATERMARK: it is idle, and nobody waits for it."""
        lowest = self._groups.report(self._alignment.group, self._member, watermark_ms)
        ahead = watermark_ms - lowest > self._alignment.max_drift_ms
        # Who has no watermark yet or is idle reads on.
        self.waits = ahead and MIN_WATERMARK < watermark_ms < MAX_WATERMARK

    def leave(self) -> None:
        """It reads no more."""
        self.waits = False
        self._groups.leave(self._alignment.group, self._member)
