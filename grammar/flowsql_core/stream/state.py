"""State as functions see it, and the descriptors that name it. PyFlink's names and signatures."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from flowsql_core.stream.time import Duration, Span, Time, span_ms

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

    class CleanupStrategies:
        """When state that expired is removed though nobody touches it."""

        class Strategies(enum.Enum):
            """What they are known by."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy:
            """Base of the strategies."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A strategy without settings."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """State in memory: with each access some keys are looked at, each in its turn."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
                if cleanup_size <= 0:
                    raise ValueError("Number of incrementally cleaned up state entries should be positive.")
                self._cleanup_size = cleanup_size
                self._run_cleanup_for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                """How many keys."""
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Whether each record of the operator counts as an access, too."""
                return self._run_cleanup_for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """State in RocksDB: what expired is removed in the order in which it does."""

            def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Span | None = None) -> None:
                self._query_time_after_num_entries = query_time_after_num_entries
                self._periodic_compaction_time: Span = (
                    Duration.of_days(30) if periodic_compaction_time is None else periodic_compaction_time
                )

            def get_query_time_after_num_entries(self) -> int:
                """How many keys are removed in one go, by one reading of the clock."""
                return self._query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Span:
                """Files of RocksDB older than this are written anew, without what was removed; 0: they are not."""
                return self._periodic_compaction_time

        EMPTY_STRATEGY: Final = EmptyCleanupStrategy()

        def __init__(self, strategies: Mapping[Strategies, CleanupStrategy], is_cleanup_in_background: bool) -> None:
            self._strategies = dict(strategies)
            self._is_cleanup_in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Whether a strategy that was not asked for is used with its defaults."""
            return self._is_cleanup_in_background

        def in_full_snapshot(self) -> bool:
            """Whether snapshots were asked to leave out what expired."""
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def in_rocksdb_compact_filter(self) -> bool:
            """Whether a strategy for state in RocksDB was asked for."""
            return self.Strategies.ROCKSDB_COMPACTION_FILTER in self._strategies

        def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
            """That of state in memory; None: what nobody touches stays."""
            found = self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP)
            if found is None and self._is_cleanup_in_background:
                return self.IncrementalCleanupStrategy(5, False)
            return cast("StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None", found)

        def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
            """That of state in RocksDB; None: what nobody touches stays."""
            found = self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
            if found is None and self._is_cleanup_in_background:
                return self.RocksdbCompactFilterCleanupStrategy(1000)
            return cast("StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None", found)

    class Builder:
        """Makes a :class:`StateTtlConfig`."""

        def __init__(self, ttl: Span) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ] = {}
            self._is_cleanup_in_background = True

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
            kinds = StateTtlConfig.CleanupStrategies
            self._strategies[kinds.Strategies.FULL_STATE_SCAN_SNAPSHOT] = kinds.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """State in memory: so many keys are looked at with each access, and with each record if wished."""
            kinds = StateTtlConfig.CleanupStrategies
            self._strategies[kinds.Strategies.INCREMENTAL_CLEANUP] = kinds.IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Span | None = None
        ) -> StateTtlConfig.Builder:
            """State in RocksDB: so many keys are removed at a time; how often files are rewritten without them."""
            kinds = StateTtlConfig.CleanupStrategies
            self._strategies[kinds.Strategies.ROCKSDB_COMPACTION_FILTER] = kinds.RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """State goes when it is touched, or by a strategy that was asked for."""
            self._is_cleanup_in_background = False
            return self

        def build(self) -> StateTtlConfig:
            """The configuration."""
            strategies = StateTtlConfig.CleanupStrategies(self._strategies, self._is_cleanup_in_background)
            return StateTtlConfig(self._update_type, self._visibility, span_ms(self._ttl), strategies)

    def __init__(
        self,
        update_type: StateTtlConfig.UpdateType,
        state_visibility: StateTtlConfig.StateVisibility,
        ttl_ms: int,
        cleanup_strategies: StateTtlConfig.CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._visibility = state_visibility
        self.ttl_ms = ttl_ms
        self._cleanup_strategies = cleanup_strategies

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

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        """When state that expired goes though nobody touches it."""
        return self._cleanup_strategies

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
