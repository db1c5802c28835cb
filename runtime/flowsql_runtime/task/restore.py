"""What a job starts from, as its deployment and its tasks see it (``checkpoint/recovery.py`` reads it from bytes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from flowsql_core.graph.job import Partitioning
from flowsql_runtime.network.in_flight import InFlight
from flowsql_runtime.operators.base import OperatorSnapshot

#: A stopped job: the snapshots of all subtasks of each operator, by operator uid.
JobSnapshot: TypeAlias = Mapping[str, Sequence[OperatorSnapshot]]


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """A subtask among its equals.

    ``inputs``: how the rows of each are dealt out, and by how many producers. ``own``: it takes back what the same
    subtask had, as others go on with theirs; else all that was there is dealt out anew.
    """

    subtask: int
    parallelism: int
    key_groups: range
    max_parallelism: int
    inputs: tuple[tuple[Partitioning, int], ...] = ()
    own: bool = False


@dataclass(frozen=True, slots=True)
class RestoredTask:
    """What one new subtask takes over: by operator uid its state, and what was on its way to it."""

    operators: Mapping[str, OperatorSnapshot]
    in_flight: InFlight | None = None


class RestoredState(Protocol):
    """What a job starts from, as its deployment asks for it."""

    def finished(self, uids: Sequence[str], subtask: int | None = None) -> bool:
        """Whether these operators, which share a task, had all ended: in one subtask, or in all."""
        ...

    def operator_lists(self, uid: str, name: str, subtask: int | None = None) -> list[bytes] | None:
        """A list state of one old subtask, or over all; None where the operator has no state."""
        ...

    def task(self, uids: Sequence[str], place: TaskPlace) -> RestoredTask:
        """What one new subtask of these operators, the head first, takes over. Called in the task's thread."""
        ...

    def max_parallelism(self, uid: str) -> int | None:
        """Number of key groups that the operator's state was dealt out by; None where it has no state."""
        ...


class NothingRestored:
    """A job that starts from the beginning."""

    def finished(self, uids: Sequence[str], subtask: int | None = None) -> bool:
        """Nothing has run yet."""
        return False

    def operator_lists(self, uid: str, name: str, subtask: int | None = None) -> list[bytes] | None:
        """No state."""
        return None

    def task(self, uids: Sequence[str], place: TaskPlace) -> RestoredTask:
        """No state."""
        return RestoredTask({})

    def max_parallelism(self, uid: str) -> int | None:
        """No state."""
        return None
