"""Watermark alignment: sources and splits that are far ahead of others wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Set
from typing import Final

from flowsql_core.config import option, parse_bool
from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.graph.job import JobGraph, JobVertex, OperatorNode
from flowsql_core.graph.specs import WatermarkAlignment, WatermarkAssignerSpec
from flowsql_core.graph.stream_specs import AssignTimestampsSpec

ALLOW_UNALIGNED_SPLITS: Final = option(
    "pipeline.watermark-alignment.allow-unaligned-source-splits",
    parse_bool,
    False,
    "With watermark alignment: a reader of several splits that cannot pause one of them reads on; else the job fails.",
)

#: Rows at once of a source that waits for others when it is ahead: so far it may be too far ahead.
BATCH_ROWS: Final = 1_024


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
            for node, alignment in _aligned(vertex):
                for subtask in range(vertex.parallelism):
                    self.report(alignment.group, (node.uid, subtask), MIN_WATERMARK)

    def leave(self, group: str, member: Hashable) -> None:
        """A member is over: nobody waits for it."""
        with self._lock:
            self._groups.get(group, {}).pop(member, None)

    def over(self, member: Hashable) -> None:
        """A task that does not run any more, as it had ended before the snapshot that the job started from."""
        with self._lock:
            for members in self._groups.values():
                members.pop(member, None)


def _aligned(vertex: JobVertex) -> list[tuple[OperatorNode, WatermarkAlignment]]:
    found = []
    for node in vertex.operators:
        if isinstance(node.spec, WatermarkAssignerSpec | AssignTimestampsSpec) and node.spec.alignment is not None:
            found.append((node, node.spec.alignment))
    return found


class AlignedSource:
    """One subtask of a source in its group, and the splits that it reads.

    A split is paused while its watermark is more than the drift above the lowest one of the group. The subtask's own
    watermark is the lowest of its unfinished splits. A split of which nothing was read is read first, one row, and so
    long the others are paused. The split with the lowest watermark is never paused: somebody always reads.

    Args:
        levels: the watermark of each split that was begun; None: of rows that come from no split.
        unfinished: the splits that are not read to their end. Both are kept up to date by others.
        start_ms: the level that stands for no watermark.
        look_again: call ``look`` after so many milliseconds.

    Source: Flink, ``SourceOperator``; FLIP-182, FLIP-217.
    """

    def __init__(
        self,
        alignment: WatermarkAlignment,
        groups: AlignmentGroups,
        member: Hashable,
        levels: Mapping[str | None, int],
        unfinished: Set[str],
        look_again: Callable[[int], None],
        start_ms: int = MIN_WATERMARK,
    ) -> None:
        self._group = alignment.group
        # A negative drift would stop the one that is furthest behind.
        self._drift_ms = max(alignment.max_drift_ms, 0)
        self._interval_ms = max(alignment.update_interval_ms, 1)
        self._groups = groups
        self._member = member
        self._levels = levels
        self._unfinished = unfinished
        self._look_again = look_again
        self._start_ms = start_ms
        self._pending = False
        self._over = False
        #: Whether its input is silent: nobody waits for it.
        self.idle = False
        #: The last watermark that left, MIN_WATERMARK before.
        self.emitted_ms = MIN_WATERMARK
        #: Whether the source reads splits; without any it has nothing to read for now.
        self.of_splits = False
        #: Whether the reader can pause a split while it reads others.
        self.pauses = True
        #: Whether all that there is to read is too far ahead.
        self.waits = False
        #: Splits that are too far ahead, while there are others to read.
        self.paused: frozenset[str] = frozenset()
        groups.report(alignment.group, member, MIN_WATERMARK)

    def most_rows(self, rows: int) -> int:
        """How many rows to read at once: one while splits are begun, which only tells where they are."""
        if self.pauses and len(self._unfinished) > 1 and not self._unfinished <= self._levels.keys():
            return 1
        return min(rows, BATCH_ROWS)

    def look(self) -> None:
        """Judge anew: after rows, after the end of a split, and every update interval while something is paused."""
        if self._over:
            return
        begun = {split: self._levels[split] for split in self._unfinished if split in self._levels}
        unbegun = len(self._unfinished) - len(begun)
        holds_ms = self.emitted_ms if unbegun and (self.pauses or not begun) else self._own(begun)
        lowest_ms = self._groups.report(self._group, self._member, holds_ms)
        # Where somebody has not begun, what has begun waits for it.
        limit_ms = lowest_ms if lowest_ms == MIN_WATERMARK else lowest_ms + self._drift_ms
        if unbegun and self.pauses:
            self.waits, self.paused = False, frozenset(begun)
        elif not self._unfinished:
            self.waits, self.paused = self._start_ms < self._levels.get(None, self._start_ms) > limit_ms, frozenset()
        else:
            ahead = frozenset(split for split, level_ms in begun.items() if self._start_ms < level_ms > limit_ms)
            self.waits = len(ahead) == len(begun) > 0
            self.paused = ahead if self.pauses and not self.waits else frozenset()
        if (self.waits or self.paused) and not self._pending:
            self._pending = True
            self._look_again(self._interval_ms)

    def interval_over(self) -> None:
        """What was asked of ``look_again``."""
        self._pending = False
        self.look()

    def _own(self, begun: Mapping[str, int]) -> int:
        """What the others wait for; MAX_WATERMARK for nothing: as in Flink, who has no watermark holds nobody back."""
        if self.idle:
            return MAX_WATERMARK
        if begun:
            level_ms = min(begun.values())
        elif self.of_splits:
            level_ms = self._start_ms
        elif None not in self._levels:
            return MIN_WATERMARK
        else:
            level_ms = self._levels[None]
        reached_ms = max(level_ms, self.emitted_ms)
        return reached_ms if reached_ms > self._start_ms else MAX_WATERMARK

    def leave(self) -> None:
        """It reads no more."""
        self._over = True
        self.waits = False
        self.paused = frozenset()
        self._groups.leave(self._group, self._member)
