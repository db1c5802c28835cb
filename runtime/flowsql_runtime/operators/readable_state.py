"""What stands in the saved tables of SQL operators: columns with the names of the query and SQL types.

Tables of snapshots name columns by place (``k0``, ``r1``, ``v:sum(2)``; docs/snapshots.md). Their meaning follows from
the operator's spec; a snapshot keeps it, so that whoever reads it needs no query.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from flowsql_core.errors import InternalError
from flowsql_core.graph import specs, time_join_specs, window_specs
from flowsql_core.graph.specs import JoinKind
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.join.side import counted_sides
from flowsql_runtime.state.flat_rows import flat_types

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
    specs.WindowAggregateSpec,
    window_specs.SessionTableFunctionSpec,
    specs.JoinSpec,
    specs.WindowJoinSpec,
    specs.SinkMaterializerSpec,
    specs.SinkConflictsSpec,
    time_join_specs.IntervalJoinSpec,
    time_join_specs.TemporalJoinSpec,
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
            found = _aggregate("aggregate", keys, AggregateProgram(local.calls, local.input, local.input_retracts))
            return found | (_written(keys) if spec.state_ttl_ms else {})
        case window_specs.SessionAggregateSpec():
            return _session_aggregate(spec)
        case window_specs.SessionTableFunctionSpec(input=input):
            keys = _session_keys([input[column] for column in spec.partition])
            before = (NamedColumn("r0", "number", _COUNT), NamedColumn("r1", "kind", _SMALL))
            return {"rows": (*keys, *before, *_flat_rows(input, len(before)))} | _sessions(keys)
        case specs.WindowAggregateSpec(grouping=grouping, calls=calls, input=input, input_retracts=retracts):
            keys = _window_keys([input[column] for column in grouping])
            found = _aggregate("window", keys, AggregateProgram(calls, input, retracts, clear_at_zero=False))
            if spec.window.kind is specs.WindowKind.SESSION:
                found["starts"] = (*keys, NamedColumn("v:start", "window_start", _WINDOW_END))
            return found
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
    program = AggregateProgram(spec.calls, spec.input, spec.input_retracts, clear_at_zero=False)
    found = _aggregate("window", keys, program) | _sessions(keys)
    if not program.mergeable:
        kept = [spec.input[column] for column in program.columns_read]
        found["rows"] = (*keys, NamedColumn("r0", "sign", _SMALL), *_flat_rows(kept, 1))
    return found


def _flat_rows(columns: Sequence[t.Column], first: int) -> tuple[NamedColumn, ...]:
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


def _stamp() -> tuple[NamedColumn, ...]:
    return (NamedColumn("stamp", "written_at", _MOMENT),)


def _written(keys: tuple[NamedColumn, ...]) -> NamedStates:
    return {"written": (*keys, NamedColumn("at", "written_at", _MOMENT))}


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
