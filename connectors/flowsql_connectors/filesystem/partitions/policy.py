"""What happens when a partition is complete: a success file, or a class of the user."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable

from flowsql_connectors.filesystem.named_class import instance_of
from flowsql_core.errors import BindError
from flowsql_core.record import record


@record
class PartitionContext:
    """A complete partition: its folder ``path``, ``keys`` and ``values`` in the order of the table's partition keys."""

    catalog: str
    database: str
    table: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    path: str


class PartitionCommitPolicy(ABC):
    """Told of every complete partition, at least once: after a failure the same one comes again.

    A class of the user is named by ``sink.partition-commit.policy.class`` as ``module.Class``; it is made with the
    texts of ``sink.partition-commit.policy.class.parameters``.
    """

    @abstractmethod
    def commit(self, context: PartitionContext) -> None:
        """The partition's files are visible, and no more are expected."""


@record
class SuccessFilePolicy(PartitionCommitPolicy):
    """An empty file that tells readers of the folder. ``touch`` writes one."""

    name: str
    touch: Callable[[str], None]

    def commit(self, context: PartitionContext) -> None:
        """Write it, or write it again."""
        self.touch(os.path.join(context.path, self.name))


def custom_policy(name: str | None, parameters: tuple[str, ...]) -> PartitionCommitPolicy:
    """An instance of the user's class.

    Raises:
        BindError: there is no such class, or it is no policy.
    """
    if name is None:
        raise BindError(
            "missing-option",
            "'sink.partition-commit.policy.kind' = 'custom' needs 'sink.partition-commit.policy.class'.",
        )
    key = "sink.partition-commit.policy.class"
    made: PartitionCommitPolicy = instance_of(PartitionCommitPolicy, key, name, parameters)
    return made
