"""What a job starts from, as its deployment and its tasks see it (``checkpoint/recovery.py`` reads it from bytes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from flowsql_runtime.operators.base import OperatorSnapshot

#: A stopped job: the snapshots of all subtasks of each operator, by operator uid.
JobSnapshot: TypeAlias = Mapping[str, Sequence[OperatorSnapshot]]


class RestoredState(Protocol):
    """What a job starts from, as its deployment asks for it."""

    def finished(self, uids: Sequence[str]) -> bool:
        """Whether these operators, which share a task, had all ended."""
        ...

    def operator_lists(self, uid: str, name: str) -> list[bytes] | None:
        """A list state over all old subtasks; None where the operator has no state."""
        ...

    def task(
        self, uids: Sequence[str], subtask: int, parallelism: int, key_groups: range
    ) -> Mapping[str, OperatorSnapshot]:
        """What the operators of one new subtask take over, by uid. Called in the task's thread."""
        ...

    def max_parallelism(self, uid: str) -> int | None:
        """Number of key groups that the operator's state was dealt out by; None where it has no state."""
        ...


class NothingRestored:
    """A job that starts from the beginning."""

    def finished(self, uids: Sequence[str]) -> bool:
        """Nothing has run yet."""
        return False

    def operator_lists(self, uid: str, name: str) -> list[bytes] | None:
        """No state."""
        return None

    def task(
        self, uids: Sequence[str], subtask: int, parallelism: int, key_groups: range
    ) -> Mapping[str, OperatorSnapshot]:
        """No state."""
        return {}

    def max_parallelism(self, uid: str) -> int | None:
        """No state."""
        return None
