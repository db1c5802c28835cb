"""Row-wise state that expires (``StateTtlConfig``), by the clock.

Each value, list element and map entry stands with the moment when it was last touched. What expired is removed when it
is touched, by a sweep that looks at two slots with each write, and it is left out of snapshots.

Source: Flink, ``TtlValueState``, ``TtlListState``, ``TtlMapState``, ``TtlReducingState``, ``TtlAggregatingState``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowsql_core.clock import Clock
from flowsql_core.errors import ExecutionError
from flowsql_core.stream import state as api
from flowsql_runtime.state.declared_type import Check, check_of, map_checks_of

Cell = list[Any]
Entries = dict[Any, Any]
#: (value, when it was touched last)
Stamped = tuple[Any, int]


class _Lifetime:
    """When stamped values expire, and the sweep of what did: slots that nobody touches again must not stay."""

    __slots__ = ("_cleaned", "_clock", "_entries", "_to_sweep", "_ttl_ms", "shows_expired", "touched_by_reading")

    def __init__(self, config: api.StateTtlConfig, clock: Clock) -> None:
        self._clock = clock
        self._ttl_ms = config.ttl_ms
        self.touched_by_reading = config.get_update_type() is api.StateTtlConfig.UpdateType.OnReadAndWrite
        visibility = config.get_state_visibility()
        self.shows_expired = visibility is api.StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        self._entries: Entries = {}
        self._to_sweep: list[Any] = []

    def over(self, entries: Entries, cleaned: Callable[[Any], Any]) -> Entries:
        """The entries to sweep; ``cleaned`` says what lives of one, None for nothing."""
        self._entries = entries
        self._cleaned = cleaned
        return entries

    def sweep(self) -> None:
        """Look at two slots, each in its turn."""
        if not self._to_sweep:
            self._to_sweep = list(self._entries)
        for slot in self._to_sweep[-2:]:
            found = self._entries.get(slot)
            if found is not None:
                kept = self._cleaned(found)
                if kept is None:
                    del self._entries[slot]
                else:
                    self._entries[slot] = kept
        del self._to_sweep[-2:]

    def stamped(self, value: Any) -> Stamped:
        return value, self._clock.now_ms()

    def alive(self, found: Stamped) -> bool:
        return found[1] + self._ttl_ms > self._clock.now_ms()


class _Expiring:
    """One stamped value a slot."""

    def __init__(self, cell: Cell, entries: Entries, life: _Lifetime, check: Check) -> None:
        self._cell = cell
        self._entries = entries
        self._life = life
        self._check = check

    def _read(self) -> Any:
        """The value of the current slot, or None. One that expired is removed, and shown once more if wished."""
        slot = self._cell[0]
        found = self._entries.get(slot)
        if found is None:
            return None
        if not self._life.alive(found):
            del self._entries[slot]
            return found[0] if self._life.shows_expired else None
        if self._life.touched_by_reading:
            self._entries[slot] = self._life.stamped(found[0])
        return found[0]

    def _write(self, value: Any) -> None:
        if self._check is not None:
            self._check(value)
        self._life.sweep()
        self._entries[self._cell[0]] = self._life.stamped(value)

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)


class ExpiringValueState(_Expiring, api.ValueState[Any]):
    """One value a slot."""

    def value(self) -> Any:
        """The value, or None."""
        return self._read()

    def update(self, value: Any) -> None:
        """Put a value; None removes it."""
        if value is None:
            self.clear()
        else:
            self._write(value)


class ExpiringReducingState(_Expiring, api.ReducingState[Any]):
    """The reduction of what was added."""

    def __init__(self, cell: Cell, entries: Entries, life: _Lifetime, check: Check, function: Any) -> None:
        super().__init__(cell, entries, life, check)
        self._reduce = getattr(function, "reduce", function)

    def get(self) -> Any:
        """The reduction, or None."""
        return self._read()

    def add(self, value: Any) -> None:
        """Reduce with one more value; None removes all."""
        if value is None:
            self.clear()
            return
        found = self._read()
        self._write(value if found is None else self._reduce(found, value))


class ExpiringAggregatingState(_Expiring, api.AggregatingState[Any, Any]):
    """An accumulator, read through its function."""

    def __init__(self, cell: Cell, entries: Entries, life: _Lifetime, check: Check, function: Any) -> None:
        super().__init__(cell, entries, life, check)
        self._function = function

    def get(self) -> Any:
        """The result, or None."""
        found = self._read()
        return None if found is None else self._function.get_result(found)

    def add(self, value: Any) -> None:
        """Fold one more value in; None removes all."""
        if value is None:
            self.clear()
            return
        found = self._read()
        self._write(self._function.add(value, self._function.create_accumulator() if found is None else found))


class ExpiringListState(api.ListState[Any]):
    """A list a slot; each element expires by itself."""

    def __init__(self, cell: Cell, entries: Entries, life: _Lifetime, check: Check) -> None:
        self._cell = cell
        self._entries = entries
        self._life = life
        self._check = check

    def get(self) -> list[Any]:
        """The elements that live, in a list that later changes do not touch."""
        slot = self._cell[0]
        found: list[Stamped] = self._entries.get(slot, [])
        kept = [item for item in found if self._life.alive(item)]
        shown = found if self._life.shows_expired else kept
        values = [value for value, _ in shown]
        if self._life.touched_by_reading:
            kept = [self._life.stamped(value) for value, _ in kept]
        if kept:
            self._entries[slot] = kept
        else:
            self._entries.pop(slot, None)
        return values

    def add(self, value: Any) -> None:
        """Append."""
        if self._check is not None:
            self._check(value)
        self._life.sweep()
        self._entries.setdefault(self._cell[0], []).append(self._life.stamped(value))

    def add_all(self, values: Iterable[Any]) -> None:
        """Append several."""
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any]) -> None:
        """Put the whole list."""
        kept = list(values)
        self.clear()
        self.add_all(kept)

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)


class ExpiringMapState(api.MapState[Any, Any]):
    """A map a slot; each entry expires by itself."""

    def __init__(self, cell: Cell, entries: Entries, life: _Lifetime, check_key: Check, check_value: Check) -> None:
        self._cell = cell
        self._entries = entries
        self._life = life
        self._check_key = check_key
        self._check_value = check_value

    def get(self, key: Any) -> Any:
        """The value under ``key``, or None."""
        found: dict[Any, Stamped] | None = self._entries.get(self._cell[0])
        if found is None or key not in found:
            return None
        value = found[key][0]
        if not self._life.alive(found[key]):
            self.remove(key)
            return value if self._life.shows_expired else None
        if self._life.touched_by_reading:
            found[key] = self._life.stamped(value)
        return value

    def put(self, key: Any, value: Any) -> None:
        """Put a value."""
        if self._check_key is not None:
            self._check_key(key)
        if self._check_value is not None:
            self._check_value(value)
        self._life.sweep()
        self._entries.setdefault(self._cell[0], {})[key] = self._life.stamped(value)

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
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
        found = self._entries.get(self._cell[0], {})
        if key not in found:
            return False
        lives = self._life.alive(found[key])
        self.get(key)  # touches or removes it
        return lives or self._life.shows_expired

    def items(self) -> list[tuple[Any, Any]]:
        """Keys with values, in a list that later changes do not touch."""
        keys = list(self._entries.get(self._cell[0], ()))
        shown = self._life.shows_expired
        found = self._entries.get(self._cell[0], {})
        alive = [key for key in keys if shown or self._life.alive(found[key])]
        values = [found[key][0] for key in alive]
        for key in keys:
            self.get(key)  # touches what lives, removes what does not
        return list(zip(alive, values, strict=True))

    def keys(self) -> list[Any]:
        """Keys, in a list that later changes do not touch."""
        return [key for key, _ in self.items()]

    def values(self) -> list[Any]:
        """Values, in a list that later changes do not touch."""
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        """Whether nothing lives in it."""
        return not self.items()

    def clear(self) -> None:
        """Remove it."""
        self._entries.pop(self._cell[0], None)


def expiring_state(
    descriptor: api.StateDescriptor,
    config: api.StateTtlConfig,
    cell: Cell,
    clock: Clock,
    store: Callable[[str, Callable[[Any], Any]], Entries],
) -> Any:
    """The state of a descriptor with a lifetime; ``store`` makes its entries, of which snapshots keep what lives."""
    life = _Lifetime(config, clock)

    def one(found: Stamped) -> Any:
        return found if life.alive(found) else None

    def several(found: list[Stamped]) -> Any:
        return [item for item in found if life.alive(item)] or None

    def named(found: dict[Any, Stamped]) -> Any:
        return {key: item for key, item in found.items() if life.alive(item)} or None

    name = descriptor.name
    match descriptor:
        case api.ValueStateDescriptor():
            return ExpiringValueState(cell, life.over(store(name, one), one), life, check_of(descriptor))
        case api.ListStateDescriptor():
            return ExpiringListState(cell, life.over(store(name, several), several), life, check_of(descriptor))
        case api.MapStateDescriptor():
            return ExpiringMapState(cell, life.over(store(name, named), named), life, *map_checks_of(descriptor))
        case api.ReducingStateDescriptor():
            function = descriptor.get_reduce_function()
            return ExpiringReducingState(cell, life.over(store(name, one), one), life, check_of(descriptor), function)
        case api.AggregatingStateDescriptor():
            function = descriptor.get_agg_function()
            return ExpiringAggregatingState(
                cell, life.over(store(name, one), one), life, check_of(descriptor), function
            )
    raise ExecutionError("state-kind", f"a state of {type(descriptor).__name__} does not exist")
