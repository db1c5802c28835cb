"""Elements that wait for their results, and what must not overtake them.

Source: Flink, ``OrderedStreamElementQueue`` and ``UnorderedStreamElementQueue``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias


class Entry:
    """An element in flight. ``results`` is None until they are there."""

    __slots__ = ("attempt", "deadline_ms", "results", "time", "value")

    def __init__(self, value: Any, time: int) -> None:
        self.value = value
        self.time = time
        self.results: Any = None
        #: Number of the current call.
        self.attempt = 1
        #: When it takes too long; None: never.
        self.deadline_ms: int | None = None


#: Something between two elements, a watermark for instance: called when its turn has come.
Mark: TypeAlias = Callable[[], None]


class ElementQueue(ABC):
    """Entries and marks in the order in which they came; entries leave once they are done."""

    def __init__(self) -> None:
        #: Entries that have not left.
        self.size = 0

    @abstractmethod
    def add(self, entry: Entry) -> None:
        """An element was handed to the function."""

    @abstractmethod
    def add_mark(self, mark: Mark) -> None:
        """Something that follows all elements so far."""

    @abstractmethod
    def done(self, entry: Entry) -> None:
        """The results of an entry are there."""

    @abstractmethod
    def take(self) -> Iterator[Entry | Mark]:
        """What may leave now, taken out one by one."""

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """All that have not left, in the order in which they came."""


class OrderedQueue(ElementQueue):
    """Results leave in the order of their elements."""

    def __init__(self) -> None:
        super().__init__()
        self._items: deque[Entry | Mark] = deque()

    def add(self, entry: Entry) -> None:
        """At the end."""
        self._items.append(entry)
        self.size += 1

    def add_mark(self, mark: Mark) -> None:
        """At the end."""
        self._items.append(mark)

    def done(self, entry: Entry) -> None:
        """It leaves when it is the first."""

    def take(self) -> Iterator[Entry | Mark]:
        """Up to the first entry that is not done."""
        while self._items:
            first = self._items[0]
            if isinstance(first, Entry):
                if first.results is None:
                    return
                self.size -= 1
            self._items.popleft()
            yield first

    def entries(self) -> Iterator[Entry]:
        """In order."""
        return (item for item in self._items if isinstance(item, Entry))


class _Segment:
    """The entries between two marks."""

    __slots__ = ("done", "waiting")

    def __init__(self) -> None:
        #: Without results, in the order in which they came (a dictionary keeps it).
        self.waiting: dict[Entry, None] = {}
        self.done: deque[Entry] = deque()


class UnorderedQueue(ElementQueue):
    """Results leave as they come, but never across a mark."""

    def __init__(self) -> None:
        super().__init__()
        self._segments: deque[_Segment | Mark] = deque([_Segment()])
        self._last: _Segment = self._segments[0]  # type: ignore[assignment]
        self._home: dict[Entry, _Segment] = {}

    def add(self, entry: Entry) -> None:
        """Into the last segment."""
        self._last.waiting[entry] = None
        self._home[entry] = self._last
        self.size += 1

    def add_mark(self, mark: Mark) -> None:
        """Behind the last segment; another one begins."""
        self._last = _Segment()
        self._segments += (mark, self._last)

    def done(self, entry: Entry) -> None:
        """It leaves when its segment is the first."""
        segment = self._home.pop(entry)
        del segment.waiting[entry]
        segment.done.append(entry)

    def take(self) -> Iterator[Entry | Mark]:
        """What is done in the first segment; where nothing waits there, what follows."""
        while True:
            first = self._segments[0]
            if isinstance(first, _Segment):
                while first.done:
                    self.size -= 1
                    yield first.done.popleft()
                if first.waiting or first is self._last:
                    return
                self._segments.popleft()
            else:
                self._segments.popleft()
                yield first

    def entries(self) -> Iterator[Entry]:
        """Segment by segment."""
        for segment in self._segments:
            if isinstance(segment, _Segment):
                yield from segment.done
                yield from segment.waiting
