"""Broadcast state: maps that every subtask keeps for itself, the same in each, saved once for all of them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from flowsql_core.errors import ExecutionError
from flowsql_core.interpreter.object_bytes import object_bytes
from flowsql_core.stream import state as api
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.api import Pairs
from flowsql_runtime.state.declared_type import Check, map_checks_of

_PREFIX: Final = "broadcast."


class ReadOnlyState(api.ReadOnlyBroadcastState[Any, Any]):
    """What elements of the other stream see. What it lists is a copy that later changes do not touch."""

    __slots__ = ("_entries", "_name")

    def __init__(self, name: str, entries: dict[Any, Any]) -> None:
        self._name = name
        self._entries = entries

    def get(self, key: Any) -> Any:
        """The value under ``key``, or None."""
        return self._entries.get(key)

    def contains(self, key: Any) -> bool:
        """Whether there is a value under ``key``."""
        return key in self._entries

    def items(self) -> list[tuple[Any, Any]]:
        """Keys with values."""
        return list(self._entries.items())

    def keys(self) -> list[Any]:
        """Keys."""
        return list(self._entries)

    def values(self) -> list[Any]:
        """Values."""
        return list(self._entries.values())

    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self._entries

    def clear(self) -> None:
        """Refused."""
        self._refuse()

    def put(self, key: Any, value: Any) -> None:
        """Refused."""
        self._refuse()

    def put_all(self, dict_value: Pairs) -> None:
        """Refused."""
        self._refuse()

    def remove(self, key: Any) -> None:
        """Refused."""
        self._refuse()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refuse()

    def __delitem__(self, key: Any) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ExecutionError(
            "broadcast-state-read-only",
            f"the broadcast state '{self._name}' is read-only here: subtasks would no longer hold the same",
            hint="write it in process_broadcast_element",
        )


class WritableState(api.BroadcastState[Any, Any]):
    """What elements of the broadcast stream see."""

    __slots__ = ("_check_key", "_check_value", "_declared", "_entries", "_read")

    def __init__(self, name: str, entries: dict[Any, Any]) -> None:
        self._entries = entries
        self._read = ReadOnlyState(name, entries)
        self._declared: Any = None
        self._check_key: Check = None
        self._check_value: Check = None

    def declare(self, descriptor: api.MapStateDescriptor) -> None:
        """Check what is written from now on against the types that a descriptor declares."""
        if descriptor.type_info is not self._declared:
            self._declared = descriptor.type_info
            self._check_key, self._check_value = map_checks_of(descriptor)

    def get(self, key: Any) -> Any:
        """The value under ``key``, or None."""
        return self._entries.get(key)

    def contains(self, key: Any) -> bool:
        """Whether there is a value under ``key``."""
        return key in self._entries

    def items(self) -> list[tuple[Any, Any]]:
        """Keys with values."""
        return self._read.items()

    def keys(self) -> list[Any]:
        """Keys."""
        return self._read.keys()

    def values(self) -> list[Any]:
        """Values."""
        return self._read.values()

    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self._entries

    def put(self, key: Any, value: Any) -> None:
        """Put a value."""
        if self._check_key is not None:
            self._check_key(key)
        if self._check_value is not None:
            self._check_value(value)
        self._entries[key] = value

    def put_all(self, dict_value: Pairs) -> None:
        """Put several: a dict, or pairs of keys and values."""
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove a value."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove all."""
        self._entries.clear()


class BroadcastStates(api.OperatorStateStore):
    """The broadcast states of a subtask, by name.

    Args:
        names: the states that ``broadcast`` was given.
    """

    def __init__(self, names: Sequence[str]) -> None:
        entries: dict[str, dict[Any, Any]] = {name: {} for name in names}
        self._entries = entries
        self._writable = {name: WritableState(name, found) for name, found in entries.items()}
        self._readable = {name: ReadOnlyState(name, found) for name, found in entries.items()}

    def get_broadcast_state(self, state_descriptor: api.MapStateDescriptor) -> WritableState:
        """To write.

        Raises:
            ExecutionError: there is no broadcast state of this name.
        """
        state = self._writable[self._known(state_descriptor)]
        state.declare(state_descriptor)
        return state

    def readable(self, state_descriptor: api.MapStateDescriptor) -> ReadOnlyState:
        """To read; raises as :meth:`get_broadcast_state` does."""
        return self._readable[self._known(state_descriptor)]

    def _known(self, descriptor: api.MapStateDescriptor) -> str:
        name = descriptor.name
        if name not in self._entries:
            raise ExecutionError(
                "broadcast-state-unknown",
                f"there is no broadcast state '{name}' here",
                hint=f"give its descriptor to broadcast(); known are {', '.join(sorted(self._entries))}",
            )
        return name

    def save(self, ctx: OperatorContext) -> None:
        """Put everything where snapshots take it from.

        Raises:
            ExecutionError: a value cannot be pickled.
        """
        for name, entries in self._entries.items():
            ctx.operator_state.set_broadcast(_PREFIX + name, _pickled(name, entries))

    def restore(self, ctx: OperatorContext) -> None:
        """Take over what a snapshot held."""
        for name, entries in self._entries.items():
            saved = ctx.operator_state.broadcast(_PREFIX + name)
            if saved is not None:
                entries.update(pickle.loads(saved))


def _pickled(name: str, entries: dict[Any, Any]) -> bytes:
    try:
        return object_bytes(entries)
    except Exception as error:  # pickle raises many kinds
        raise ExecutionError(
            "state-not-serializable",
            f"the broadcast state '{name}' cannot be saved: {type(error).__name__}: {error}",
            hint="keep plain values in state",
        ) from error
