"""GROUP BY: which sets of expressions group, and the aggregation of a SELECT: Project, Aggregate, and what is above."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cmp_to_key

from flowsql_compute.functions.registry import resolve_call, resolve_case, resolve_cast
from flowsql_core.errors import BindError
from flowsql_core.expr import AggregateCall, Call, Case, Cast, Expr, InputRef, Literal, children, with_children
from flowsql_core.python_call import PYTHON
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, LogicalType, RowType, Schema
from flowsql_grammar import ast
from flowsql_planner.bind.expression.aggregate_calls import AggregateCollector, PendingAggregate, mark_index
from flowsql_planner.logical.group_window import AUXILIARY, no_such_window
from flowsql_planner.logical.internal_calls import is_internal
from flowsql_planner.logical.nodes import Aggregate, Project, Rel, TableAggregate, Union
from flowsql_planner.logical.rewrite import unique_names

_GROUPING = frozenset({"GROUPING", "GROUPING_ID"})

Hints = tuple[tuple[str, str], ...]
Sets = tuple[tuple[int, ...], ...]


@record
class Grouping:
    """Bound GROUP BY: all group expressions, and the sets of them when there is more than one.

    ``repeated``: the sets that are written a second time, a third time ...
    """

    exprs: tuple[Expr, ...]
    sets: Sets | None = None
    repeated: tuple[Sets, ...] = ()
    span: Span | None = None


def bind_grouping(node: ast.GroupBy, bind: Callable[[ast.Expression], Expr]) -> Grouping:
    """The group expressions of a GROUP BY clause, equal ones once."""
    exprs: list[Expr] = []

    def index_of(item: ast.Expression) -> int:
        if isinstance(item, ast.NullLiteral):
            raise BindError("illegal-null", "Illegal use of 'NULL'", item.span, "cast it: CAST(NULL AS INT)")
        bound = bind(item)
        if bound not in exprs:
            exprs.append(bound)
        return exprs.index(bound)

    product = itertools.product(*(_element_sets(element, index_of) for element in node.elements))
    sets = [_joined(parts) for parts in product]
    counts = Counter(tuple(sorted(one)) for one in sets)
    unique = tuple(sorted(counts, key=cmp_to_key(_order)))
    repeated: list[Sets] = []
    if node.quantifier is not ast.SetQuantifier.DISTINCT:
        for time in range(1, max(counts.values())):
            repeated.append(tuple(one for one in unique if counts[one] > time))
    return Grouping(tuple(exprs), unique if len(unique) > 1 else None, tuple(repeated), node.span)


def _element_sets(element: ast.GroupingElement, index_of: Callable[[ast.Expression], int]) -> list[tuple[int, ...]]:
    match element:
        case ast.GroupingSet(items):
            return [tuple(index_of(item) for item in items)]
        case ast.RowConstructor(items, False):
            return [tuple(index_of(item) for item in items)]
        case ast.GroupingSets(elements):
            return [one for inner in elements for one in _element_sets(inner, index_of)]
        case ast.Rollup(elements):
            parts = [_element_sets(part, index_of)[0] for part in elements]
            return _distinct(_joined(parts[:length]) for length in range(len(parts), -1, -1))
        case ast.Cube(elements):
            parts = [_element_sets(part, index_of)[0] for part in elements]
            return _distinct(
                _joined(chosen)
                for length in range(len(parts), -1, -1)
                for chosen in itertools.combinations(parts, length)
            )
    return [(index_of(element),)]


def _distinct(sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sets of one ROLLUP or CUBE: a column that stands there twice makes no set twice."""
    return list(dict.fromkeys(tuple(sorted(one)) for one in sets))


def _order(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Calcite's order of sets: those that hold others first, then by their bits as a number."""
    if set(a) >= set(b) or set(b) >= set(a):
        return len(b) - len(a)
    return sum(1 << index for index in a) - sum(1 << index for index in b)


def _joined(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(index for part in parts for index in part))


@dataclass(slots=True)
class Aggregation:
    """The aggregation of one SELECT while it is being built.

    ``lift`` turns expressions over the aggregation's input (with marks for aggregates) into expressions over its
    output; ``build`` makes the nodes once everything above was lifted.
    """

    input: Rel
    grouping: Grouping
    collector: AggregateCollector
    text_of: Callable[[Span | None], str | None]
    _kept: list[PendingAggregate] = field(default_factory=list)

    def lift(self, expr: Expr) -> Expr:
        """An expression over the output of the aggregation.

        Raises:
            BindError: ``Expression 'x' is not being grouped``.
        """
        if expr in self.grouping.exprs and not isinstance(expr, Literal):
            index = self.grouping.exprs.index(expr)
            return InputRef(index, self._group_column(index).type, expr.span)
        of_row = self._field_of_rows(expr)
        if of_row is not None:
            return of_row
        mark = mark_index(expr)
        if mark is not None:
            return self._lift_aggregate(self.collector.calls[mark], expr.span)
        if isinstance(expr, InputRef):
            shown = self.text_of(expr.span) or self.input.schema[expr.index].name
            raise BindError(
                "not-grouped",
                f"Expression '{shown}' is not being grouped",
                expr.span,
                "add it to GROUP BY or wrap it in an aggregate function",
            )
        if isinstance(expr, Call) and expr.function in AUXILIARY and expr.args[0] not in self.grouping.exprs:
            raise no_such_window(expr)
        old = children(expr)
        new = tuple(self.lift(child) for child in old)
        if all(a.type == b.type for a, b in zip(old, new, strict=True)):
            return with_children(expr, new) if old else expr
        return _retype(expr, new)

    def _field_of_rows(self, expr: Expr) -> InputRef | None:
        """A field of the rows that a table aggregate function makes: a column of its own."""
        mark = mark_index(expr.args[0]) if isinstance(expr, Call) and expr.function == "FIELD" else None
        if mark is None or not _makes_rows(self.collector.calls[mark]):
            return None
        assert isinstance(expr, Call)
        call = self.collector.calls[mark]
        self._lift_aggregate(call, expr.span)
        place = int(expr.option("index"))
        return InputRef(len(self.grouping.exprs) + place, _fields_of(call.type)[place].type, expr.span)

    def build(self, names: dict[Expr, str], hints: Hints, span: Span | None, streaming: bool) -> Rel:
        """Project the group expressions and arguments, then aggregate. ``names``: aliases of lifted expressions."""
        columns: list[Expr] = list(self.grouping.exprs)
        calls = []
        width = len(columns)
        for position, pending in enumerate(self._kept):
            name = names.get(self._output_ref(width + position), f"$f{width + position}")
            calls.append(_call(pending, columns, name))
        group_names = [
            names.get(self._output_ref(i)) or _column_name(self.input, expr, i)
            for i, expr in enumerate(self.grouping.exprs)
        ]
        argument_names = [_column_name(self.input, expr, i) for i, expr in enumerate(columns)][width:]
        rel = self.input
        # COUNT(*) of everything needs no column: there is nothing to project.
        if columns and columns != [InputRef(i, column.type) for i, column in enumerate(rel.schema)]:
            rel = Project(rel, tuple(columns), unique_names([*group_names, *argument_names]), span)
        if calls and _makes_rows(calls[0]):
            groups = [Column(name, self._group_column(i).type) for i, name in enumerate(group_names)]
            made = [
                Column(names.get(InputRef(width + i, field.type), field.name), field.type)
                for i, field in enumerate(_fields_of(calls[0].type))
            ]
            whole = unique_names([column.name for column in (*groups, *made)])
            schema = tuple(Column(name, column.type) for name, column in zip(whole, (*groups, *made), strict=True))
            return TableAggregate(rel, tuple(range(width)), calls[0], schema, span)
        output_names = unique_names([*group_names, *(call.name for call in calls)])
        calls = [replace(call, name=name) for call, name in zip(calls, output_names[width:], strict=True)]
        schema = (
            *(Column(output_names[i], self._group_column(i).type) for i in range(width)),
            *(Column(call.name, call.type) for call in calls),
        )
        if not self.grouping.repeated:
            return Aggregate(rel, tuple(range(width)), tuple(calls), schema, self.grouping.sets, hints, span)
        everything = tuple(range(width))
        alone = any(len(sets) == 1 and len(sets[0]) < width for sets in self.grouping.repeated)
        if alone and streaming and not any(call.function in _GROUPING for call in calls):
            # Flink 2.3 finds a plan beside GROUPING alone, and in batch mode.
            raise BindError(
                "repeated-grouping-set",
                "Of the grouping sets that are written more than once, one alone without all columns of GROUP BY "
                "cannot be planned",
                self.grouping.span,
                "GROUP BY DISTINCT takes each grouping set once",
            )
        parts = []
        for number, sets in enumerate((self.grouping.sets or (everything,), *self.grouping.repeated)):
            several = sets if len(sets) > 1 else None
            every = Aggregate(rel, everything, tuple(calls), schema, several, hints, span)
            parts.append(self._part(every, number, sets[0]))
        return Union(tuple(parts), schema, span)

    def _part(self, whole: Aggregate, number: int, first: tuple[int, ...]) -> Rel:
        """The sets that are written so many times at least, as an aggregate of their own: GROUP_ID is a constant of it.

        Columns keep the types of all sets together. One set alone, ``first``, groups by all expressions, as in Flink
        2.3, whatever it names; GROUPING still says which of them it lacks.
        """
        width, schema = len(whole.grouping), whole.schema
        constants: list[Literal | None] = []
        for call in whole.calls:
            if call.function == "GROUP_ID":
                constants.append(Literal(number, call.type))
            elif whole.grouping_sets is None and call.function in _GROUPING:
                bits = "".join(str(int(arg.index not in first)) for arg in call.args)
                constants.append(Literal(int(bits, 2), call.type))
            else:
                constants.append(None)
        kept = [place for place, constant in enumerate(constants) if constant is None]
        groups = schema[:width]
        if whole.grouping_sets is None:
            groups = tuple(Column(c.name, e.type) for c, e in zip(groups, self.grouping.exprs, strict=True))
        made = replace(
            whole,
            calls=tuple(whole.calls[place] for place in kept),
            schema=(*groups, *(schema[width + place] for place in kept)),
        )
        exprs: list[Expr] = []
        for place, column in enumerate(schema):
            constant = None if place < width else constants[place - width]
            index = place if place < width else width + kept.index(place - width) if constant is None else -1
            found: Expr = InputRef(index, made.schema[index].type) if constant is None else constant
            same = found.type.nullable == column.type.nullable
            exprs.append(found if same else Cast(found, column.type, implicit=True))
        if all(isinstance(e, InputRef) for e in exprs) and made.schema == schema:
            return made
        return Project(made, tuple(exprs), tuple(column.name for column in schema), whole.span)

    def _group_column(self, index: int) -> Column:
        type_ = self.grouping.exprs[index].type
        sets = self.grouping.sets
        if sets is not None and any(index not in one for one in sets):
            type_ = type_.as_nullable()
        return Column("", type_)

    def _lift_aggregate(self, pending: PendingAggregate, span: Span | None) -> Expr:
        if pending.function in ("GROUPING", "GROUPING_ID", "GROUP_ID"):
            for arg in pending.args:
                if arg not in self.grouping.exprs:
                    raise BindError(
                        "not-grouped", f"Argument to operator '{pending.function}' must be a grouped expression", span
                    )
            # Without grouping sets every column takes part, and what stands there once is number 0.
            if not self.grouping.repeated and (self.grouping.sets is None or pending.function == "GROUP_ID"):
                return Literal(0, pending.type, span)
        if pending not in self._kept:
            self._kept.append(pending)
        return InputRef(len(self.grouping.exprs) + self._kept.index(pending), pending.type, span)

    def _output_ref(self, index: int) -> InputRef:
        width = len(self.grouping.exprs)
        type_ = self._group_column(index).type if index < width else self._kept[index - width].type
        return InputRef(index, type_)


def _makes_rows(call: AggregateCall | PendingAggregate) -> bool:
    """Whether a call is of a table aggregate function."""
    if call.function != PYTHON:
        return False
    # Imported on use: only calls of user functions load what Python functions need.
    from flowsql_core.udf_aggregates import TableAggregateUdf

    return isinstance(dict(call.options)["function"].function, TableAggregateUdf)


def _fields_of(type_: LogicalType) -> Schema:
    """The columns of the rows that a table aggregate function makes: the fields of a ROW, any other value alone."""
    if isinstance(type_, RowType):
        return tuple(Column(field.name, field.type) for field in type_.fields)
    return (Column("f0", type_),)


def _call(pending: PendingAggregate, columns: list[Expr], name: str) -> AggregateCall:
    """The call over projected columns; missing ones are appended to ``columns``."""

    def column(expr: Expr) -> InputRef:
        if expr not in columns:
            columns.append(expr)
        return InputRef(columns.index(expr), expr.type, expr.span)

    return AggregateCall(
        pending.function,
        tuple(column(arg) for arg in pending.args),
        pending.type,
        name,
        pending.distinct,
        None if pending.filter is None else column(pending.filter).index,
        pending.options,
        tuple((column(expr).index, descending) for expr, descending in pending.order_by),
        pending.span,
    )


def _column_name(input_: Rel, expr: Expr, position: int) -> str:
    return input_.schema[expr.index].name if isinstance(expr, InputRef) else f"$f{position}"


def _retype(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """The expression over operands whose types changed: grouping sets make NOT NULL columns nullable."""
    match expr:
        case Call(function) if is_internal(function):
            return with_children(expr, new)
        case Call(function, _, _, options, span):
            return resolve_call(function, new, options, span)
        case Cast(_, type_, safe, implicit, span):
            made = resolve_cast(new[0], type_.as_nullable(new[0].type.nullable or safe), safe, span)
            return replace(made, implicit=implicit) if isinstance(made, Cast) else made
        case Case(conditions, _, _, _, span):
            n = len(conditions)
            return resolve_case(new[:n], new[n : 2 * n], new[2 * n], span)
    return expr
