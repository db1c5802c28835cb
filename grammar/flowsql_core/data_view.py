"""``ListView`` and ``MapView``: collections that an accumulator holds, or that are state of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """A collection in the accumulator of an aggregate function, or in the state of a process table function."""

    @abstractmethod
    def clear(self) -> None:
        """Remove everything."""


class ListView(DataView, Generic[T]):
    """A list."""

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """The values in order."""
        return self._list

    def add(self, value: T) -> None:
        """Add one."""
        self._list.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Add several."""
        self._list.extend(values)

    def clear(self) -> None:
        """Remove everything."""
        self._list = []

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ListView) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a list that changes

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapView(DataView, Generic[K, V]):
    """A map."""

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V:
        """The value of a key; KeyError where there is none."""
        return self._dict[key]

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of several keys."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Remove a key; KeyError where there is none."""
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """Whether a key has a value."""
        return key in self._dict

    def items(self) -> Iterable[tuple[K, V]]:
        """Keys with their values."""
        return _Entries(self, self._dict.items(), lambda item: item[0])

    def keys(self) -> Iterable[K]:
        """The keys."""
        return _Entries(self, self._dict.keys(), lambda key: key)

    def values(self) -> Iterable[V]:
        """The values."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """Whether there is no key."""
        return not self._dict

    def clear(self) -> None:
        """Remove everything."""
        self._dict.clear()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    __hash__ = None  # type: ignore[assignment]  # a map that changes

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _Entries(Generic[T]):
    """The keys, or the keys with their values, of a map; an iterator over them can remove the last one."""

    def __init__(self, view: MapView[Any, Any], entries: Collection[T], key: Callable[[T], Any]) -> None:
        self._view = view
        self._entries = entries
        self._key = key

    def __iter__(self) -> RemovingIterator[T]:
        return RemovingIterator(self._view, list(self._entries), self._key)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: object) -> bool:
        return entry in self._entries


class RemovingIterator(Iterator[T]):
    """An iterator over the entries that a map had when it began; ``remove`` takes the last one out of the map."""

    def __init__(self, view: MapView[Any, Any], entries: Iterable[T], key: Callable[[T], Any]) -> None:
        self._view = view
        self._left = iter(entries)
        self._key = key
        self._last: tuple[T] | None = None

    def __next__(self) -> T:
        entry = next(self._left)
        self._last = (entry,)
        return entry

    def remove(self) -> None:
        """Remove the entry that ``next`` gave last.

        Raises:
            RuntimeError: ``next`` was not called since the last removal.
        """
        if self._last is None:
            raise RuntimeError("remove() takes away what next() gave last: call next() before")
        self._view.remove(self._key(self._last[0]))
        self._last = None
