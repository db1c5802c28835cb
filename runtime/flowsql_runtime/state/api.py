"""Row-wise state of user functions: value, list, map, reducing and aggregating state.

A handle is made once and reads the current slot (key, or key and window) out of a cell that its operator sets before
each call: no object is made per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from flowsql_core.clock import Clock
from flowsql_core.errors import ExecutionError
from flowsql_core.stream import state as api
from flowsql_runtime.state.backend import KeyedStateBackend
from flowsql_runtime.state.declared_type import Check, check_of, map_checks_of
from flowsql_runtime.state.object_store import Expiry, ObjectStore

#: What ``put_all`` takes: PyFlink says a dict and walks through pairs.
Pairs = dict[Any, Any] | Iterable[tuple[Any, Any]]

#: Stands in the cell where there is no key: in ``open`` and ``close``.
NO_SLOT: Final = object()


class _NoKey:
    """Stands in the cell where elements have no key: every look into keyed state says so."""

    def __hash__(self) -> int:
        raise ExecutionError(
            "no-key",
            "keyed state is asked for where there is no key: an element of the broadcast stream",
            hint="use the broadcast state there, and keyed state in process_element or on_timer",
        )


NO_KEY: Final = _NoKey()

#: The current slot, in a list that operator and handles share.
Cell = list[Any]
Entries = dict[Any, Any]


class StoredValueState(api.ValueState[Any]):
    """One value a slot."""

    __slots__ = ("_cell", "_check", "_entries", "_get")

    def __init__(self, cell: Cell, entries: Entries, check: Check = None) -> None:
        self._cell = cell
        self._check = check
        self._entries = entries
        self._get = entries.get

    def value(self) -> Any:
        """The value, or None."""
        return self._get(self._cell[0])

    def update(self, value: Any) -> None:
        """Put a value; None removes it."""
        if value is None:
            self.clear()
        else:
            if self._check is not None:
                self._check(value)
            self._entries[self._cell[0]] = value

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)


class StoredListState(api.ListState[Any]):
    """A list a slot; a list of no values is no entry."""

    __slots__ = ("_cell", "_check", "_entries")

    def __init__(self, cell: Cell, entries: Entries, check: Check = None) -> None:
        self._cell = cell
        self._check = check
        self._entries = entries

    def get(self) -> list[Any]:
        """The values, in a list that later changes do not touch."""
        return list(self._entries.get(self._cell[0], ()))

    def add(self, value: Any) -> None:
        """Append."""
        if self._check is not None:
            self._check(value)
        found = self._entries.get(self._cell[0])
        if found is None:
            self._entries[self._cell[0]] = [value]
        else:
            found.append(value)

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several."""
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any]) -> None:
        """Put the whole list."""
        kept = list(values)
        if self._check is not None:
            for value in kept:
                self._check(value)
        if kept:
            self._entries[self._cell[0]] = kept
        else:
            self.clear()

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)

    def merge_slots(self, target: Any, sources: Sequence[Any]) -> None:
        """Append the lists of other slots, which are removed."""
        merged = [value for slot in (target, *sources) for value in self._entries.pop(slot, ())]
        if merged:
            self._entries[target] = merged


class StoredMapState(api.MapState[Any, Any]):
    """A map a slot; an empty map is no entry."""

    __slots__ = ("_cell", "_check_key", "_check_value", "_entries")

    def __init__(self, cell: Cell, entries: Entries, check_key: Check = None, check_value: Check = None) -> None:
        self._cell = cell
        self._check_key = check_key
        self._check_value = check_value
        self._entries = entries

    def get(self, key: Any) -> Any:
        """The value under ``key``, or None."""
        found = self._entries.get(self._cell[0])
        return None if found is None else found.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Put a value."""
        if self._check_key is not None:
            self._check_key(key)
        if self._check_value is not None:
            self._check_value(value)
        found = self._entries.get(self._cell[0])
        if found is None:
            self._entries[self._cell[0]] = {key: value}
        else:
            found[key] = value

    def put_all(self, dict_value: Pairs) -> None:
        """Put several: a dict, or pairs of keys and values."""
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove a value."""
        found = self._entries.get(self._cell[0])
        if found is not None:
            found.pop(key, None)
            if not found:
                self.clear()

    def contains(self, key: Any) -> bool:
        """Whether there is a value."""
        return key in self._entries.get(self._cell[0], ())

    def items(self) -> list[tuple[Any, Any]]:
        """Keys with values, in a list that later changes do not touch."""
        return list(self._entries.get(self._cell[0], {}).items())

    def keys(self) -> list[Any]:
        """Keys, in a list that later changes do not touch."""
        return list(self._entries.get(self._cell[0], ()))

    def values(self) -> list[Any]:
        """Values, in a list that later changes do not touch."""
        return list(self._entries.get(self._cell[0], {}).values())

    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return self._cell[0] not in self._entries

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)


class StoredReducingState(api.ReducingState[Any]):
    """What a function made of the values added."""

    __slots__ = ("_cell", "_check", "_entries", "_reduce")

    def __init__(self, cell: Cell, entries: Entries, reduce_function: Any, check: Check = None) -> None:
        self._cell = cell
        self._check = check
        self._entries = entries
        self._reduce = getattr(reduce_function, "reduce", reduce_function)

    def get(self) -> Any:
        """The reduction, or None."""
        return self._entries.get(self._cell[0])

    def add(self, value: Any) -> None:
        """Reduce with one more value; None removes all."""
        slot = self._cell[0]
        if value is None:
            self._entries.pop(slot, None)
            return
        if slot in self._entries:
            value = self._reduce(self._entries[slot], value)
        if self._check is not None:
            self._check(value)
        self._entries[slot] = value

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)

    def merge_slots(self, target: Any, sources: Sequence[Any]) -> None:
        """Reduce with those of other slots, which are removed."""
        for slot in sources:
            if slot in self._entries:
                value = self._entries.pop(slot)
                present = target in self._entries
                self._entries[target] = self._reduce(self._entries[target], value) if present else value


class StoredAggregatingState(api.AggregatingState[Any, Any]):
    """An accumulator, read through its function."""

    __slots__ = ("_cell", "_check", "_entries", "_function")

    def __init__(self, cell: Cell, entries: Entries, function: Any, check: Check = None) -> None:
        self._cell = cell
        self._check = check
        self._entries = entries
        self._function = function

    def get(self) -> Any:
        """The result, or None."""
        slot = self._cell[0]
        return self._function.get_result(self._entries[slot]) if slot in self._entries else None

    def add(self, value: Any) -> None:
        """Fold one more value in; None removes all."""
        slot = self._cell[0]
        if value is None:
            self._entries.pop(slot, None)
            return
        found = self._entries[slot] if slot in self._entries else self._function.create_accumulator()
        made = self._function.add(value, found)
        if self._check is not None:
            self._check(made)
        self._entries[slot] = made

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)

    def merge_slots(self, target: Any, sources: Sequence[Any]) -> None:
        """Merge the accumulators of other slots, which are removed."""
        for slot in sources:
            if slot in self._entries:
                other = self._entries.pop(slot)
                present = target in self._entries
                self._entries[target] = self._function.merge(self._entries[target], other) if present else other


class ObjectStates:
    """The row-wise states of one operator in one scope, by name; made when first asked for.

    Args:
        backend: where they are saved.
        scope: of the names in snapshots.
        cell: the current slot.
        clock: for state that expires.
        namespaced: slots are pairs of key and window.
    """

    def __init__(
        self, backend: KeyedStateBackend, scope: str, cell: Cell, clock: Clock, namespaced: bool = False
    ) -> None:
        self._backend = backend
        self._scope = scope
        self._cell = cell
        self._clock = clock
        self._namespaced = namespaced
        self._known: dict[str, tuple[type, Any]] = {}
        self._stores: list[ObjectStore] = []
        self._recorded: list[Callable[[int], None]] = []

    def handle(self, descriptor: api.StateDescriptor) -> Any:
        """The state that a descriptor names.

        Raises:
            ExecutionError: the name is taken by a state of another kind.
        """
        found = self._known.get(descriptor.name)
        if found is None:
            found = (type(descriptor), self._make(descriptor))
            self._known[descriptor.name] = found
        elif found[0] is not type(descriptor):
            raise ExecutionError(
                "state-kind",
                f"the state '{descriptor.name}' is described as {found[0].__name__} and as {type(descriptor).__name__}",
                hint="give states of different kinds different names",
            )
        return found[1]

    def refuse_without_key(self) -> None:
        """After ``open``: whoever wrote state there wrote it under no key.

        Raises:
            ExecutionError: somebody did.
        """
        for store in self._stores:
            if NO_SLOT in store.entries:
                raise ExecutionError(
                    "no-key",
                    f"the state '{store.name}' was written in open(), where there is no current key",
                    hint="write state in process_element or on_timer",
                )

    def forget_all(self) -> None:
        """Remove what is in memory under every name and slot."""
        for store in self._stores:
            store.entries.clear()

    def recorded(self, records: int) -> None:
        """The operator has dealt with records."""
        for recorded in self._recorded:
            recorded(records)

    def store(self, name: str, expiry: Expiry | None = None) -> Entries:
        """The entries under a name; ``expiry``: of objects that expire."""
        store = ObjectStore(name, self._backend.max_parallelism, self._namespaced, expiry)
        self._backend.register_objects(f"{self._scope}.{name}", store)
        self._stores.append(store)
        return store.entries

    def _make(self, descriptor: api.StateDescriptor) -> Any:
        ttl = descriptor.ttl_config
        if ttl is not None:
            # Few programs let state expire.
            from flowsql_runtime.state.api_ttl import expiring_state

            made, life = expiring_state(descriptor, ttl, self._cell, self._clock, self.store)
            self._recorded.append(life.recorded)
            return made
        entries = self.store(descriptor.name)
        match descriptor:
            case api.ValueStateDescriptor():
                return StoredValueState(self._cell, entries, check_of(descriptor))
            case api.ListStateDescriptor():
                return StoredListState(self._cell, entries, check_of(descriptor))
            case api.MapStateDescriptor():
                return StoredMapState(self._cell, entries, *map_checks_of(descriptor))
            case api.ReducingStateDescriptor():
                reduce = descriptor.get_reduce_function()
                return StoredReducingState(self._cell, entries, reduce, check_of(descriptor))
            case api.AggregatingStateDescriptor():
                return StoredAggregatingState(self._cell, entries, descriptor.get_agg_function(), check_of(descriptor))
        raise ExecutionError("state-kind", f"a state of {type(descriptor).__name__} does not exist")
