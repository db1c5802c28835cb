"""What the subtasks of one job share: splits dealt out once, committables gathered until the whole job succeeded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from flowsql_core.clock import Clock
from flowsql_runtime.task.collected import CollectedRows
from flowsql_runtime.task.part import GivenSplits, JobPart
from flowsql_runtime.task.source_coordinator import Discovery, SourceCoordinator
from flowsql_runtime.time.alignment import AlignedSource, AlignmentGroups

if TYPE_CHECKING:
    from flowsql_connectors.spi.sink import Committable, Committer
    from flowsql_connectors.spi.source import Split, SplitEnumerator

logger = logging.getLogger(__name__)


class JobServices:
    """Job-wide coordination of sources and sinks. Any thread."""

    def __init__(
        self,
        job_name: str = "",
        job_id: str = "",
        collected: CollectedRows | None = None,
        lineage: str = "",
        part: JobPart | None = None,
    ) -> None:
        self.job_name = job_name
        self.job_id = job_id
        #: The job and those whose snapshots it owns.
        self.lineage = lineage or job_id
        #: Where the job is a part of a larger one.
        self._part = part
        #: Rows for the program that asked.
        self.collected = CollectedRows(held=False) if collected is None else collected
        #: How far the sources are, where those ahead wait for the others.
        self.alignment = AlignmentGroups()
        self._lock = threading.Lock()
        self._sources: dict[str, SourceCoordinator] = {}
        self._discovery: Discovery | None = None
        self._restored_splits: dict[str, list[Split]] = {}
        self._restored_enumerators: dict[str, bytes] = {}
        self._sinks: dict[str, _Sink] = {}
        self._restored_committers: dict[str, bytes] = {}
        self._covered = False

    @property
    def one_batch(self) -> bool:
        """Whether the job does one batch of a stream, behind which others follow."""
        return self._part is not None and self._part.one_batch

    # -- sources

    def restore_splits(self, uid: str, splits: Sequence[Split]) -> None:
        """The unfinished splits of a snapshot, over all old subtasks; before the tasks start."""
        self._restored_splits[uid] = list(splits)

    def splits_of(
        self, uid: str, subtask: int, parallelism: int, create_enumerator: Callable[[], SplitEnumerator]
    ) -> list[Split]:
        """The splits of one source subtask; the first to ask runs the enumerator for all."""
        with self._lock:
            if uid not in self._sources:
                # What is restored stays until this has worked: a reader that fails here may begin again.
                part = self._part
                given = None if part is None else part.splits.get(uid)
                self._sources[uid] = SourceCoordinator(
                    uid,
                    create_enumerator() if part is None or given is None else GivenSplits(given, part.reader),
                    parallelism,
                    self._restored_splits.get(uid),
                    self._restored_enumerators.get(uid),
                )
            return self._sources[uid].first(subtask)

    def follow_splits(self, uid: str, subtask: int, clock: Clock, wake: Callable[[], None]) -> bool:
        """Whether more splits may come while the job runs; then ``wake`` is called for new ones (any thread)."""
        coordinator = self._sources[uid]
        if coordinator.interval_ms is None:
            return False
        with self._lock:
            if self._discovery is None:
                self._discovery = Discovery(self.job_name, clock)
            coordinator.join(subtask, wake)
            self._discovery.add(coordinator)
        return True

    def new_splits(self, uid: str, subtask: int, passed: int) -> list[Split]:
        """Splits that were found for a subtask. ``passed``: number of the last barrier that passed it."""
        return self._sources[uid].take(subtask, passed)

    def splits_known(self, uid: str, subtask: int) -> bool:
        """Whether a subtask has every split that was there when the job started."""
        return self._sources[uid].all_taken(subtask)

    def unfollow_splits(self, uid: str, subtask: int) -> None:
        """A subtask takes no more; behind the last one nobody looks for splits any more."""
        with self._lock:
            coordinator = self._sources.get(uid)
            if coordinator is None or self._discovery is None:
                return
            coordinator.leave(subtask)
            if not coordinator.followed:
                self._discovery.remove(coordinator)

    def snapshot_enumerators(self, checkpoint_id: int) -> dict[str, bytes]:
        """State of the enumerators that have one, when a checkpoint is triggered, before its barriers are there."""
        with self._lock:
            sources = dict(self._sources)
        return {uid: state for uid, source in sources.items() if (state := source.snapshot(checkpoint_id))}

    def restore_enumerators(self, states: Mapping[str, bytes]) -> None:
        """State of the enumerators of a snapshot; before the tasks start."""
        self._restored_enumerators.update(states)

    # -- sinks

    def add_committables(
        self,
        uid: str,
        create_committer: Callable[[], Committer | None],
        new: list[Committable],
        checkpoint_id: int | None = None,
        task: tuple[int, int] | None = None,
    ) -> None:
        """What one sink subtask prepared (possibly nothing): at a barrier, or, without a number, at its end of input.

        Args:
            task: vertex and subtask that ended.
        """
        with self._lock:
            if uid not in self._sinks:
                committer = create_committer()
                if committer is None:
                    return
                self._sinks[uid] = _Sink(committer)
                if uid in self._restored_committers:
                    committer.restore(self._restored_committers.pop(uid))
            sink = self._sinks[uid]
            if checkpoint_id is None:
                sink.ended.append((task, new))
            else:
                sink.prepared.setdefault(checkpoint_id, []).append((task, new))

    @property
    def has_committers(self) -> bool:
        """Whether a sink makes its results visible by commits."""
        return bool(self._sinks)

    def prepared(self, checkpoint_id: int, finished: set[tuple[int, int]]) -> dict[str, list[bytes]]:
        """Per sink what stands to be committed with a checkpoint, in order of preparation.

        ``finished``: tasks that had ended before the barrier: what they prepared at their end belongs to it.
        """
        with self._lock:
            found = {}
            for uid, sink in self._sinks.items():
                left = []
                for task, new in sink.ended:
                    if task in finished:
                        sink.prepared.setdefault(checkpoint_id, []).append((task, new))
                    else:
                        left.append((task, new))
                sink.ended = left
                found[uid] = [one.data for one in sink.up_to(checkpoint_id)]
            return found

    def snapshot_committers(self) -> dict[str, bytes]:
        """What committers remember beside their committables."""
        with self._lock:
            sinks = dict(self._sinks)
        return {uid: state for uid, sink in sinks.items() if (state := sink.committer.snapshot())}

    def commit_again(self, uid: str, committer: Committer, committables: list[Committable]) -> None:
        """What a restored snapshot says was prepared: commit it, as it may not have been before the failure.

        The committer goes on with the job. Before the tasks start.
        """
        if uid in self._restored_committers:
            committer.restore(self._restored_committers.pop(uid))
        self._sinks[uid] = _Sink(committer)
        committer.commit(committables, end_of_input=False)

    def restore_committers(self, states: Mapping[str, bytes]) -> None:
        """Give committers what they remembered; before the tasks start."""
        self._restored_committers.update(states)

    def commit(self, checkpoint_id: int) -> None:
        """A checkpoint is complete: what it covers becomes visible. One caller at a time."""
        self.collected.show(checkpoint_id)
        with self._lock:
            sinks = list(self._sinks.values())
            sources = list(self._sources.values())
        for source in sources:
            source.completed(checkpoint_id)
        covered: dict[_Sink, list[Committable]] = {}
        for sink in sinks:
            with self._lock:
                # Should a commit fail, the restore from this checkpoint repeats it: none of it may be removed.
                covered[sink] = sink.up_to(checkpoint_id)
                for number in [number for number in sink.prepared if number <= checkpoint_id]:
                    del sink.prepared[number]
        for sink, committables in covered.items():
            sink.committer.commit(committables, end_of_input=False)
            # Whatever writers that went back had prepared, the committer has removed it by now.
            sink.taken_back.clear()

    def everything_prepared(self) -> dict[str, list[bytes]]:
        """Per sink all that stands to be committed, once every task has ended."""
        return {uid: [one.data for one in sink.everything()] for uid, sink in self._sinks.items()}

    def cover_all(self) -> None:
        """A complete checkpoint holds all that stands to be committed: a failure removes none of it."""
        self._covered = True

    def commit_all(self) -> None:
        """Every task of the job succeeded: make all results visible, or hand them to the larger job."""
        self.collected.show_all()
        if self._part is not None:
            self._part.committables.update(self.everything_prepared())
            return
        for sink in self._sinks.values():
            sink.committer.commit(sink.everything(), end_of_input=True)

    # -- going back

    def go_back(
        self,
        tasks: Collection[tuple[int, int]],
        operators: Iterable[tuple[str, int]],
        checkpoint_id: int | None,
        splits: Callable[[str, int], list[Split] | None],
    ) -> None:
        """Some tasks go back to a checkpoint, or to where the job began: forget what they did since.

        They have ended, and no checkpoint is under way.

        Args:
            tasks: by vertex and subtask.
            operators: of these tasks, by uid and subtask.
            checkpoint_id: None: where the job began.
            splits: those of a source's reader (uid, subtask) at the checkpoint; None: those that it began with.
        """
        operators = list(operators)
        self.collected.go_back(checkpoint_id or 0, operators)
        with self._lock:
            sources, sinks = dict(self._sources), list(self._sinks.values())
        for uid, subtask in operators:
            if uid in sources:
                sources[uid].go_back(subtask, checkpoint_id, splits(uid, subtask))
        for sink in sinks:
            with self._lock:
                sink.take_back(tasks, checkpoint_id or 0)
            # Also where nothing was prepared: a writer may have begun files.
            sink.committer.take_back()

    def abort_all(self) -> None:
        """The job failed or was cancelled: remove what was prepared and is in no complete checkpoint."""
        if self._covered:
            return
        for uid, sink in self._sinks.items():
            try:
                sink.committer.abort([*sink.taken_back, *sink.everything()])
            except Exception:
                # The job's own failure is what the user must see.
                logger.exception("job=%s op=%s: removing prepared results failed", self.job_id, uid)


#: A task (vertex and subtask; None: nobody knows) with what it prepared at a time.
_Prepared: TypeAlias = "tuple[tuple[int, int] | None, list[Committable]]"


@dataclass(slots=True, eq=False)
class _Sink:
    """One sink's committer, what stands to be committed by checkpoint, and what ended subtasks prepared."""

    committer: Committer
    prepared: dict[int, list[_Prepared]] = field(default_factory=dict)
    ended: list[_Prepared] = field(default_factory=list)
    #: What writers prepared that went back since; nobody commits it.
    taken_back: list[Committable] = field(default_factory=list)

    def up_to(self, checkpoint_id: int) -> list[Committable]:
        """What was prepared at barriers up to this one, in order."""
        numbers = sorted(number for number in self.prepared if number <= checkpoint_id)
        return [one for number in numbers for _, new in self.prepared[number] for one in new]

    def everything(self) -> list[Committable]:
        """All of it, in order."""
        found = self.up_to(max(self.prepared, default=0))
        return found + [one for _, new in self.ended for one in new]

    def take_back(self, tasks: Collection[tuple[int, int]], checkpoint_id: int) -> None:
        """Nobody commits what some tasks prepared behind a checkpoint."""
        gone: list[Committable] = []

        def left(prepared: list[_Prepared]) -> list[_Prepared]:
            gone.extend(one for task, new in prepared if task in tasks for one in new)
            return [one for one in prepared if one[0] not in tasks]

        for number in [number for number in self.prepared if number > checkpoint_id]:
            self.prepared[number] = left(self.prepared[number])
        self.ended = left(self.ended)
        self.taken_back += gone


class SplitProgress:
    """Which splits one source subtask reads: the watermark assigner behind it in the chain keeps one watermark each.

    A reader that takes files one behind another must not let the first one's end decide the watermark: splits that have
    not started hold it back. Empty for sources without splits.
    """

    __slots__ = ("aligned", "bounded", "current", "paced", "side_by_side", "tells_watermarks", "unfinished")

    def __init__(self) -> None:
        #: The subtask in its watermark group, if it has one.
        self.aligned: AlignedSource | None = None
        self.bounded = False
        self.current: str | None = None
        #: Rows come at a rate, and not as fast as they are read.
        self.paced = False
        #: All splits are read at the same time: one that gives no rows has none for now.
        self.side_by_side = False
        #: The source itself has said how far event time is.
        self.tells_watermarks = False
        self.unfinished: set[str] = set()
