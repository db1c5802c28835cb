"""Row-wise state that expires (``StateTtlConfig``), by the clock.

Each value, list element and map entry stands with the moment when it was last touched. What expired is removed when it
is touched, and by its cleanup strategies: with each access some slots in memory are looked at, each in its turn; slots
outside memory are known by the moment when they expire. Snapshots leave it out.

Source: Flink, ``TtlValueState``, ``TtlListState``, ``TtlMapState``, ``TtlReducingState``, ``TtlAggregatingState``,
``TtlIncrementalCleanup``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from flowsql_core.clock import Clock
from flowsql_core.errors import ExecutionError
from flowsql_core.stream import state as api
from flowsql_core.stream.time import span_ms
from flowsql_runtime.state.declared_type import Check, check_of, map_checks_of
from flowsql_runtime.state.object_store import Expiry

Cell = list[Any]
Entries = dict[Any, Any]
#: (value, when it was touched last)
Stamped = tuple[Any, int]

_NEVER: Final = 2**63 - 1


class Lifetime:
    """When stamped values expire, and the sweep of what did. Implements ``Expiry``.

    Args:
        config: of the state.
        clock: by which values expire.
        alive: what lives of an object, None for nothing.
        stamps: the stamps of an object.
    """

    def __init__(
        self,
        config: api.StateTtlConfig,
        clock: Clock,
        alive: Callable[[Lifetime, Any], Any],
        stamps: Callable[[Any], Iterable[int]],
    ) -> None:
        self.now_ms = clock.now_ms
        self._ttl_ms = config.ttl_ms
        self._alive = alive
        self._stamps = stamps
        self.touched_by_reading = config.get_update_type() is api.StateTtlConfig.UpdateType.OnReadAndWrite
        visibility = config.get_state_visibility()
        self.shows_expired = visibility is api.StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        strategies = config.get_cleanup_strategies()
        in_memory = strategies.get_incremental_cleanup_strategy()
        self._an_access = 0 if in_memory is None else in_memory.get_cleanup_size()
        self._a_record = self._an_access if in_memory and in_memory.run_cleanup_for_every_record() else 0
        on_disk = strategies.get_rocksdb_compact_filter_cleanup_strategy()
        self.piece: int | None = None
        self.compaction_ms: int | None = None
        if on_disk is not None:
            self.piece = 0
            if strategies.in_rocksdb_compact_filter():
                self.piece = max(1, on_disk.get_query_time_after_num_entries())
                self.compaction_ms = span_ms(on_disk.get_periodic_compaction_time())
        self.entries: Entries = {}
        self._to_sweep: list[Any] = []
        #: Nothing in memory expires before; and what is known of that so far, in this round over all slots.
        self._next_ms = -_NEVER
        self._next_of_round_ms = _NEVER

    def cleaned(self, value: Any) -> Any:
        """What lives of an object; None for nothing."""
        return self._alive(self, value)

    def expires_ms(self, value: Any) -> int:
        """When the first part of an object expires."""
        return min(self._stamps(value)) + self._ttl_ms

    def accessed(self) -> None:
        """Somebody asks for the state: look at some slots."""
        if self._an_access:
            self._sweep(self._an_access)

    def recorded(self, records: int) -> None:
        """The operator has dealt with records: look at some slots for each, if wished."""
        if self._a_record:
            self._sweep(self._a_record * records)

    def _sweep(self, count: int) -> None:
        now = self.now_ms()
        # Before that round began the clock can only be because it was set back.
        if self._next_ms - self._ttl_ms <= now < self._next_ms:
            return
        entries, stored = self.entries, dict.get
        while count > 0:
            if not self._to_sweep:
                # What is written from now on lives longer than this round.
                self._to_sweep = list(entries)
                self._next_of_round_ms = now + self._ttl_ms
            looked_at = self._to_sweep[-count:]
            del self._to_sweep[-count:]
            count -= len(looked_at)
            for slot in looked_at:
                # What left memory stays there.
                found = stored(entries, slot)
                if found is None:
                    continue
                kept = self._alive(self, found)
                if kept is None:
                    del entries[slot]
                    continue
                entries[slot] = kept
                self._next_of_round_ms = min(self._next_of_round_ms, self.expires_ms(kept))
            if not self._to_sweep:
                self._next_ms = self._next_of_round_ms
                return

    def stamped(self, value: Any) -> Stamped:
        """A value that is touched now."""
        return value, self.now_ms()

    def alive(self, found: Stamped) -> bool:
        """Whether a value has not expired."""
        return found[1] + self._ttl_ms > self.now_ms()


class _Expiring:
    """One stamped value a slot."""

    def __init__(self, cell: Cell, entries: Entries, life: Lifetime, check: Check) -> None:
        self._cell = cell
        self._entries = entries
        self._life = life
        self._check = check

    def _read(self) -> Any:
        """The value of the current slot, or None. One that expired is removed, and shown once more if wished."""
        self._life.accessed()
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
        self._life.accessed()
        if value is None:
            self.clear()
        else:
            self._write(value)


class ExpiringReducingState(_Expiring, api.ReducingState[Any]):
    """The reduction of what was added."""

    def __init__(self, cell: Cell, entries: Entries, life: Lifetime, check: Check, function: Any) -> None:
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

    def __init__(self, cell: Cell, entries: Entries, life: Lifetime, check: Check, function: Any) -> None:
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

    def __init__(self, cell: Cell, entries: Entries, life: Lifetime, check: Check) -> None:
        self._cell = cell
        self._entries = entries
        self._life = life
        self._check = check

    def get(self) -> list[Any]:
        """The elements that live, in a list that later changes do not touch."""
        self._life.accessed()
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
        self._life.accessed()
        if self._check is not None:
            self._check(value)
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

    def __init__(self, cell: Cell, entries: Entries, life: Lifetime, check_key: Check, check_value: Check) -> None:
        self._cell = cell
        self._entries = entries
        self._life = life
        self._check_key = check_key
        self._check_value = check_value

    def get(self, key: Any) -> Any:
        """The value under ``key``, or None."""
        self._life.accessed()
        return self._touched(key)

    def _touched(self, key: Any) -> Any:
        """The value under ``key``, or None; what lives is touched, what does not is removed."""
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
        self._life.accessed()
        if self._check_key is not None:
            self._check_key(key)
        if self._check_value is not None:
            self._check_value(value)
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
        self._life.accessed()
        found = self._entries.get(self._cell[0], {})
        if key not in found:
            return False
        lives = self._life.alive(found[key])
        self._touched(key)
        return lives or self._life.shows_expired

    def items(self) -> list[tuple[Any, Any]]:
        """Keys with values, in a list that later changes do not touch."""
        self._life.accessed()
        keys = list(self._entries.get(self._cell[0], ()))
        shown = self._life.shows_expired
        found = self._entries.get(self._cell[0], {})
        alive = [key for key in keys if shown or self._life.alive(found[key])]
        values = [found[key][0] for key in alive]
        for key in keys:
            self._touched(key)
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


def _living(life: Lifetime, found: Stamped) -> Any:
    return found if life.alive(found) else None


def _stamp(found: Stamped) -> Iterable[int]:
    return found[1:]


def _living_elements(life: Lifetime, found: list[Stamped]) -> Any:
    return [item for item in found if life.alive(item)] or None


def _stamps(found: list[Stamped]) -> Iterable[int]:
    return (stamp for _, stamp in found)


def _living_items(life: Lifetime, found: dict[Any, Stamped]) -> Any:
    return {key: item for key, item in found.items() if life.alive(item)} or None


def _stamps_of_items(found: dict[Any, Stamped]) -> Iterable[int]:
    return (stamp for _, stamp in found.values())


def expiring_state(
    descriptor: api.StateDescriptor,
    config: api.StateTtlConfig,
    cell: Cell,
    clock: Clock,
    store: Callable[[str, Expiry], Entries],
) -> tuple[Any, Lifetime]:
    """The state of a descriptor with its lifetime; ``store`` makes its entries, of which snapshots keep what lives."""

    def made(alive: Callable[[Lifetime, Any], Any], stamps: Callable[[Any], Iterable[int]]) -> Lifetime:
        life = Lifetime(config, clock, alive, stamps)
        life.entries = store(descriptor.name, life)
        return life

    match descriptor:
        case api.ListStateDescriptor():
            life = made(_living_elements, _stamps)
            return ExpiringListState(cell, life.entries, life, check_of(descriptor)), life
        case api.MapStateDescriptor():
            life = made(_living_items, _stamps_of_items)
            return ExpiringMapState(cell, life.entries, life, *map_checks_of(descriptor)), life
        case api.ValueStateDescriptor():
            life = made(_living, _stamp)
            return ExpiringValueState(cell, life.entries, life, check_of(descriptor)), life
        case api.ReducingStateDescriptor():
            life = made(_living, _stamp)
            function = descriptor.get_reduce_function()
            return ExpiringReducingState(cell, life.entries, life, check_of(descriptor), function), life
        case api.AggregatingStateDescriptor():
            life = made(_living, _stamp)
            function = descriptor.get_agg_function()
            return ExpiringAggregatingState(cell, life.entries, life, check_of(descriptor), function), life
    raise ExecutionError("state-kind", f"a state of {type(descriptor).__name__} does not exist")
