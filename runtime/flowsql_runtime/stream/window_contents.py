"""What a window holds, and what its function makes of it: all elements, or what they were folded into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from flowsql_core.errors import InternalError
from flowsql_core.stream import functions as f
from flowsql_runtime.stream.base import UserFunction
from flowsql_runtime.stream.window_context import WindowContext

Entries = dict[Any, Any]


class WindowContents(ABC):
    """Contents by slot (key and window)."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    @abstractmethod
    def add(self, slot: Any, value: Any) -> None:
        """One more element."""

    @abstractmethod
    def elements(self, slot: Any) -> list[Any] | None:
        """What the window function gets; None when the window is empty."""

    @abstractmethod
    def merge(self, target: Any, sources: Sequence[Any]) -> None:
        """Move the contents of some slots into another."""

    def clear(self, slot: Any) -> None:
        """Throw away."""
        self.entries.pop(slot, None)


class AllElements(WindowContents):
    """Every element."""

    def add(self, slot: Any, value: Any) -> None:
        """Append."""
        found = self.entries.get(slot)
        if found is None:
            self.entries[slot] = [value]
        else:
            found.append(value)

    def elements(self, slot: Any) -> list[Any] | None:
        """All, in a list that the function may keep."""
        found = self.entries.get(slot)
        return None if found is None else found.copy()

    def merge(self, target: Any, sources: Sequence[Any]) -> None:
        """Append."""
        merged = [value for slot in (target, *sources) for value in self.entries.pop(slot, ())]
        if merged:
            self.entries[target] = merged


class Reduced(WindowContents):
    """What a ReduceFunction made of the elements."""

    def __init__(self, entries: Entries, function: UserFunction) -> None:
        super().__init__(entries)
        self._reduce = function.method("reduce")

    def add(self, slot: Any, value: Any) -> None:
        """Reduce."""
        self.entries[slot] = self._reduce(self.entries[slot], value) if slot in self.entries else value

    def elements(self, slot: Any) -> list[Any] | None:
        """The one."""
        return [self.entries[slot]] if slot in self.entries else None

    def merge(self, target: Any, sources: Sequence[Any]) -> None:
        """Reduce."""
        for slot in sources:
            if slot in self.entries:
                self.add(target, self.entries.pop(slot))


class Aggregated(WindowContents):
    """The accumulator of an AggregateFunction."""

    def __init__(self, entries: Entries, function: f.AggregateFunction) -> None:
        super().__init__(entries)
        self._function = function

    def add(self, slot: Any, value: Any) -> None:
        """Fold in."""
        found = self.entries[slot] if slot in self.entries else self._function.create_accumulator()
        self.entries[slot] = self._function.add(value, found)

    def elements(self, slot: Any) -> list[Any] | None:
        """The one result."""
        return [self._function.get_result(self.entries[slot])] if slot in self.entries else None

    def merge(self, target: Any, sources: Sequence[Any]) -> None:
        """Merge accumulators."""
        for slot in sources:
            if slot in self.entries:
                other = self.entries.pop(slot)
                present = target in self.entries
                self.entries[target] = self._function.merge(self.entries[target], other) if present else other


def evaluate(function: Any, key: Any, window: Any, context: WindowContext, elements: list[Any]) -> Iterable[Any] | None:
    """What a window function emits; without a function the elements themselves."""
    match function:
        case None:
            return elements
        case f.WindowFunction():
            return function.apply(key, window, elements)
        case f.ProcessWindowFunction():
            return function.process(key, context, elements)
        case f.AllWindowFunction():
            return function.apply(window, elements)
        case f.ProcessAllWindowFunction():
            return function.process(context, elements)
    raise InternalError(f"{type(function).__name__} is no window function")
