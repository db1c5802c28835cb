"""What stands in the saved tables of SQL operators: columns with the names of the query and SQL types.

Tables of snapshots name columns by place (``k0``, ``r1``, ``v:sum(2)``; docs/snapshots.md). Their meaning follows from
the operator's spec; a snapshot keeps it, so that whoever reads it needs no query.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from flowsql_core.errors import InternalError
from flowsql_core.expr import AggregateCall
from flowsql_core.graph import (
    aggregate_specs,
    match_specs,
    multi_join_specs,
    over_specs,
    process_specs,
    python_specs,
    rank_specs,
    specs,
    time_join_specs,
    window_specs,
)
from flowsql_core.graph.specs import JoinKind
from flowsql_core.python_call import aggregated_with
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.distinct_sets import DistinctSets, MergingProgram
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.join.side import counted_sides
from flowsql_runtime.state.flat_rows import flat_types

if TYPE_CHECKING:
    from flowsql_runtime.operators.python_aggregate.calls import PythonCalls

_WINDOW_END: Final = t.TimestampType(precision=3, nullable=False)
_PARTNER_COUNT: Final = t.INT.as_nullable(False)
_COUNT: Final = t.BIGINT.as_nullable(False)
_SMALL: Final = t.TINYINT.as_nullable(False)
_MOMENT: Final = t.TimestampLtzType(precision=3, nullable=False)


@record
class NamedColumn:
    """A column of a saved table: its name there, its name in the query, its SQL type.

    A ROW or a collection among values that an aggregate keeps is stored as several columns from ``stored`` on
    (``state/flat_rows.py``).
    """

    stored: str
    name: str
    type: t.LogicalType


_PARTNERS: Final = (NamedColumn("associations", "associations", _PARTNER_COUNT),)

NamedStates = dict[str, tuple[NamedColumn, ...]]


#: Specs of operators that keep columns.
_STATEFUL: Final = (
    specs.GroupAggregateSpec,
    specs.GlobalGroupAggregateSpec,
    aggregate_specs.IncrementalGroupAggregateSpec,
    specs.WindowAggregateSpec,
    window_specs.SessionAggregateSpec,
    window_specs.ChainedWindowSpec,
    window_specs.EmittingWindowSpec,
    window_specs.CountWindowSpec,
    window_specs.SessionTableFunctionSpec,
    python_specs.PythonGroupAggregateSpec,
    python_specs.PythonGroupTableAggregateSpec,
    python_specs.PythonWindowAggregateSpec,
    python_specs.PythonSessionAggregateSpec,
    python_specs.PythonOverAggregateSpec,
    over_specs.OverAggregateSpec,
    rank_specs.RankSpec,
    rank_specs.DeduplicateSpec,
    rank_specs.WindowRankSpec,
    rank_specs.WindowDeduplicateSpec,
    rank_specs.TemporalSortSpec,
    rank_specs.SortSpec,
    match_specs.MatchSpec,
    process_specs.ProcessTableFunctionSpec,
    specs.ChangelogNormalizeSpec,
    specs.JoinSpec,
    multi_join_specs.MultiJoinSpec,
    specs.WindowJoinSpec,
    specs.SinkMaterializerSpec,
    specs.SinkConflictsSpec,
    time_join_specs.IntervalJoinSpec,
    time_join_specs.TemporalJoinSpec,
    time_join_specs.KeyedLookupJoinSpec,
)


def readable_columns(spec: specs.OperatorSpec) -> NamedStates:
    """State name -> columns, keys first; empty for operators that keep nothing, or Python objects."""
    return _columns(spec) if isinstance(spec, _STATEFUL) else {}


@lru_cache(maxsize=256)
def _columns(spec: specs.OperatorSpec) -> NamedStates:
    match spec:
        case specs.GroupAggregateSpec(grouping=grouping, calls=calls, input=input, input_retracts=retracts):
            keys = _keys([input[column] for column in grouping])
            found = _aggregate("aggregate", keys, AggregateProgram(calls, input, retracts))
            return found | (_written(keys) if spec.state_ttl_ms else {})
        case specs.GlobalGroupAggregateSpec(local=local):
            keys = _keys(local.output[: len(local.grouping)])
            found = _aggregate("aggregate", keys, MergingProgram(local.calls, local.input, local.input_retracts))
            return found | (_written(keys) if spec.state_ttl_ms else {})
        case aggregate_specs.IncrementalGroupAggregateSpec(local=local):
            keys = _keys(local.output[: len(local.grouping)])
            sets = DistinctSets(local.calls, local.input, local.input_retracts)
            return _aggregate("aggregate", keys, sets) | (_written(keys) if spec.state_ttl_ms else {})
        case window_specs.SessionAggregateSpec():
            return _session_aggregate(spec)
        case window_specs.SessionTableFunctionSpec(input=input):
            keys = _session_keys([input[column] for column in spec.partition])
            before = (NamedColumn("r0", "number", _COUNT), NamedColumn("r1", "kind", _SMALL))
            return {"rows": (*keys, *before, *_flat_rows(input, len(before)))} | _sessions(keys)
        case python_specs.PythonWindowAggregateSpec(grouping=grouping, input=input):
            return _python_window(spec, _window_keys([input[column] for column in grouping]))
        case window_specs.CountWindowSpec():
            return _count_window(spec)
        case specs.WindowAggregateSpec(grouping=grouping, calls=calls, input=input, input_retracts=retracts):
            keys = _window_keys([input[column] for column in grouping])
            found = _aggregate("window", keys, AggregateProgram(calls, input, retracts, clear_at_zero=False))
            if spec.window.kind is specs.WindowKind.SESSION:
                found["starts"] = (*keys, NamedColumn("v:start", "window_start", _WINDOW_END))
            if isinstance(spec, window_specs.ChainedWindowSpec):
                found["timers"] = (*keys, NamedColumn("v:due", "due", _WINDOW_END))
            if isinstance(spec, window_specs.EmittingWindowSpec) and (spec.early_delay_ms or spec.late_delay_ms):
                found |= _delayed_window(spec, keys)
            return found
        case python_specs.PythonGroupAggregateSpec(grouping=grouping, calls=calls, input=input):
            keys = _keys([input[column] for column in grouping])
            found = _python_aggregate(keys, calls, input, spec.input_retracts)
            return found | (_written(keys) if spec.state_ttl_ms else {})
        case python_specs.PythonGroupTableAggregateSpec(grouping=grouping, call=call, input=input):
            keys = _keys([input[column] for column in grouping])
            found = _python_aggregate(keys, (call,), input, spec.input_retracts)
            return found | (_written(keys) if spec.state_ttl_ms else {})
        case over_specs.OverAggregateSpec():
            return _over(spec)
        case rank_specs.RankSpec(input=input):
            keys = _keys([input[key] for key in spec.partition])
            found = {"rows": (*keys, *_rows(input))}
            if spec.last is None:
                found["last"] = (*keys, NamedColumn("v:last", "last_place", _COUNT))
            return found | (_written(keys) if spec.state_ttl_ms else {})
        case rank_specs.DeduplicateSpec():
            return _deduplicate(spec)
        case rank_specs.WindowRankSpec(input=input):
            return {"rows": (*_window_keys([input[key] for key in spec.partition]), *_rows(input))}
        case rank_specs.WindowDeduplicateSpec(input=input):
            keys = _window_keys([input[key] for key in spec.partition])
            time = NamedColumn("v:time", "time", _time_type(input[spec.time_index]))
            return {"times": (*keys, time), "rows": (*keys, *_row_of_key(input))}
        case rank_specs.TemporalSortSpec(input=input, time_index=time_index):
            time_type = _MOMENT if time_index is None else _time_type(input[time_index])
            return {"rows": (NamedColumn("namespace", "time", time_type), *_rows(input))}
        case rank_specs.SortSpec(input=input):
            return {"rows": _rows(input)}
        case match_specs.MatchSpec():
            return _match(spec)
        case process_specs.ProcessTableFunctionSpec():
            return _process(spec)
        case specs.ChangelogNormalizeSpec(input=input):
            keys = _keys([input[key] for key in spec.keys])
            return {"rows": (*keys, *_flat_rows(input))} | (_written(keys) if spec.state_ttl_ms else {})
        case specs.JoinSpec():
            of_left, of_right = counted_sides(spec.kind)
            sides = (
                ("left", spec.left, spec.left_keys, spec.left_ttl_ms, of_left),
                ("right", spec.right, spec.right_keys, spec.right_ttl_ms, of_right),
            )
            return {
                name: (
                    *_keys([schema[key] for key in keys]),
                    *_rows(schema),
                    *(_stamp() if ttl_ms else ()),
                    *(_PARTNERS if counted else ()),
                )
                for name, schema, keys, ttl_ms, counted in sides
            }
        case multi_join_specs.MultiJoinSpec(inputs=inputs):
            states: NamedStates = {}
            for place, one in enumerate(inputs):
                keys = _keys([one.schema[key] for key in one.keys])
                states[f"input {place}"] = (*keys, *_rows(one.schema))
                if one.ttl_ms:
                    states[f"input {place} written"] = _written(keys)["written"]
            return states
        case specs.WindowJoinSpec(left=left, right=right):
            return {
                "left": (*_window_keys([left[key] for key in spec.left_keys]), *_rows(left)),
                "right": (*_window_keys([right[key] for key in spec.right_keys]), *_rows(right)),
            }
        case time_join_specs.IntervalJoinSpec():
            return _interval_join(spec)
        case time_join_specs.TemporalJoinSpec(left=left, right=right):
            keys = _keys([left[key] for key in spec.left_keys])
            kind, number = t.Column("kind_of_change", t.TINYINT), t.Column("number", t.BIGINT)
            found = {
                "left": (*keys, *_timed_rows(left, (kind, number))),
                "versions": (*keys, *_timed_rows(right, (kind,))),
            }
            return found | _timers("timers", keys) | (_written(keys) if spec.state_ttl_ms else {})
        case time_join_specs.KeyedLookupJoinSpec(left=left):
            keys = _keys([left[key] for key in spec.state_key])
            shown = zip(spec.output[len(left) :], spec.projections, strict=True)
            found = {"rows": (*keys, *_flat_rows([t.Column(column.name, expr.type) for column, expr in shown]))}
            return found | (_written(keys) if spec.state_ttl_ms else {})
        case specs.SinkMaterializerSpec(input=input):
            keys = _keys([input[key] for key in spec.keys])
            return {"rows": (*keys, *_rows(input))} | (_written(keys) if spec.state_ttl_ms else {})
        case specs.SinkConflictsSpec(input=input):
            keys = _keys([input[key] for key in spec.keys])
            sign = NamedColumn("sign", "sign", t.TINYINT.as_nullable(False))
            return {"shown": (*keys, *_rows(input)), "waiting": (*keys, *_rows(input), sign)}
    raise InternalError(f"nobody says what {type(spec).__name__} keeps")


def _interval_join(spec: time_join_specs.IntervalJoinSpec) -> NamedStates:
    found: NamedStates = {}
    sides = (("left", spec.left, spec.left_keys), ("right", spec.right, spec.right_keys))
    outer = ((JoinKind.LEFT, JoinKind.FULL), (JoinKind.RIGHT, JoinKind.FULL))
    for (name, schema, columns), kinds in zip(sides, outer, strict=True):
        keys = _keys([schema[key] for key in columns])
        counted = (NamedColumn("associations", "partners", t.INT.as_nullable(False)),) if spec.kind in kinds else ()
        found[name] = (*keys, *_timed_rows(schema), *counted)
        found |= _timers(f"{name} timers", keys)
    return found


def _python_aggregate(
    keys: tuple[NamedColumn, ...], calls: Sequence[AggregateCall], input: t.Schema, retracts: bool
) -> NamedStates:
    # Loaded by jobs that have such calls only.
    from flowsql_runtime.operators.python_aggregate.program import PythonAggregateProgram

    program = PythonAggregateProgram(calls, input, retracts)
    return _aggregate("aggregate", keys, program.built_in) | _python_calls(keys, program.python)


def _delayed_window(spec: window_specs.EmittingWindowSpec, keys: tuple[NamedColumn, ...]) -> NamedStates:
    """The stores of ``DelayedWindowOperator`` beside the accumulators."""
    first = len(spec.grouping)
    return {
        "told": (*keys, *_flat_rows(spec.output[first : first + len(spec.calls)])),
        "phases": (*keys, NamedColumn("v:alarm", "answers_next", _MOMENT), NamedColumn("v:ended", "ended", _COUNT)),
        "alarms": (*keys, NamedColumn("time", "answers_next", _MOMENT)),
    }


def _python_calls(keys: tuple[NamedColumn, ...], calls: PythonCalls) -> NamedStates:
    accumulators = (NamedColumn(stored, name, t.BYTES) for stored, name in calls.accumulator_columns())
    found: NamedStates = {"python.accumulators": (*keys, *accumulators)}
    word = NamedColumn("v:count", "occurrences" if calls.retracts else "seen", _COUNT)
    for place, columns in enumerate(calls.distinct_values()):
        values = (NamedColumn(f"m{i}", column.name, column.type) for i, column in enumerate(columns))
        found[f"python.distinct{place}"] = (*keys, *values, word)
    return found


def _python_window(
    spec: python_specs.PythonWindowAggregateSpec | python_specs.PythonSessionAggregateSpec,
    keys: tuple[NamedColumn, ...],
) -> NamedStates:
    return _python_program(keys, spec.calls, spec.input, spec.input_retracts, spec.merges)


def _python_program(
    keys: tuple[NamedColumn, ...], calls: Sequence[AggregateCall], input: t.Schema, retracts: bool, merges: bool
) -> NamedStates:
    # Loaded by jobs that have such calls only.
    from flowsql_runtime.operators.python_aggregate.window_program import PandasWindowProgram, python_program

    program = python_program(calls, input, retracts, merges)
    found = _aggregate("window", keys, program)
    if isinstance(program, PandasWindowProgram):
        return found | {"pandas.rows": (*keys, *_flat_rows(program.kept_columns()))}
    return found | _python_calls(keys, program.python)


def _count_window(spec: window_specs.CountWindowSpec) -> NamedStates:
    """The stores of ``CountWindowOperator``."""
    columns = [spec.input[column] for column in spec.grouping]
    keys = (*_keys(columns), NamedColumn("namespace", "window", _COUNT))
    if any(aggregated_with(call) is not None for call in spec.calls):
        found = _python_program(keys, spec.calls, spec.input, spec.input_retracts, merges=False)
    else:
        program = AggregateProgram(spec.calls, spec.input, spec.input_retracts, clear_at_zero=False)
        found = _aggregate("window", keys, program)
    return found | {"seen": (*_keys(columns), NamedColumn("v:rows", "rows", _COUNT))}


def _over(spec: over_specs.OverAggregateSpec) -> NamedStates:
    keys = _keys([spec.input[column] for column in spec.partition])
    if spec.order is over_specs.OverOrder.VALUES:
        return {"rows": (*keys, *_flat_rows(spec.input))} | (_idle(keys) if spec.state_ttl_ms else {})
    # Loaded by jobs that have such windows only.
    from flowsql_runtime.operators.over.frames import OverFrames
    from flowsql_runtime.operators.over.keyed import frames_of

    # Whether rows of one time are answered together changes nothing in what is kept.
    frames = frames_of(spec, timed=False)
    found = _aggregate("over", keys, frames.program) if isinstance(frames, OverFrames) else {}
    time_type = _time_type(spec.input[spec.order_index])
    of_time = spec.preceding is not None and not spec.counts_rows
    if frames.keeps_rows:
        held = [spec.input[index] for index in frames.calls.columns]
        found["held"] = (*keys, *_flat_rows([*held, t.Column("time", time_type)] if of_time else held))
    in_row_time = spec.order is over_specs.OverOrder.ROW_TIME
    if in_row_time or of_time:
        found["waiting"] = (*keys, NamedColumn("namespace", "time", time_type), *_flat_rows(spec.input))
    if of_time or (in_row_time and spec.preceding is not None):
        found["answered"] = (*keys, NamedColumn("v:last", "last_time", time_type))
    if of_time:
        found["answered"] += (NamedColumn("v:over", "frame_ends", time_type),)
        found["over"] = (*keys, NamedColumn("time", "time", time_type))
    return found | (_idle(keys) if spec.state_ttl_ms and not of_time else {})


def _deduplicate(spec: rank_specs.DeduplicateSpec) -> NamedStates:
    keys = _keys([spec.input[key] for key in spec.keys])
    found: NamedStates = {}
    waits = spec.insert_only and spec.time_index is not None
    if spec.time_index is not None:
        time_type = _time_type(spec.input[spec.time_index])
        found["times"] = (*keys, NamedColumn("v:time", "time", time_type))
        if waits:
            found["times"] += (NamedColumn("v:state", "state", _COUNT),)
            found["timers"] = (*keys, NamedColumn("time", "time", time_type))
    if waits or spec.emit_update_before:
        found["rows"] = (*keys, *_row_of_key(spec.input))
    if not found:
        found["seen"] = (*keys, NamedColumn("v:seen", "seen", t.BOOLEAN.as_nullable(False)))
    return found | (_written(keys) if spec.state_ttl_ms else {})


def _match(spec: match_specs.MatchSpec) -> NamedStates:
    keys = _keys([spec.input[column] for column in spec.partition])
    time_type = _time_type(spec.input[spec.order[0][0]])
    computed = (t.Column(f"condition_{number}", expr.type) for number, expr in enumerate(spec.computed))
    stored = (*spec.input, *computed)
    counts = (t.Column(f"rows_of_{variable.name}", t.INT) for variable in spec.variables)
    runs = (t.Column("start", t.INT), t.Column("state", t.INT), t.Column("complete", t.BooleanType()), *counts)
    return {
        "waiting": (*keys, NamedColumn("namespace", "time", time_type), *_flat_rows(stored)),
        "held": (*keys, *_flat_rows((*stored, t.Column("time", time_type)))),
        "runs": (*keys, *_rows(runs)),
        "alarms": (*keys, NamedColumn("time", "time", time_type)),
    }


def _process(spec: process_specs.ProcessTableFunctionSpec) -> NamedStates:
    """State entries and timers by partition, and rows that wait."""
    found: NamedStates = {}
    if not spec.call.keeps_partitions:
        return found
    keyed = [
        _keys([schema[index] for index in table.partition or ()])
        for table, schema in zip(spec.call.tables, spec.inputs, strict=True)
    ]
    keys = keyed[0]
    for entry, ttl_ms in zip(spec.call.states, spec.ttl_ms, strict=True):
        name = f"state.{entry.name}"
        values = [(field.name, t.BYTES if field.type is None else field.type) for field in entry.fields]
        match entry.kind:
            case "value":
                kept = NamedColumn("v:kept", "kept", _COUNT)
                found[name] = (*keys, kept, *(NamedColumn(f"v:{field}", field, type_) for field, type_ in values))
            case "list":
                found[name] = (*keys, NamedColumn("r0", "value", values[0][1]), *(_stamp() if ttl_ms else ()))
            case "map":
                assert entry.key is not None
                entries = (NamedColumn("m0", "key", entry.key), NamedColumn("v:value", "value", values[0][1]))
                written = (NamedColumn("v:written", "written_at", _MOMENT),) if ttl_ms else ()
                found[name] = (*keys, *entries, *written)
                found[f"{name} size"] = (*keys, NamedColumn("v:entries", "entries", _COUNT))
        if ttl_ms and entry.kind != "list":
            found[f"{name} written"] = (*keys, NamedColumn("at", "written_at", _MOMENT))
    if spec.call.has_timers:
        number = NamedColumn("v:number", "number", _COUNT)
        found["timers"] = found["named timers"] = (*keys, NamedColumn("time", "time", _MOMENT))
        found["timer numbers"] = (*keys, NamedColumn("m0", "time", _MOMENT), number)
        named = (NamedColumn("m0", "name", t.STRING), NamedColumn("v:time", "time", _MOMENT))
        found["timers by name"] = (*keys, *named, number)
        found["timers of partition"] = (*keys, NamedColumn("v:timers", "timers", _COUNT))
    for table, schema, own in zip(spec.call.tables, spec.inputs, keyed, strict=True):
        if table.order:
            time_type = _time_type(schema[table.order[0][0]])
            waiting = (*own, NamedColumn("namespace", "time", time_type), *_flat_rows(schema))
            found[f"rows of {table.name} that wait"] = waiting
    return found


def _timed_rows(columns: Sequence[t.Column], more: Sequence[t.Column] = ()) -> tuple[NamedColumn, ...]:
    """Those of ``TimedRows``; nested columns stand as several."""
    found, at = [], 0
    for column in (*columns, *more, t.Column("time", _MOMENT)):
        found.append(NamedColumn(f"r{at}", column.name, t.without_attribute(column.type)))
        at += len(flat_types(to_arrow(column.type)))
    return tuple(found)


def _timers(name: str, keys: tuple[NamedColumn, ...]) -> NamedStates:
    return {
        name: (*keys, NamedColumn("time", "time", _MOMENT)),
        f"{name} of key": (*keys, NamedColumn("v:time", "time", _MOMENT)),
    }


def _time_type(column: t.Column) -> t.LogicalType:
    """Of milliseconds that are kept of a time attribute."""
    return _WINDOW_END if isinstance(column.type, t.TimestampType) else _MOMENT


def _keys(columns: Sequence[t.Column]) -> tuple[NamedColumn, ...]:
    return tuple(
        NamedColumn(f"k{place}", column.name, t.without_attribute(column.type)) for place, column in enumerate(columns)
    )


def _window_keys(columns: Sequence[t.Column]) -> tuple[NamedColumn, ...]:
    return (*_keys(columns), NamedColumn("namespace", "window_end", _WINDOW_END))


def _session_keys(columns: Sequence[t.Column]) -> tuple[NamedColumn, ...]:
    return (*_keys(columns), NamedColumn("namespace", "session", _COUNT))


def _sessions(keys: tuple[NamedColumn, ...]) -> NamedStates:
    """The stores of ``SessionState``."""
    types = (_WINDOW_END, _WINDOW_END, _WINDOW_END, _COUNT, _COUNT, _COUNT)
    names = ("start", "end", "timer", "born", "others", "most")
    bounds = (NamedColumn(f"v:{name}", name, type_) for name, type_ in zip(names, types, strict=True))
    return {"bounds": (*keys, *bounds), "closing": (*keys, NamedColumn("time", "looked_at", _WINDOW_END))}


def _session_aggregate(spec: window_specs.SessionAggregateSpec) -> NamedStates:
    keys = _session_keys([spec.input[column] for column in spec.grouping])
    if isinstance(spec, python_specs.PythonSessionAggregateSpec):
        # Loaded by jobs that have such calls only.
        from flowsql_runtime.operators.python_aggregate.window import window_program

        program: AggregateProgram = window_program(spec)
        found = _python_window(spec, keys) | _sessions(keys)
    else:
        program = AggregateProgram(spec.calls, spec.input, spec.input_retracts, clear_at_zero=False)
        found = _aggregate("window", keys, program) | _sessions(keys)
    if not program.mergeable:
        kept = [spec.input[column] for column in program.columns_read]
        found["rows"] = (*keys, NamedColumn("r0", "sign", _SMALL), *_flat_rows(kept, 1))
    return found


def _flat_rows(columns: Sequence[t.Column], first: int = 0) -> tuple[NamedColumn, ...]:
    """Columns that are kept flat from place ``first`` on."""
    found = []
    for column in columns:
        found.append(NamedColumn(f"r{first}", column.name, t.without_attribute(column.type)))
        first += len(flat_types(to_arrow(column.type)))
    return tuple(found)


def _rows(columns: Sequence[t.Column]) -> tuple[NamedColumn, ...]:
    return tuple(
        NamedColumn(f"r{place}", column.name, t.without_attribute(column.type)) for place, column in enumerate(columns)
    )


def _row_of_key(columns: Sequence[t.Column]) -> tuple[NamedColumn, ...]:
    """Those of a store that keeps one row a key, or NULLs once the row has left."""
    return tuple(
        NamedColumn(f"v:r{place}", column.name, t.without_attribute(column.type).as_nullable())
        for place, column in enumerate(columns)
    )


def _stamp() -> tuple[NamedColumn, ...]:
    return (NamedColumn("stamp", "written_at", _MOMENT),)


def _written(keys: tuple[NamedColumn, ...]) -> NamedStates:
    return {"written": (*keys, NamedColumn("at", "written_at", _MOMENT))}


def _idle(keys: tuple[NamedColumn, ...]) -> NamedStates:
    """The stores of ``IdleKeys``."""
    return {
        "idle": (*keys, NamedColumn("at", "written_at", _MOMENT)),
        "since": (*keys, NamedColumn("v:since", "written_at", _MOMENT)),
    }


def _aggregate(name: str, keys: tuple[NamedColumn, ...], program: AggregateProgram) -> NamedStates:
    """The stores that :meth:`AggregateProgram.open` makes."""
    found: NamedStates = {f"{name}.accumulators": (*keys, *(NamedColumn(*one) for one in program.accumulators()))}
    count = t.BIGINT.as_nullable(False)
    for place, (columns, filters) in enumerate(program.distinct_values()):
        values = [NamedColumn(f"m{i}", column.name, column.type) for i, column in enumerate(columns)]
        word = "occurrences" if program.retracts else "seen"
        counts = [NamedColumn(f"v:{i}", word if filters == 1 else f"{word}_{i}", count) for i in range(filters)]
        found[f"{name}.distinct{place}"] = (*keys, *values, *counts)
    for place, column in enumerate(program.sorted_values()):
        value = NamedColumn("value", column.name, column.type)
        found[f"{name}.sorted{place}"] = (*keys, value, NamedColumn("count", "occurrences", count))
    for call, columns in program.ordered_values():
        rows, at = [], 0
        for column in columns:
            rows.append(NamedColumn(f"r{at}", column.name, column.type))
            at += len(flat_types(to_arrow(column.type)))
        found[f"{name}.values{call}"] = (*keys, *rows)
    return found
