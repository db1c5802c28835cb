"""State as functions see it, and the descriptors that name it. PyFlink's names and signatures."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from flowsql_core.stream.time import Span, Time, span_ms

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """State of the current key (and window)."""

    @abstractmethod
    def clear(self) -> None:
        """Remove what the current key holds."""


class ValueState(State, Generic[T]):
    """One value a key."""

    @abstractmethod
    def value(self) -> T:
        """The value, or None."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Put a value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """What is added to, and read as something else."""

    @abstractmethod
    def get(self) -> OUT:
        """What was made of the values added."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value."""


class MergingState(AppendingState[IN, OUT]):
    """Two of them can become one: state of merging windows."""


class ReducingState(MergingState[T, T]):
    """The reduction of what was added; None before the first value."""


class AggregatingState(MergingState[IN, OUT]):
    """The aggregate of what was added; None before the first value."""


class ListState(MergingState[T, Iterable[T]]):
    """A list a key."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Put the whole list; an empty one removes it."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append values."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapState(State, Generic[K, V]):
    """A map a key."""

    @abstractmethod
    def get(self, key: K) -> V:
        """The value under ``key``, or None."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Put a value."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V] | Iterable[tuple[K, V]]) -> None:
        """Put several: a dict, or pairs of keys and values."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a value; an unknown key is ignored."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is a value under ``key``."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Keys with values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it holds nothing."""

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


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """A map that every subtask has the same of, to read."""

    @abstractmethod
    def get(self, key: K) -> V:
        """The value under ``key``, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is a value under ``key``."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Keys with values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it holds nothing."""

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """A map that every subtask has the same of: elements of the broadcast stream write it."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Put a value."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V] | Iterable[tuple[K, V]]) -> None:
        """Put several: a dict, or pairs of keys and values."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a value; an unknown key is ignored."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class OperatorStateStore(ABC):
    """Hands out state that belongs to no key."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state of a name."""


class StateTtlConfig:
    """How long state lives after it was last touched, by the clock."""

    class UpdateType(enum.Enum):
        """What makes state live on."""

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(enum.Enum):
        """Whether state that expired may still be seen until it is removed."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(enum.Enum):
        """The clock is the only one, as in Flink."""

        ProcessingTime = 0

    class Builder:
        """Makes a :class:`StateTtlConfig`."""

        def __init__(self, ttl: Span) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._cleanup: dict[str, Any] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """What makes state live on."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Writing does (the default)."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Reading does, too."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> StateTtlConfig.Builder:
            """Whether expired state may be seen."""
            self._visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """It may, until it is removed."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """It may not (the default)."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """Only the clock exists."""
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Only the clock exists."""
            return self

        def set_ttl(self, ttl: Span) -> StateTtlConfig.Builder:
            """How long."""
            self._ttl = ttl
            return self

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Snapshots hold no expired state: here they never do."""
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """How expired state is looked for: two keys with each write, always."""
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Any = None
        ) -> StateTtlConfig.Builder:
            """Concerns another backend."""
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Expired state that nobody touches is never seen: when it goes does not matter."""
            return self

        def build(self) -> StateTtlConfig:
            """The configuration."""
            return StateTtlConfig(self._update_type, self._visibility, span_ms(self._ttl))

    def __init__(
        self,
        update_type: StateTtlConfig.UpdateType,
        state_visibility: StateTtlConfig.StateVisibility,
        ttl_ms: int,
    ) -> None:
        self._update_type = update_type
        self._visibility = state_visibility
        self.ttl_ms = ttl_ms

    @staticmethod
    def new_builder(ttl: Span) -> StateTtlConfig.Builder:
        """Begin a configuration."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        """What makes state live on."""
        return self._update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """Whether expired state may be seen."""
        return self._visibility

    def get_ttl(self) -> Time:
        """How long."""
        return Time(self.ttl_ms)

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        """The clock."""
        return StateTtlConfig.TtlTimeCharacteristic.ProcessingTime

    def is_enabled(self) -> bool:
        """Whether state expires at all."""
        return self._update_type is not StateTtlConfig.UpdateType.Disabled


class DeclaredType(Protocol):
    """What a program may declare of a state: a ``TypeInformation``."""

    @property
    def unchanged(self) -> str | None:
        """An expression over ``{v}``, true for values that fit for certain; None where there is none."""
        ...

    def converter(self) -> Callable[[Any], Any] | None:
        """Raises TypeError or ValueError for a value that does not fit; None where everything does."""
        ...


class StateDescriptor:
    """Names a state. ``type_info``: what is written is checked against it; None where nothing was declared."""

    def __init__(self, name: str, type_info: Any = None) -> None:
        self.name = name
        self.type_info = type_info
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """The name."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let the state expire."""
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None


class ValueStateDescriptor(StateDescriptor):
    """Of a :class:`ValueState`."""

    def __init__(self, name: str, value_type_info: Any = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """Of a :class:`ListState`."""

    def __init__(self, name: str, elem_type_info: Any = None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor):
    """Of a :class:`MapState`."""

    def __init__(self, name: str, key_type_info: Any = None, value_type_info: Any = None) -> None:
        super().__init__(name, (key_type_info, value_type_info))


class ReducingStateDescriptor(StateDescriptor):
    """Of a :class:`ReducingState`: with a ``ReduceFunction``, or a function of two values."""

    def __init__(self, name: str, reduce_function: Any, type_info: Any = None) -> None:
        super().__init__(name, type_info)
        if not callable(reduce_function) and not callable(getattr(reduce_function, "reduce", None)):
            raise TypeError("The input must be a ReduceFunction or a callable function!")
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> Any:
        """What was given."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Of an :class:`AggregatingState`: with an ``AggregateFunction``."""

    def __init__(self, name: str, agg_function: Any, state_type_info: Any = None) -> None:
        super().__init__(name, state_type_info)
        if not callable(getattr(agg_function, "create_accumulator", None)):
            raise TypeError("The input must be an AggregateFunction!")
        self._agg_function = agg_function

    def get_agg_function(self) -> Any:
        """What was given."""
        return self._agg_function
