"""What operators over Python objects have in common: rows between watermarks, emitted objects, the user's function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Generic, NoReturn, TypeVar

from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import OBJECT_REUSE, Configuration
from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.graph.stream_specs import KEY, VALUE
from flowsql_core.stream.functions import RuntimeContext
from flowsql_core.stream.keys import key_tokens
from flowsql_core.stream.timer import TimeDomain
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext
from flowsql_runtime.operators.pace import begin_slices
from flowsql_runtime.state.api import NO_SLOT, Cell, ObjectStates
from flowsql_runtime.stream.context import KeyedContext, StreamRuntimeContext
from flowsql_runtime.stream.copies import user_copy
from flowsql_runtime.stream.emitter import Emitter, times_of
from flowsql_runtime.stream.failure import USER_ERRORS, user_failure
from flowsql_runtime.stream.timers import TimeKeeper

S = TypeVar("S", bound=OperatorSpec)

#: Rows of a batch as lists: values, keys, key tokens (both empty without keys), timestamps.
Rows = tuple[Sequence[Any], Sequence[Any], Sequence[Any], Sequence[int]]


#: Times that timers of one key may register timers at its end.
_TIMER_ROUNDS: Final = 10_000


class UserFunction:
    """A subtask's own copy of a function object, opened and closed once."""

    def __init__(self, ctx: OperatorContext, resource: str) -> None:
        self.object = user_copy(ctx.resources[resource])
        self._opened = False

    def open(self, runtime_context: RuntimeContext) -> None:
        """Call its ``open``, if it has one."""
        self._opened = True
        self._call("open", runtime_context)

    def close(self) -> None:
        """Call its ``close``, if it has one and was opened."""
        if self._opened:
            self._opened = False
            self._call("close")

    def method(self, name: str) -> Any:
        """A method; a plain callable is its own."""
        return getattr(self.object, name, self.object)

    def fail(self, error: BaseException, method: str, *about: Any) -> NoReturn:
        """Raise the error of the job for what the function raised; ``about``: the element, and its key."""
        raise user_failure(error, self.object, method, *about)

    def _call(self, name: str, *arguments: Any) -> None:
        called = getattr(self.object, name, None)
        if called is None:
            return
        try:
            called(*arguments)
        except USER_ERRORS as error:
            self.fail(error, name)


class ObjectOperator(Operator[S], Generic[S]):
    """Base: hands rows to :meth:`process_rows` between the watermarks of a batch, so that time stands as in Flink.

    What rows became leaves, and timers fire, when a time slice is over: loops test ``over`` after each row, and then
    call :meth:`breathe`.

    In     batches of objects (``flowsql_core.graph.stream_specs``).
    Out    objects in the order in which they were emitted, watermarks behind what was emitted before them.
    """

    #: Whether rows come with keys.
    keyed = False
    #: Inputs whose rows have keys, where ``keyed``.
    keyed_inputs = frozenset({0, 1})
    #: Whether slots are pairs of key and window.
    namespaced = False

    def open(self, ctx: OperatorContext) -> None:
        """Make what every function needs."""
        reuse = Configuration(values=dict(ctx.parameters)).get(OBJECT_REUSE)
        self.over = ctx.time_slice.over
        self.emitter = Emitter(self.output, reuse, ctx.time_slice.due)
        self._pace = begin_slices(ctx)
        self._left = self._pace.rows
        self.time = TimeKeeper(ctx, self.current_watermark, self.keyed, self.namespaced)

    # -- rows and time

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows and watermarks in their order."""
        track = self.advance_track(input_index, batch.track)
        rows = self._rows(input_index, batch)
        start = 0
        self._begin_piece()
        if track is not None:
            for offset, level_ms in zip(track.offsets.tolist(), track.wm_ms.tolist(), strict=True):
                self._process_part(input_index, rows, start, offset)
                start = offset
                self.advance_time(level_ms)
                self.emitter.watermark(level_ms)
        self._process_part(input_index, rows, start, batch.num_rows)
        self._end_piece()

    def _process_part(self, input_index: int, rows: Rows, start: int, stop: int) -> None:
        """Rows [start, stop), handed on whenever a piece is full."""
        while start < stop:
            end = min(start + self._left, stop)
            self.process_rows(input_index, _part(rows, start, end))
            self._left -= end - start
            start = end
            if not self._left:
                self._end_piece()
                if self.over:
                    self.breathe()
                self._begin_piece()

    def _begin_piece(self) -> None:
        self._left = self._piece = self._pace.rows
        self._began_ms = self._pace.begin()

    def _end_piece(self) -> None:
        self.emitter.flush()
        self._pace.done(self._piece - self._left, self._began_ms)

    def breathe(self) -> None:
        """The slice is over, between two rows: what they became leaves, timers fire here and behind."""
        self.emitter.flush()
        self.ctx.time_slice.next()

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches; the base hands it on afterwards."""
        self.advance_time(watermark_ms)
        self.emitter.flush()

    def _rows(self, input_index: int, batch: ChangelogBatch) -> Rows:
        values = batch.columns[VALUE].values.tolist()
        if not self.keyed or input_index not in self.keyed_inputs:
            return values, (), (), times_of(batch)
        keys = batch.columns[KEY].values.tolist()
        return values, keys, key_tokens(keys), times_of(batch)

    # -- batch mode: see ``stream/bounded/sorted_inputs.py``

    def begin_bounded(self) -> None:
        """All rows of sorted inputs follow."""
        self._begin_piece()

    def process_bounded(self, input_index: int, rows: Rows) -> None:
        """Rows of one input, and of one key where inputs have keys."""
        self._process_part(input_index, rows, 0, len(rows[0]))

    def end_bounded(self) -> None:
        """No more rows: hand on what was emitted."""
        self._end_piece()

    @abstractmethod
    def process_rows(self, input_index: int, rows: Rows) -> None:
        """Rows between two watermarks; what they emit goes to ``emitter``."""

    def advance_time(self, watermark_ms: int) -> None:
        """The watermark rises: timers fire here."""
        self.time.watermark_ms = watermark_ms


class KeyedObjectOperator(ObjectOperator[S], Generic[S]):
    """Base of those with state and timers of the current key.

    State  objects by name and key; timers of both domains.
    """

    keyed = True

    def open(self, ctx: OperatorContext) -> None:
        """Make state and timers."""
        super().open(ctx)
        self.cell: Cell = [NO_SLOT]
        self.states = ObjectStates(ctx.state, "key", self.cell, ctx.clock)
        self.runtime_context = StreamRuntimeContext(ctx, self.states)
        self.context = KeyedContext(self.time, self.cell)

    def _end_piece(self) -> None:
        super()._end_piece()
        self.states.recorded(self._piece - self._left)

    def initialize_state(self, snapshot: Any) -> None:
        """Restored processing-time timers need their alarm."""
        self.time.arm()

    def advance_time(self, watermark_ms: int) -> None:
        """The event-time timers that the watermark reached, in order of time."""
        self.time.watermark_ms = watermark_ms
        if self.time.event.next_ms is None:
            return
        for time_ms, slot, key in self.time.event.due(watermark_ms):
            self.fire(TimeDomain.EVENT_TIME, time_ms, slot, key)
            if self.over:
                self.breathe()

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The alarm: processing-time timers that the clock reached, in order of time."""
        for time_ms, slot, key in self.time.due_by_clock():
            self.fire(TimeDomain.PROCESSING_TIME, time_ms, slot, key)
            if self.over:
                self.breathe()
        self.emitter.flush()

    def end_of_key(self) -> None:
        """Batch mode, after the last row of a key: its timers fire, first those of event time; its state goes.

        Timers that are registered meanwhile fire afterwards, in the same way.

        Raises:
            ExecutionError: ``timers-without-end`` where timers register timers again and again.
        """
        time = self.time
        time.watermark_ms = MAX_WATERMARK
        rounds = 0
        while time.event.next_ms is not None or time.processing.next_ms is not None:
            rounds += 1
            if rounds > _TIMER_ROUNDS:
                raise _endless(self.context.key)
            stores = ((TimeDomain.EVENT_TIME, time.event), (TimeDomain.PROCESSING_TIME, time.processing))
            last = [timers.sequence for _, timers in stores]
            for (domain, timers), until in zip(stores, last, strict=True):
                for time_ms, slot, key in timers.due(MAX_WATERMARK, until):
                    self.fire(domain, time_ms, slot, key)
                    if self.over:
                        self.breathe()
        time.watermark_ms = MIN_WATERMARK
        self.forget_key()

    def forget_key(self) -> None:
        """Remove all keyed state."""
        self.states.forget_all()

    @abstractmethod
    def fire(self, domain: TimeDomain, time_ms: int, slot: Any, key: Any) -> None:
        """One timer."""


def _endless(key: Any) -> ExecutionError:
    return ExecutionError(
        "timers-without-end",
        f"timers of the key {key!r:.100} have registered further timers {_TIMER_ROUNDS} times since its last element",
        hint="batch mode fires all timers of a key when its elements are over: register timers in process_element "
        "alone, or run the job with RuntimeExecutionMode.STREAMING",
    )


def _part(rows: Rows, start: int, stop: int) -> Rows:
    values, keys, tokens, times = rows
    if start == 0 and stop == len(values):
        return rows
    return values[start:stop], keys[start:stop], tokens[start:stop], times[start:stop]
