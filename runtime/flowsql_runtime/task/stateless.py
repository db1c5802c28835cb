"""State of operators that keep none: lets a stateless job run without loading any state machinery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowsql_core.errors import InternalError


class NoKeyedState:
    """Stands in for a keyed state backend."""

    nbytes = 0
    rows_ahead = 0

    def snapshot_async(self, native: bool = False) -> None:
        """Nothing."""

    def restore(self, tables: Mapping[str, Any], key_groups: range, native: Sequence[Any] = ()) -> None:
        """Nothing can be taken over."""
        if tables or native:
            raise InternalError(f"state {sorted(tables)} was saved by an operator that keeps none")

    def opened(self) -> None:
        """No stores were made."""

    def settle(self) -> None:
        """Nothing can leave memory."""

    def close(self) -> None:
        """There are no files."""

    def __getattr__(self, name: str) -> Any:
        raise InternalError(
            f"'{name}' was asked of a stateless operator: its line in operators/registry.py lacks state"
        )


class NoOperatorState:
    """Stands in for an operator state backend."""

    def lists(self) -> dict[str, tuple[bytes, ...]]:
        """Nothing."""
        return {}

    def unions(self) -> dict[str, tuple[bytes, ...]]:
        """Nothing."""
        return {}

    def broadcasts(self) -> dict[str, bytes]:
        """Nothing."""
        return {}

    def restore(
        self,
        lists: Mapping[str, Sequence[bytes]],
        unions: Mapping[str, Sequence[bytes]],
        broadcasts: Mapping[str, bytes],
    ) -> None:
        """Operators that only override ``snapshot_state`` read their part of the snapshot in ``initialize_state``."""
