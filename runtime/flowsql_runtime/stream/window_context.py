"""What assigners, triggers and window functions are given: one context each, which the window operator moves."""

from __future__ import annotations

from typing import Any

from flowsql_core.errors import ExecutionError
from flowsql_core.stream import functions as f
from flowsql_core.stream import state as api
from flowsql_core.stream.window import Trigger, WindowAssigner
from flowsql_runtime.state.api import Cell, ObjectStates
from flowsql_runtime.stream.context import StateHandles
from flowsql_runtime.stream.metrics import UserMetricGroup
from flowsql_runtime.stream.timers import TimeKeeper


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """For assigners: the clock, and state of the key."""

    def __init__(self, time: TimeKeeper, runtime_context: f.RuntimeContext) -> None:
        self._time = time
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        """The clock."""
        return self._time.now_ms()

    def get_runtime_context(self) -> f.RuntimeContext:
        """With state of the key."""
        return self._runtime_context


class TriggerContext(Trigger.OnMergeContext):
    """For triggers. The cell holds the key token and window that timers and state belong to; ``key`` is the user's."""

    __slots__ = ("_cell", "_metrics", "_states", "_time", "key", "merged")

    def __init__(self, time: TimeKeeper, cell: Cell, states: ObjectStates, metrics: UserMetricGroup) -> None:
        self._time = time
        self._cell = cell
        self._states = states
        self._metrics = metrics
        self.key: Any = None
        #: Slots that were merged into that of the cell.
        self.merged: list[Any] = []

    def get_current_processing_time(self) -> int:
        """The clock."""
        return self._time.now_ms()

    def get_metric_group(self) -> UserMetricGroup:
        """Metrics of the operator."""
        return self._metrics

    def get_current_watermark(self) -> int:
        """The watermark."""
        return self._time.watermark_ms

    def register_processing_time_timer(self, time: int) -> None:
        """Call ``on_processing_time`` when the clock reaches ``time``."""
        self._time.register_processing(time, self._cell[0], self.key)

    def register_event_time_timer(self, time: int) -> None:
        """Call ``on_event_time`` when the watermark reaches ``time``."""
        self._time.event.register(time, self._cell[0], self.key)

    def delete_processing_time_timer(self, time: int) -> None:
        """Forget a timer."""
        self._time.processing.delete(time, self._cell[0])

    def delete_event_time_timer(self, time: int) -> None:
        """Forget a timer."""
        self._time.event.delete(time, self._cell[0])

    def get_partitioned_state(self, state_descriptor: api.StateDescriptor) -> api.State:
        """State of this window and key."""
        found: api.State = self._states.handle(state_descriptor)
        return found

    def merge_partitioned_state(self, state_descriptor: api.StateDescriptor) -> None:
        """Merge the state of the merged windows into that of the new one."""
        state = self._states.handle(state_descriptor)
        if not isinstance(state, api.MergingState):
            raise ExecutionError(
                "state-not-mergeable",
                f"the state '{state_descriptor.name}' of {type(state_descriptor).__name__} cannot be merged",
            )
        if self.merged:
            merge: Any = getattr(state, "merge_slots", None)
            if merge is None:
                raise ExecutionError(
                    "state-not-mergeable", f"the state '{state_descriptor.name}' expires: not mergeable"
                )
            merge(self._cell[0], self.merged)


class WindowStateStore(StateHandles):
    """State of a key and window; merging windows have none."""

    def absent(self, name: str) -> ExecutionError:
        """Windows merge."""
        return ExecutionError("window-state-merging", "Per-window state is not allowed when using merging windows.")


class WindowContext(f.ProcessWindowFunction.Context[Any], f.ProcessAllWindowFunction.Context[Any]):
    """For window functions; the operator sets ``current``, the window, before each call."""

    def __init__(self, time: TimeKeeper, window_state: WindowStateStore, global_state: f.KeyedStateStore) -> None:
        self._time = time
        self._window_state = window_state
        self._global_state = global_state
        self.current: Any = None

    def window(self) -> Any:
        """The window."""
        return self.current

    def current_processing_time(self) -> int:
        """The clock."""
        return self._time.now_ms()

    def current_watermark(self) -> int:
        """The watermark."""
        return self._time.watermark_ms

    def window_state(self) -> WindowStateStore:
        """State of this key and window."""
        return self._window_state

    def global_state(self) -> f.KeyedStateStore:
        """State of this key."""
        return self._global_state
