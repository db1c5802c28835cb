"""Plans of queries that read the row around them, as plans that do not: what :func:`decorrelate` is made of.

Two ways, those of Flink's plans. :func:`hoisted`: the conditions that read the row leave the query and become part of
the join. :class:`Grouper`: the query answers for all rows at once, with the parameters of an answer beside it.

Source: Flink's ``SubQueryDecorrelator``, Calcite's ``RelDecorrelator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from flowsql_compute.functions.registry import resolve_call
from flowsql_core.errors import PlanError
from flowsql_core.expr import Call, Expr, InputRef, Literal, conjunction, conjuncts, input_refs, remap_inputs
from flowsql_core.graph.specs import JoinKind
from flowsql_core.span import Span
from flowsql_core.types.logical import BooleanType, Column, without_attribute
from flowsql_planner.logical.correlation import (
    first_outer_call,
    is_correlated,
    outer_call,
    outer_calls,
    replace_outer,
    slot_of,
)
from flowsql_planner.logical.internal_calls import query_calls
from flowsql_planner.logical.nodes import (
    Aggregate,
    Apply,
    Correlate,
    Filter,
    Join,
    Project,
    Rel,
    Sort,
)
from flowsql_planner.logical.rewrite import (
    make_aggregate,
    make_correlate,
    make_join,
    ref,
    refs,
    retype_expr,
    select,
    unique_names,
    walk,
)
from flowsql_planner.optimize.rules.remove_aggregate_on_unique_key import unique_keys

_PAIRED: Final = (JoinKind.INNER,)
_KEEPS_LEFT: Final = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


@dataclass(slots=True)
class Frame:
    """A plan without references to the row around it.

    ``places``: old columns -> its columns. ``slots``: parameters -> columns that hold them. ``conditions``: what was
    taken out of the plan, over its columns and, as ``$OUTER``, the parameters.
    """

    rel: Rel
    places: dict[int, int]
    slots: dict[int, int] = field(default_factory=dict)
    conditions: list[Expr] = field(default_factory=list)

    def moved(self, expr: Expr) -> Expr:
        """An expression over the old columns."""
        return retype_expr(remap_inputs(expr, lambda index: self.places[index]), self.rel.schema)


def _unchanged(rel: Rel) -> Frame:
    return Frame(rel, {index: index for index in range(len(rel.schema))})


# Conditions that leave the query


def hoisted(rel: Rel) -> Frame | None:
    """The plan with the conditions that read the row around it taken out; None where they cannot leave it."""
    if not is_correlated(rel):
        return _unchanged(rel)
    match rel:
        case Project():
            return _hoisted_project(rel)
        case Filter():
            return _hoisted_filter(rel)
        case Aggregate(grouping_sets=None, window=None):
            return _hoisted_aggregate(rel)
        case Join():
            return _hoisted_join(rel)
        case Sort(fetch=None, offset=0):
            return hoisted(rel.input)
    return None


def _hoisted_project(rel: Project) -> Frame | None:
    frame = hoisted(rel.input)
    if frame is None or any(next(outer_calls(expr), None) for expr in rel.exprs):
        return None
    exprs, names = [frame.moved(expr) for expr in rel.exprs], list(rel.names)
    kept: dict[int, int] = {}
    for index in sorted(frozenset().union(*map(input_refs, frame.conditions))):
        column = ref(frame.rel.schema, index)
        kept[index] = _position(exprs, names, column, frame.rel.schema[index].name)
    made = Project(frame.rel, tuple(exprs), unique_names(tuple(names)), rel.span)
    conditions = [remap_inputs(part, lambda index: kept[index]) for part in frame.conditions]
    return Frame(made, {index: index for index in range(len(rel.exprs))}, conditions=conditions)


def _position(exprs: list[Expr], names: list[str], column: Expr, name: str) -> int:
    """Where a projection has a column, which is appended if it has not."""
    if column not in exprs:
        exprs.append(column)
        names.append(name)
    return exprs.index(column)


def _hoisted_filter(rel: Filter) -> Frame | None:
    frame = hoisted(rel.input)
    if frame is None:
        return None
    staying: list[Expr] = []
    for part in conjuncts(rel.condition):
        moved = frame.moved(part)
        if next(outer_calls(part), None) is None:
            staying.append(moved)
        elif _may_leave(part):
            frame.conditions.append(moved)
        else:
            return None
    kept = conjunction(tuple(staying))
    return frame if kept is None else replace(frame, rel=Filter(frame.rel, kept, rel.span))


def _may_leave(part: Expr) -> bool:
    """As in Flink, a condition with OR stays in its query; one that asks another query does so, too."""
    is_or = isinstance(part, Call) and part.function == "OR"
    return not is_or and next(query_calls(part), None) is None


def _hoisted_aggregate(rel: Aggregate) -> Frame | None:
    """Rows of all parameters are grouped at once: by the columns that are equal to them, too."""
    frame = hoisted(rel.input)
    if frame is None:
        return None
    columns = [_equal_column(part) for part in frame.conditions]
    added = [column for column in columns if column is not None]
    if len(added) < len(columns):
        return None
    grouped, place = _grouped(rel, frame, added)
    order = [grouped.places[index] for index in range(len(rel.schema))]
    order += [index for index in range(len(grouped.rel.schema)) if index not in order]
    conditions = [remap_inputs(part, lambda index: order.index(place[index])) for part in frame.conditions]
    rows = select(grouped.rel, tuple(order))
    return Frame(rows, {index: index for index in range(len(rel.schema))}, conditions=conditions)


def _equal_column(part: Expr) -> int | None:
    """The column that a condition holds equal to something of the row around; None for other conditions."""
    match part:
        case Call(function="=", args=(a, b)):
            for column, other in ((a, b), (b, a)):
                if isinstance(column, InputRef) and not input_refs(other):
                    return column.index
    return None


def _grouped(rel: Aggregate, frame: Frame, added: Iterable[int]) -> tuple[Frame, dict[int, int]]:
    """The aggregate over the frame's plan, grouped by further columns, with the places of all grouping columns."""
    old = [frame.places[index] for index in rel.grouping]
    grouping = tuple(dict.fromkeys((*old, *added)))
    calls = tuple(
        replace(
            call,
            args=tuple(ref(frame.rel.schema, frame.places[arg.index]) for arg in call.args),
            filter_index=None if call.filter_index is None else frame.places[call.filter_index],
            order_by=tuple((frame.places[index], descending) for index, descending in call.order_by),
        )
        for call in rel.calls
    )
    width = len(rel.grouping)
    calls = tuple(
        replace(call, name=f"$f{len(grouping) + i}") if call.name == f"$f{width + i}" else call
        for i, call in enumerate(calls)
    )
    made = make_aggregate(rel, frame.rel, grouping, calls)
    names = unique_names(tuple(column.name for column in made.schema))
    schema = tuple(Column(name, column.type) for name, column in zip(names, made.schema, strict=True))
    place = {index: position for position, index in enumerate(grouping)}
    places = {position: place[index] for position, index in enumerate(old)}
    places |= {len(rel.grouping) + position: len(grouping) + position for position in range(len(calls))}
    return Frame(replace(made, schema=schema), places), place


def _hoisted_join(rel: Join) -> Frame | None:
    left, right = hoisted(rel.left), hoisted(rel.right)
    if left is None or right is None:
        return None
    if (left.conditions and rel.kind not in _KEEPS_LEFT) or (right.conditions and rel.kind not in _PAIRED):
        return None
    parts = conjuncts(rel.condition)
    reading = [part for part in parts if next(outer_calls(part), None)]
    if reading and (rel.kind not in _PAIRED or not all(map(_may_leave, reading))):
        return None
    width, pairs = len(left.rel.schema), _pairs(rel, left, right)
    on = conjunction(tuple(pairs.moved(part) for part in parts if part not in reading))
    conditions = [*left.conditions, *(remap_inputs(part, lambda index: index + width) for part in right.conditions)]
    conditions += [pairs.moved(part) for part in reading]
    return Frame(make_join(rel, left.rel, right.rel, on), pairs.places, conditions=conditions)


def _pairs(rel: Join, left: Frame, right: Frame) -> Frame:
    """Both sides beside each other, as the condition of the join sees them."""
    old, width = len(rel.left.schema), len(left.rel.schema)
    places = left.places | {old + index: width + place for index, place in right.places.items()}
    return Frame(joined(left.rel, right.rel, JoinKind.INNER, None), places)


# Answers for all parameters at once


@dataclass(slots=True)
class Grouper:
    """Plans of one query over the parameters that the rows of ``left`` give it."""

    left: Rel
    parameters: tuple[Expr, ...]

    def frame(self, rel: Rel) -> Frame:
        """The plan with the parameters beside its rows, as far as it reads them.

        Raises:
            PlanError: it reads them where Flink's plans have no form for it.
        """
        if not is_correlated(rel):
            return _unchanged(rel)
        match rel:
            case Project():
                return self._project(rel)
            case Filter():
                return self._filter(rel)
            case Aggregate(grouping_sets=None, window=None):
                return self._aggregate(rel)
            case Join(kind=JoinKind.INNER | JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI):
                return self._join(rel)
            case Correlate():
                return self._correlate(rel)
            case Sort(fetch=None, offset=0):
                return self.frame(rel.input)
        raise refusal(rel)

    def _project(self, rel: Project) -> Frame:
        source = self._with_slots(self.frame(rel.input), _slots_in(rel.exprs))
        exprs, names = [self._bound(source, expr) for expr in rel.exprs], list(rel.names)
        slots: dict[int, int] = {}
        for slot in self._in_order(source.slots):
            index = source.slots[slot]
            column = ref(source.rel.schema, index)
            slots[slot] = _position(exprs, names, column, source.rel.schema[index].name)
        made = Project(source.rel, tuple(exprs), unique_names(tuple(names)), rel.span)
        return Frame(made, {index: index for index in range(len(rel.exprs))}, slots)

    def _filter(self, rel: Filter) -> Frame:
        source = self.frame(rel.input)
        missing = self._in_order(_slots_in([rel.condition]) - source.slots.keys())
        equal = {slot: _column_equal_to(slot, rel.condition) for slot in missing}
        if all(column is not None for column in equal.values()):
            source.slots |= {slot: source.places[column] for slot, column in equal.items() if column is not None}
        else:
            source = self._with_slots(source, missing)
        bound = (_not_null(part) for part in conjuncts(self._bound(source, rel.condition)))
        kept = conjunction(tuple(part for part in bound if part is not None))
        return source if kept is None else replace(source, rel=Filter(source.rel, kept, rel.span))

    def _aggregate(self, rel: Aggregate) -> Frame:
        source = self.frame(rel.input)
        if _is_single_value(rel) and _is_row_of_table(source):
            return replace(source, places={0: source.places[rel.calls[0].args[0].index]})
        constants = _constants(source.rel) if source.slots else {}
        fixed = {
            position: constants[source.places[index]]
            for position, index in enumerate(rel.grouping)
            if source.places[index] in constants
        }
        rest = replace(rel, grouping=tuple(index for i, index in enumerate(rel.grouping) if i not in fixed))
        made, place = _grouped(rest, source, [source.slots[slot] for slot in self._in_order(source.slots)])
        made.slots = {slot: place[index] for slot, index in source.slots.items()}
        return _with_constants(rel, made, fixed) if fixed else made

    def _join(self, rel: Join) -> Frame:
        left, right = self.frame(rel.left), self.frame(rel.right)
        if right.slots and rel.kind is not JoinKind.INNER:
            raise refusal(rel.right)
        missing = _slots_in(conjuncts(rel.condition)) - left.slots.keys() - right.slots.keys()
        left = self._with_slots(left, missing)
        width, pairs = len(left.rel.schema), _pairs(rel, left, right)
        pairs.slots = {slot: width + index for slot, index in right.slots.items()} | left.slots
        parts = [self._bound(pairs, part) for part in conjuncts(rel.condition)]
        for slot in sorted(left.slots.keys() & right.slots.keys()):
            one, other = (ref(pairs.rel.schema, index) for index in (left.slots[slot], width + right.slots[slot]))
            parts.append(resolve_call("=", (one, other)))
        return replace(pairs, rel=make_join(rel, left.rel, right.rel, conjunction(tuple(parts))))

    def _correlate(self, rel: Correlate) -> Frame:
        source = self._with_slots(self.frame(rel.input), _slots_in([rel.collection]))
        made = make_correlate(rel, source.rel, self._bound(source, rel.collection))
        old, width = len(rel.input.schema), len(source.rel.schema)
        places = source.places | {old + index: width + index for index in range(len(rel.added))}
        return Frame(made, places, source.slots)

    def _with_slots(self, frame: Frame, wanted: Iterable[int]) -> Frame:
        """The frame beside all values that some parameters have: for what no column of the query is equal to."""
        missing = self._in_order(set(wanted) - frame.slots.keys())
        if not missing:
            return frame
        values = [self.parameters[slot] for slot in missing]
        names = unique_names(
            tuple(_name_of(value, self.left, slot) for slot, value in zip(missing, values, strict=True))
        )
        chosen = Project(self.left, tuple(values), names)
        distinct = Aggregate(chosen, tuple(range(len(values))), (), chosen.schema)
        width = len(frame.rel.schema)
        slots = frame.slots | {slot: width + index for index, slot in enumerate(missing)}
        return replace(frame, rel=joined(frame.rel, distinct, JoinKind.INNER, None), slots=slots)

    def _in_order(self, slots: Iterable[int]) -> list[int]:
        """Parameters in the order of the columns that they are, as Flink groups by them."""
        return sorted(slots, key=lambda slot: _order_of(self.parameters[slot], slot))

    @staticmethod
    def _bound(frame: Frame, expr: Expr) -> Expr:
        """An expression of the query, over columns alone."""
        columns = frame.rel.schema
        moved = remap_inputs(expr, lambda index: frame.places[index])
        bound = replace_outer(moved, lambda call: ref(columns, frame.slots[slot_of(call)]))
        return retype_expr(bound, columns)


def joined(left: Rel, right: Rel, kind: JoinKind, condition: Expr | None, span: Span | None = None) -> Join:
    """A join of two plans; ``span``: of the query that it stands for."""
    bare = Join(left, right, kind, condition, (), span=span)
    return make_join(bare, left, right, condition)


def refusal(rel: Rel) -> PlanError:
    """The error for a query that reads the row around it where it cannot be decorrelated."""
    found = first_outer_call(rel)
    place = None if found is None else found.span
    return PlanError(
        "correlated-subquery",
        f"A query cannot read a column of the row around it {_where(rel)}",
        place or getattr(rel, "span", None),
        "compare the column in the WHERE of the query, or write a JOIN",
    )


def _where(rel: Rel) -> str:
    match rel:
        case Sort():
            return "below ORDER BY with LIMIT"
        case Aggregate():
            return "below GROUPING SETS"
        case Join() | Apply():
            return "in this join"
        case _:
            return f"in a part of {type(rel).__name__.upper()}" if not isinstance(rel, Project | Filter) else "here"


def _slots_in(exprs: Iterable[Expr]) -> set[int]:
    return {slot_of(call) for expr in exprs for call in outer_calls(expr)}


def _column_equal_to(slot: int, condition: Expr) -> int | None:
    """The column that a condition holds equal to a parameter."""
    for part in conjuncts(condition):
        match part:
            case Call(function="=", args=(a, b)):
                for column, other in ((a, b), (b, a)):
                    found = outer_call(other)
                    if isinstance(column, InputRef) and found is not None and slot_of(found) == slot:
                        return column.index
    return None


def _not_null(part: Expr) -> Expr | None:
    """``x = x``, which a column's equality with itself leaves, as Flink writes it; None where it always holds."""
    match part:
        case Call(function="=", args=(InputRef() as a, InputRef() as b)) if a.index == b.index:
            return resolve_call("IS NOT NULL", (a,)) if a.type.nullable else None
    return part


def _is_single_value(rel: Aggregate) -> bool:
    return not rel.grouping and [call.function for call in rel.calls] == ["SINGLE_VALUE"]


def _is_row_of_table(frame: Frame) -> bool:
    """Whether the parameters identify a row: of a table by its primary key, as in Flink no group by its keys."""
    given = set(frame.slots.values())
    grouped = any(isinstance(node, Aggregate) for node in walk(frame.rel))
    return not grouped and any(key <= given for key in unique_keys(frame.rel))


def _constants(rel: Rel) -> dict[int, Literal]:
    """Columns of a projection that are the same in each row."""
    if not isinstance(rel, Project):
        return {}
    return {index: expr for index, expr in enumerate(rel.exprs) if isinstance(expr, Literal)}


def _with_constants(rel: Aggregate, frame: Frame, fixed: dict[int, Literal]) -> Frame:
    """An aggregate whose constant keys stand beside its answer."""
    exprs: list[Expr] = list(refs(frame.rel.schema))
    names = [column.name for column in frame.rel.schema]
    kept = [position for position in range(len(rel.grouping)) if position not in fixed]
    places = {position: frame.places[index] for index, position in enumerate(kept)}
    for position, value in fixed.items():
        places[position] = len(exprs)
        exprs.append(value)
        names.append(rel.schema[position].name)
    calls = range(len(rel.calls))
    places |= {len(rel.grouping) + call: frame.places[len(kept) + call] for call in calls}
    return Frame(Project(frame.rel, tuple(exprs), unique_names(tuple(names))), places, frame.slots)


def _name_of(value: Expr, rel: Rel, slot: int) -> str:
    return rel.schema[value.index].name if isinstance(value, InputRef) else f"$f{slot}"


def _order_of(value: Expr, slot: int) -> tuple[bool, int]:
    return (True, value.index) if isinstance(value, InputRef) else (False, slot)


def equalities(parameters: Sequence[Expr], frame: Frame, width: int) -> list[Expr]:
    """Each parameter equal to the column that holds it, over ``width`` columns of the row and then the frame's."""
    parts: list[Expr] = []
    for slot, index in sorted(frame.slots.items(), key=lambda pair: _order_of(parameters[pair[0]], pair[0])):
        type_ = frame.rel.schema[index].type
        value = parameters[slot]
        nullable = value.type.nullable or type_.nullable
        if without_attribute(value.type).same(without_attribute(type_)):
            parts.append(Call("=", (value, InputRef(width + index, type_)), BooleanType(nullable=nullable)))
        else:
            parts.append(resolve_call("=", (value, InputRef(width + index, type_))))
    return parts
