"""Process table functions: a user's function called for each row of its tables, and for its timers."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.compile import compile_projections
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of, watermark_per_row
from flowsql_core.column_bytes import taken
from flowsql_core.element import Watermark
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.process_specs import ProcessTableFunctionSpec
from flowsql_core.process_function import ProcessTableFunction, ProcessUdf, ScalarParameter, TableSemantics
from flowsql_core.python_call import spoken_name
from flowsql_core.row import RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Field, RowType, is_rowtime, without_attribute
from flowsql_core.udf import UserDefinedFunction
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.process.context import CallContext, Moments
from flowsql_runtime.operators.process.ordered import OrderedRows
from flowsql_runtime.operators.process.partitions import Partitions
from flowsql_runtime.python.evaluate import RAISED, WRONG_RESULT, wrong_value_text
from flowsql_runtime.python.failure import call_text, describe_failure, value_text
from flowsql_runtime.python.functions import function_context, load_function
from flowsql_runtime.python.values_in import reader, row_class
from flowsql_runtime.python.values_out import WrongValueError, writer
from flowsql_runtime.state.names import StateNames, kept_for
from flowsql_runtime.stream.copies import user_copy
from flowsql_runtime.window.row_time import milliseconds_of

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: Rows of the output that leave at once.
_MOST_ROWS = 65_536
#: Union state: the number of the last registration of a timer.
_NUMBER = "timer number"
_KINDS = tuple(RowKind(kind) for kind in range(4))


@dataclass(slots=True)
class Rows:
    """Rows of one table that are handed to the function.

    ``values``: Python rows; ``kinds``: None for inserts; ``slots``: partitions, None with row semantics; ``times``:
    milliseconds, None without ``on_time``; ``watermarks``: of the table, at each row.
    """

    place: int
    columns: Sequence[Any]
    values: list[Any]
    slots: list[int] | None
    times: list[int] | None
    watermarks: list[int]


@dataclass(slots=True)
class Step:
    """Rows in the order of the calls; or a watermark that comes, or whose timers fire (``fires``)."""

    rows: Rows | None
    order: Iterable[int]
    watermark_ms: int | None = None
    fires: bool = False


class _Made:
    """Rows that the function made, on their way out."""

    def __init__(self) -> None:
        self.values: list[tuple[Any, ...]] = []
        self.kinds: list[int] = []
        self.slots: list[int] = []
        self.rows: list[int] = []
        self.times: list[int] = []
        self.marks: list[tuple[int, int]] = []


class ProcessTableFunctionOperator(Operator[ProcessTableFunctionSpec]):
    """Call a function for each row, and for each timer that the watermark reaches.

    In     a table an input; those with set semantics are hash-partitioned by their keys. Changes where the argument
           takes them. Rows of a table with ORDER BY wait for the watermark and are then handed over in order.
    Out    keys of all tables (or all columns of the one table), what the function makes, and the row's or timer's time
           with ``on_time``. Timers that a watermark reaches fire before the watermark goes on.
    State  by partition: state entries and timers; rows that wait. A partition of which nothing is kept is gone.
    Late   rows are handed over all the same; those of an ordered table are dropped and counted.

    Source: Flink, ``ProcessTableOperator`` and FLIP-440.
    """

    def __init__(self, spec: ProcessTableFunctionSpec) -> None:
        super().__init__(spec)
        self.number_of_inputs = max(1, len(spec.call.tables))
        self._name = spoken_name(spec.call.function.name)
        self._partitions: Partitions | None = None
        self._function: Any = None
        self._opened = False

    # -- life

    def open(self, ctx: OperatorContext) -> None:
        """Make the state; load and open the function."""
        call = self.spec.call
        self._zone = eval_context(ctx).zone
        udf = load_function(call.function, ctx.resources)
        if not isinstance(udf, ProcessUdf):
            raise ExecutionError("function-kind", f"'{self._name}' is no process table function any more", call.span)
        if call.keeps_partitions:
            table, schema = call.tables[0], self.spec.inputs[0]
            keys = tuple(schema[index] for index in table.partition or ())
            self._partitions = Partitions(
                ctx, keys, call.states, self.spec.ttl_ms, udf.state_makers, call.has_timers, self._zone
            )
        self._ordered = [
            OrderedRows(ctx, place, table, schema) if table.order else None
            for place, (table, schema) in enumerate(zip(call.tables, self.spec.inputs, strict=True))
        ]
        self._readers = [[reader(column.type, self._zone) for column in schema] for schema in self.spec.inputs]
        self._writers = [writer(column.type, self._zone) for column in call.result]
        self._context = CallContext(
            {table.name: self._semantics(place) for place, table in enumerate(call.tables)},
            tuple(entry.name for entry in call.states),
            None if self._partitions is None else self._partitions.timers,
            Moments(call.row_time or self._time_type(), self._zone),
            call.changelog_mode,
        )
        self._emitted = frozenset(int(kind) for kind in call.changelog_mode.kinds)
        self._load(udf, ctx)

    def _load(self, udf: ProcessUdf, ctx: OperatorContext) -> None:
        function = self._function = user_copy(udf.function)
        is_class = isinstance(function, ProcessTableFunction)
        self._eval: Callable[..., Any] = function.eval if is_class else function
        self._on_timer = getattr(function, "on_timer", None) if is_class else udf.on_timer
        states = [entry.name for entry in udf.states]
        self._timer_states = [states.index(name) for name in udf.timer_states]
        self._timer_takes_context = udf.timer_takes_context
        self._before: tuple[Any, ...] = (self._context,) if udf.takes_context else ()
        self._arguments = self._argument_templates(udf, ctx)
        if isinstance(function, UserDefinedFunction):
            # Closed also when opening fails half-way.
            self._opened = True
            self._guarded("open", function.open, function_context(ctx))

    def _argument_templates(self, udf: ProcessUdf, ctx: OperatorContext) -> list[tuple[list[Any], int]]:
        """For each table the arguments without its row, and where that goes; without a table one without a place."""
        constants = self._constants(udf, ctx)
        found: list[tuple[list[Any], int]] = []
        names = [parameter.name for parameter in udf.parameters]
        values = [constants.get(name) for name in names]
        for table in self.spec.call.tables:
            found.append((list(values), names.index(table.name)))
        return found or [(values, -1)]

    def _constants(self, udf: ProcessUdf, ctx: OperatorContext) -> dict[str, Any]:
        """Scalar arguments, computed once."""
        scalars = [parameter for parameter in udf.parameters if isinstance(parameter, ScalarParameter)]
        given = list(zip(scalars, self.spec.call.scalars, strict=True))
        exprs = [expr for _, expr in given if expr is not None]
        columns = iter(compile_projections(exprs, eval_context(ctx))([], 1)) if exprs else iter(())
        return {
            parameter.name: parameter.default
            if expr is None
            else reader(expr.type, self._zone)(next(columns).slice(0, 1))[0]
            for parameter, expr in given
        }

    def _semantics(self, place: int) -> TableSemantics:
        table, schema = self.spec.call.tables[place], self.spec.inputs[place]
        columns = zip(table.columns, schema, strict=True)
        fields = tuple(Field(name, without_attribute(column.type)) for name, column in columns)
        return TableSemantics(
            RowType(fields=fields, nullable=False),
            table.partition or (),
            tuple(index for index, *_ in table.order),
            -1 if table.time_index is None else table.time_index,
            self.spec.input_modes[place],
        )

    def _time_type(self) -> Any:
        """The kind of moments of timers without ``on_time``: that of the first time attribute."""
        columns = (column.type for schema in self.spec.inputs for column in schema)
        return next((type_ for type_ in columns if is_rowtime(type_)), None)

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Registrations are numbered on behind those of all subtasks."""
        if self._partitions is not None and self._partitions.timers is not None:
            saved = self.ctx.operator_state.union_state(_NUMBER)
            self._partitions.timers.number = max((int.from_bytes(value, "little") for value in saved), default=0)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """With the number of the last registration."""
        if self._partitions is not None and self._partitions.timers is not None:
            number = self._partitions.timers.number.to_bytes(8, "little")
            self.ctx.operator_state.union_state(_NUMBER)[:] = [number]
        return super().snapshot_state(checkpoint_id)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames | None:
        """State entries by name; the tables in front may change, for the query names the operator itself."""
        if self._partitions is None:
            return None
        call = self.spec.call
        keys = tuple(
            f"{table.name}[{place}]" for table in call.tables[:1] for place in range(len(table.partition or ()))
        )
        tables = self._partitions.table_names()
        for ordered, source in zip(self._ordered, arriving, strict=False):
            if ordered is not None:
                tables |= ordered.table_names(source.columns)
        facts = {f"time-to-live of {e.name}": kept_for(t) for e, t in zip(call.states, self.spec.ttl_ms, strict=True)}
        shown = []
        for table, source in zip(call.tables, arriving, strict=False):
            by = ", ".join(source.columns[index] for index in table.partition or ())
            order = ", ".join(f"{source.columns[index]}{' DESC' if down else ''}" for index, down, _ in table.order)
            shown.append(f"{table.name} PARTITION BY ({by}) ORDER BY ({order})")
        given = ", ".join("DEFAULT" if one is None else str(one) for one in call.scalars)
        answered_with = {"arguments": given, "tables": "; ".join(shown)}
        return StateNames(keys, tables, facts, answered_with=answered_with)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Partitions of rows that come."""
        if self._partitions is not None:
            self._partitions.index.expect(*columns_of(batches, self.spec.call.tables[input_index].partition or ()))

    def finish(self) -> None:
        """Close the function, which says whether that went well."""
        self._close()

    def close(self) -> None:
        """Close the function of a job that failed."""
        self._close()

    def _close(self) -> None:
        opened, self._opened = self._opened, False
        if opened:
            self._guarded("close", self._function.close)

    # -- what comes

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Call the function for rows and timers."""
        before, table_before = self.current_watermark, self._input_watermarks[input_index]
        track = self.advance_track(input_index, batch.track)
        ordered = self._ordered[input_index] if self.spec.call.tables else None
        if ordered is not None:
            late = ordered.wait(batch, watermark_per_row(batch.num_rows, track, before))
            if late:
                self.ctx.metrics.count("numLateRecordsDropped", late)
            if track is not None:
                self._work(self._steps(None, track), track, before)
            return
        watermarks = watermark_per_row(batch.num_rows, batch.track, table_before)
        rows = self._rows(input_index, batch.columns, batch.num_rows, batch.kinds, watermarks)
        self._work(self._steps(rows, track), track, before)

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches; the base class hands it on."""
        track = WatermarkTrack(np.zeros(1, np.int32), np.array([watermark_ms]))
        self._work(self._steps(None, track), track, watermark_ms, hand_on=False)

    def _steps(self, rows: Rows | None, track: WatermarkTrack | None) -> list[Step]:
        """What a batch and its watermarks bring: rows, then with each watermark ordered rows that it reaches."""
        if track is None:
            return [] if rows is None else [Step(rows, range(len(rows.values)))]
        waited = [self._ordered_steps(ordered, track) for ordered in self._ordered if ordered is not None]
        steps, first = [], 0
        for mark, (offset, watermark_ms) in enumerate(zip(track.offsets.tolist(), track.wm_ms.tolist(), strict=True)):
            if rows is not None:
                steps.append(Step(rows, range(first, offset)))
                first = offset
            steps.append(Step(None, (), watermark_ms))
            steps += (found[mark] for found in waited if mark in found)
            steps.append(Step(None, (), watermark_ms, fires=True))
        if rows is not None:
            steps.append(Step(rows, range(first, len(rows.values))))
        return steps

    def _ordered_steps(self, ordered: OrderedRows, track: WatermarkTrack) -> dict[int, Step]:
        """Rows that waited, by the number of the watermark: a partition's rows stand together, as in Flink."""
        columns, entries = ordered.due(track)
        if not len(entries):
            return {}
        rows = self._rows(ordered.place, columns, len(entries), None, track.wm_ms[entries])
        cuts = np.searchsorted(entries, np.arange(len(track) + 1)).tolist()
        found: dict[int, Step] = {}
        for mark in np.unique(entries).tolist():
            mine = range(cuts[mark], cuts[mark + 1])
            by_partition: dict[int, list[int]] = {}
            for row in mine:
                by_partition.setdefault(rows.slots[row] if rows.slots is not None else -1, []).append(row)
            found[mark] = Step(rows, [row for own in by_partition.values() for row in own])
        return found

    def _rows(
        self, place: int, columns: Sequence[Any], n: int, kinds: npt.NDArray[np.uint8] | None, watermarks: Int64s
    ) -> Rows:
        """Rows as Python values, with their partitions."""
        if not self.spec.call.tables:
            return Rows(0, columns, [None] * n, None, None, watermarks.tolist())
        table = self.spec.call.tables[place]
        names, of_names = table.columns, row_class().of_names
        lists = [read(column) for read, column in zip(self._readers[place], columns, strict=True)]
        if kinds is None:
            values = [of_names(names, row) for row in zip(*lists, strict=True)]
        else:
            pairs = zip(zip(*lists, strict=True), kinds.tolist(), strict=True)
            values = [of_names(names, row, _KINDS[kind]) for row, kind in pairs]
        times = None if table.time_index is None else milliseconds_of(columns[table.time_index]).tolist()
        slots = None
        if self._partitions is not None:
            self._partitions.expire()
            slots = self._partitions.slots_of([columns[index] for index in table.partition or ()], n).tolist()
        return Rows(place, columns, values, slots, times, watermarks.tolist())

    # -- calls

    def _work(self, steps: Sequence[Step], track: WatermarkTrack | None, before: int, hand_on: bool = True) -> None:
        """Carry out steps, and emit. ``before``: the watermark in front of them. ``hand_on``: watermarks go on."""
        partitions = self._partitions
        taking_part = {id(step.rows): step.rows for step in steps if step.rows is not None}
        if partitions is not None:
            slots = [slot for rows in taking_part.values() for slot in rows.slots or ()]
            partitions.begin(np.array(slots, np.int32), None if track is None else track.last_ms)
        self._context.watermark_ms = before
        through = next(iter(taking_part.values()), None)
        made = _Made()
        for step in steps:
            if step.rows is not None:
                for row in step.order:
                    self._call(step.rows, row, made)
                    if len(made.values) >= _MOST_ROWS:
                        self._emit(made, through, hand_on)
                        made = _Made()
            elif step.watermark_ms is not None:
                self._context.watermark_ms = step.watermark_ms
                if step.fires:
                    if partitions is not None and partitions.timers is not None:
                        self._fire(partitions, step.watermark_ms, made)
                    made.marks.append((len(made.values), step.watermark_ms))
        self._emit(made, through, hand_on)
        if partitions is not None:
            partitions.end()

    def _call(self, rows: Rows, row: int, made: _Made) -> None:
        context = self._context
        context.in_timer = False
        context.time_ms = time = None if rows.times is None else rows.times[row]
        context.table_watermark_ms = rows.watermarks[row]
        template, place = self._arguments[rows.place]
        states: Sequence[Any] = ()
        slot = -1
        if rows.slots is not None and self._partitions is not None:
            slot = context.slot = rows.slots[row]
            states = self._partitions.objects(slot)
        arguments = template
        if place >= 0:
            arguments = template.copy()
            arguments[place] = rows.values[row]
        given = (*self._before, *states, *arguments)
        try:
            self._take(self._eval(*given), made, slot, row, 0 if time is None else time)
        except FlowSqlError:
            raise
        except Exception as error:
            shown = call_text(self._name, self._eval, given)
            raise ExecutionError(RAISED, describe_failure(error, shown), self.spec.call.span) from error
        self._clear(slot)

    def _fire(self, partitions: Partitions, watermark_ms: int, made: _Made) -> None:
        context, timers, on_timer = self._context, partitions.timers, self._on_timer
        assert timers is not None
        if on_timer is None:
            raise AssertionError("timers without on_timer()")
        for slot, time, name in timers.fire(watermark_ms):
            context.in_timer, context.slot, context.time_ms, context.timer = True, slot, time, name
            states = partitions.objects(slot)
            given = [states[place] for place in self._timer_states]
            try:
                result = on_timer(context, *given) if self._timer_takes_context else on_timer(*given)
                self._take(result, made, slot, -1, time)
            except FlowSqlError:
                raise
            except Exception as error:
                named = "a timer" if name is None else f"the timer '{name}'"
                where = f"on_timer() of the Python function '{self._name}', called for {named} of {_shown_ms(time)}"
                raise ExecutionError(RAISED, describe_failure(error, where), self.spec.call.span) from error
            self._clear(slot)

    def _clear(self, slot: int) -> None:
        cleared = self._context.cleared
        if cleared and self._partitions is not None:
            self._partitions.clear(slot, cleared)
        cleared.clear()

    def _take(self, result: Any, made: _Made, slot: int, row: int, time_ms: int) -> None:
        """The rows that a call gave: a generator is read here, so that its errors are the call's."""
        if result is None:
            return
        several: Iterable[Any] = result if isinstance(result, list | range | types.GeneratorType) else (result,)
        width, emitted = len(self._writers), self._emitted
        for one in several:
            kind = 0
            values: tuple[Any, ...]
            if isinstance(one, tuple):
                values = one
            elif hasattr(one, "get_row_kind"):
                values, kind = tuple(one), int(one.get_row_kind().value)
            else:
                values = (one,)
            if len(values) != width:
                raise ExecutionError(
                    WRONG_RESULT,
                    f"The Python function '{self._name}' made {value_text(one)}: {len(values)} values, its rows have "
                    f"{width}.",
                    self.spec.call.span,
                )
            if kind not in emitted:
                raise self._wrong_kind(RowKind(kind), values)
            made.values.append(values)
            made.kinds.append(kind)
            made.slots.append(slot)
            made.rows.append(row)
            made.times.append(time_ms)

    def _wrong_kind(self, kind: RowKind, values: tuple[Any, ...]) -> ExecutionError:
        mode = self.spec.call.changelog_mode
        if kind is RowKind.UPDATE_BEFORE and mode.upsert:
            hint = "an upsert replaces the row of its key: emit UPDATE_AFTER alone, or declare ChangelogMode.all()"
        else:
            declared = "ChangelogMode.all()" if kind is RowKind.UPDATE_BEFORE else "ChangelogMode.upsert()"
            hint = f"process_table_function(..., changelog_mode={declared})"
        return ExecutionError(
            WRONG_RESULT,
            f"The Python function '{self._name}' made the row {value_text(values)} of the kind {kind.name}; its "
            f"changelog mode here is {mode}.",
            self.spec.call.span,
            hint,
        )

    def _guarded(self, method: str, call: Callable[..., Any], *args: Any) -> None:
        try:
            call(*args)
        except Exception as error:
            where = f"{method}() of the Python function '{self._name}'"
            raise ExecutionError(RAISED, describe_failure(error, where), self.spec.call.span) from error

    # -- what leaves

    def _emit(self, made: _Made, rows: Rows | None, hand_on: bool) -> None:
        track = None
        if made.marks and hand_on:
            offsets, levels = zip(*made.marks, strict=True)
            track = WatermarkTrack(np.array(offsets, np.int32), np.array(levels, np.int64))
        if not made.values:
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        columns = self._columns(made, rows)
        kinds = None
        if not self.spec.call.changelog_mode.insert_only:
            kinds = np.array(made.kinds, np.uint8)
        self.collect_within_offsets(ChangelogBatch(tuple(columns), len(made.values), kinds, None, track))

    def _columns(self, made: _Made, rows: Rows | None) -> list[Any]:
        call = self.spec.call
        columns: list[Any] = []
        if any(table.through for table in call.tables):
            assert rows is not None
            at = np.array(made.rows, np.int64)
            columns += (taken(column, at) for column in rows.columns)
        elif self._partitions is not None:
            keys = self._partitions.index.columns_at(np.array(made.slots, np.int32))
            for table, schema in zip(call.tables, self.spec.inputs, strict=True):
                wanted = (to_arrow(schema[index].type) for index in table.partition or ())
                columns += (
                    key if key.type == type_ else key.cast(type_) for key, type_ in zip(keys, wanted, strict=True)
                )
        for column, write, values in zip(call.result, self._writers, zip(*made.values, strict=True), strict=True):
            columns.append(self._written(column, write, values))
        if call.row_time is not None:
            moments = pa.array(np.array(made.times, np.int64), pa.timestamp("ms"))
            columns.append(moments.cast(to_arrow(call.row_time)))
        return columns

    def _written(self, column: Column, write: Callable[..., Any], values: Sequence[Any]) -> Any:
        try:
            return write(values)
        except WrongValueError as error:
            text = wrong_value_text(error, column.type)
            raise ExecutionError(
                WRONG_RESULT, f"{text}\nin the column '{column.name}' of '{self._name}'", self.spec.call.span
            ) from None


def _shown_ms(time_ms: int) -> str:
    return f"{np.datetime64(time_ms, 'ms')}"
