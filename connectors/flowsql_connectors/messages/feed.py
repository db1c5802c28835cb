"""What a source of messages gives: bytes, with what is told beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from flowsql_connectors.spi.counters import Lose
from flowsql_core.clock import Clock
from flowsql_core.record import record


@record
class Arrived:
    """Messages in the order in which they came.

    ``values``: bytes of each, None: NULL; or an Arrow binary array. ``metadata``: by key, a value a message, None where
    it has none; points in time are milliseconds since 1970; what is left out is NULL. ``positions``: behind each
    message, for feeds that replay: what JSON can hold. ``ends``: nothing comes behind these, of which there may be
    none; not of feeds that acknowledge.
    """

    values: Any
    metadata: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    positions: Sequence[Any] | None = None
    ends: bool = False

    def part(self, start: int, stop: int) -> Arrived:
        """Messages [start, stop)."""
        metadata = {key: told[start:stop] for key, told in self.metadata.items()}
        positions = None if self.positions is None else self.positions[start:stop]
        return Arrived(self.values[start:stop], metadata, positions, self.ends)


@record
class FeedContext:
    """What a feed is made with.

    ``metadata``: keys that are read; others need not be given. ``checkpointed``: the job has checkpoints, so ``kept``
    will be called. ``lose``: counts what was left out, see :mod:`flowsql_connectors.spi.counters`.
    """

    split: str
    subtask: int
    metadata: tuple[str, ...]
    checkpointed: bool
    configuration: Mapping[str, str]
    clock: Clock
    lose: Lose
    #: What the format says against some messages, in a sentence; None: the table takes them. Any thread.
    fault: Callable[[Sequence[bytes]], str | None]


class MessageFeed(ABC):
    """Messages of one split. All methods are called in one thread, which is the feed's own."""

    #: Whether ``open`` goes on behind a position that ``Arrived`` gave.
    replays: bool = False
    #: Whether ``receive(0)`` answers at once. Else what one call gives is decoded by itself.
    gathers: ClassVar[bool] = True

    @abstractmethod
    def open(self, position: Any) -> None:
        """Connect; again behind a failure and ``close``.

        Args:
            position: behind the last message that is not wanted again; None where there is none.

        Raises:
            ConnectorError: ``retryable`` if another try may help.
        """

    @abstractmethod
    def receive(self, wait_s: float) -> Arrived | None:
        """The next messages, all that are there, or one; None: nothing came for about so many seconds.

        Raises:
            ConnectorError: the connection is lost (``retryable``), or the other side refuses.
        """

    def kept(self, count: int) -> None:
        """A complete checkpoint holds the first ``count`` messages that ``receive`` gave since this object was made.

        Raises:
            ConnectorError: as ``receive``.
        """

    def caught_up(self) -> bool:
        """Whether all was received that was there when the feed was opened.

        Asked behind each ``receive``; for ``flowsql.trigger``, where the connector says ``tells_backlog``.
        """
        return False

    def keep_alive(self) -> None:
        """The queue is full, and nothing is received for now: called about ten times a second meanwhile."""

    @abstractmethod
    def place(self, number: int) -> str:
        """Where a message is, in words, for what is said of a bad one.

        Args:
            number: of the message, from 0, among those that this object gave.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection, also of one that was lost or never made. Must not fail."""
