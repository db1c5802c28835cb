"""Windows that grow together: which windows of a key are open, and under which window each keeps its contents.

The contents of a merged window stay where those of one of its parts were, so that merging moves as little as possible.

Source: Flink, ``MergingWindowSet``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowsql_core.stream.window import MergingWindowAssigner

#: Called with (the new window, the windows merged into it, where its contents stay, contents to move there).
Merged = Callable[[Any, list[Any], Any, list[Any]], None]


class _Groups(MergingWindowAssigner.MergeCallback[Any]):
    """Notes which windows an assigner merges."""

    def __init__(self) -> None:
        self.found: dict[Any, list[Any]] = {}

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        """These become that."""
        self.found[merge_result] = list(to_be_merged)


class MergingWindows:
    """Open windows by key token: window -> the window that its contents stand under."""

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], entries: dict[Any, dict[Any, Any]]) -> None:
        self._assigner = assigner
        self._entries = entries

    def state_window(self, token: Any, window: Any) -> Any | None:
        """Where the contents of an open window stand; None for one that is not open."""
        return self._entries.get(token, {}).get(window)

    def retire(self, token: Any, window: Any) -> None:
        """A window is over."""
        open_windows = self._entries.get(token)
        if open_windows is not None:
            open_windows.pop(window, None)
            if not open_windows:
                del self._entries[token]

    def add(self, token: Any, new: Any, merged: Merged) -> Any:
        """Open a window, merging what it touches; answers the window that it became part of."""
        mapping = self._entries.setdefault(token, {})
        if new in mapping:
            return new
        groups = _Groups()
        self._assigner.merge_windows([*mapping, new], groups)
        result, joined = new, False
        for cover, group in groups.found.items():
            if new in group:
                joined, result = True, cover
                group.remove(new)
            if not group:
                continue
            homes = [mapping.pop(window) for window in group if window in mapping]
            home, others = homes[0], homes[1:]
            mapping[cover] = home
            if group != [cover]:
                merged(cover, group, home, others)
        if not joined:
            mapping[new] = new
        return result
