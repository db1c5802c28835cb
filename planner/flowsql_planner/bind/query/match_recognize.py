"""MATCH_RECOGNIZE: the pattern, and expressions over the rows of a match.

Source: Flink manual, "Pattern Recognition"; Flink, ``StreamExecMatch`` and ``MatchCodeGenerator``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from flowsql_compute.eval.not_null import declare
from flowsql_compute.functions.registry import is_aggregate
from flowsql_core.errors import BindError, NotSupportedYetError, PlanError
from flowsql_core.expr import AggregateCall, Expr, InputRef, Literal, remap_inputs
from flowsql_core.graph.match_specs import (
    MatchSkip,
    MatchTime,
    PatternAggregate,
    PatternColumn,
    PatternExpression,
    PatternRead,
    PatternVariable,
)
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.aggregate_calls import AggregateCollector
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope, scope_of
from flowsql_planner.logical.nodes import Match, Rel, SortKey

_NAVIGATION = frozenset({"FIRST", "LAST"})
_PHYSICAL_OFFSETS = frozenset({"PREV", "NEXT"})


@dataclass(slots=True)
class _Reads:
    """What one expression finds in a match, equal things once. ``computed``: columns made of each row, of all."""

    width: int
    computed: list[Expr]
    reads: list[PatternRead] = field(default_factory=list)

    def column(self, read: PatternRead, type_: t.LogicalType, span: Span | None) -> InputRef:
        if read not in self.reads:
            self.reads.append(read)
        return InputRef(self.reads.index(read), type_, span)

    def stored(self, expr: Expr) -> int:
        """The stored column that holds an expression over a row of the input."""
        if isinstance(expr, InputRef):
            return expr.index
        if expr not in self.computed:
            self.computed.append(expr)
        return self.width + self.computed.index(expr)


@record
class _PatternBinder(ExpressionBinder):
    """Binds columns to rows of a match.

    ``navigation``: (first, offset) inside of FIRST and LAST. ``row_of``: inside of aggregates, where columns are those
    of a row, the variables that were named.
    """

    reads: _Reads | None = None
    variables: tuple[str, ...] = ()
    navigation: tuple[bool, int] | None = None
    row_of: list[int | None] | None = None
    row_time: t.LogicalType | None = None
    measures: bool = False

    def _column(self, node: ast.ColumnRef) -> Expr:
        parts = node.path.parts
        variable: int | None = None
        if len(parts) > 1 and parts[0].text in self.variables:
            variable, parts = self.variables.index(parts[0].text), parts[1:]
        elif len(parts) > 1 and not self.scope.starts_with_row(node.path.texts):
            raise BindError("table-not-found", f"Table '{parts[0].text}' not found", parts[0].span)
        found, used = self.scope.resolve_path([part.text for part in parts], [part.span for part in parts])
        assert isinstance(found, InputRef)
        if self.row_of is not None:
            self.row_of.append(variable)
            made: Expr = found
        else:
            assert self.reads is not None
            first, offset = self.navigation or (False, 0)
            read = PatternColumn(variable, found.index, first, offset)
            made = self.reads.column(read, found.type.as_nullable(), node.span)
            # As in Flink, a measure over a column NOT NULL is so, though there may be no row.
            made = declare(made, found.type) if self.measures else made
        for part in parts[used:]:
            made = self.field(made, part.text, part.span)
        return made

    def _function(self, node: ast.FunctionCall) -> Expr:
        name = node.name.last.text.upper() if len(node.name.parts) == 1 else ""
        if node.match_scope is ast.MatchScope.RUNNING:
            raise PlanError("match-function", f"Unsupported call: RUNNING({name})", node.span)
        if name in _PHYSICAL_OFFSETS:
            message = "Flink does not support physical offsets within partition."
            raise PlanError("match-offset", message, node.span, "LAST(A.x, 1) is the row before among those of A")
        if name in ("CLASSIFIER", "MATCH_NUMBER"):
            raise PlanError("match-function", f"Unsupported call: {name}()", node.span)
        if name == "MATCH_ROWTIME" and len(node.args) <= 1:
            return self._match_time(node)
        if name == "MATCH_PROCTIME" and not node.args:
            return self.call("PROCTIME", (), (), node.span)
        if name in _NAVIGATION and node.over is None:
            return self._navigated(name == "FIRST", node)
        if node.over is None and is_aggregate(name):
            return self._match_aggregate(name, node)
        return ExpressionBinder._function(self, node)

    def _match_time(self, node: ast.FunctionCall) -> Expr:
        if not self.measures or self.row_time is None or self.reads is None:
            where = "a pattern that is not ordered by a row time" if self.measures else f"{self.clause}"
            raise PlanError("match-rowtime", f"MATCH_ROWTIME() is not possible in {where}", node.span)
        # A row time that is named gives the time of the match, too; its type is that of the column.
        types = [self._row_time_type(arg) for arg in node.args if isinstance(arg, ast.Node)]
        return self.reads.column(MatchTime.ROW_TIME, types[0] if types else self.row_time, node.span)

    def _row_time_type(self, node: ast.Node) -> t.LogicalType:
        """The type of a column of row times, named with or without a variable."""
        path = node.path.parts if isinstance(node, ast.ColumnRef) else ()
        names = path[1:] if len(path) > 1 and path[0].text in self.variables else path
        if names:
            type_ = self.scope.resolve_path([name.text for name in names], [name.span for name in names])[0].type
            if t.is_rowtime(type_):
                return type_
            found = f", but is '{type_.root}'"
        else:
            found = ""
        message = f"The function MATCH_ROWTIME requires argument to be a row time attribute type{found}."
        raise PlanError("match-rowtime", message, node.span, "MATCH_ROWTIME() is the time of the match")

    def _navigated(self, first: bool, node: ast.FunctionCall) -> Expr:
        if self.navigation is not None or self.row_of is not None:
            raise BindError("match-navigation", "FIRST and LAST cannot be nested", node.span)
        if not 1 <= len(node.args) <= 2 or not isinstance(node.args[0], ast.Node):
            raise BindError("argument-count", "FIRST and LAST take a value and an offset", node.span)
        offset = 0
        if len(node.args) == 2:
            bound = self.bind(node.args[1])
            if not isinstance(bound, Literal) or not isinstance(bound.type, t.IntegerType) or bound.value < 0:
                raise BindError("match-offset", "an offset is a constant whole number, 0 or more", node.args[1].span)
            offset = int(bound.value)
        assert self.reads is not None
        known = len(self.reads.reads)
        made = _with(self, navigation=(first, offset)).bind(node.args[0])
        named = {read.variable for read in self.reads.reads[known:] if isinstance(read, PatternColumn)}
        if len(named) > 1:
            raise BindError("match-variables", "Multiple pattern variables in FIRST or LAST", node.span)
        return made

    def _match_aggregate(self, name: str, node: ast.FunctionCall) -> Expr:
        if self.row_of is not None:
            raise BindError("nested-aggregate", "Aggregate expressions cannot be nested", node.span)
        if self.navigation is not None:
            raise BindError("match-navigation", f"{name} cannot stand in FIRST or LAST", node.span)
        if node.quantifier is not None:
            raise BindError("not-an-aggregate", f"DISTINCT/ALL not allowed with {name} function", node.span)
        if node.filter is not None or node.order_by or node.within_group:
            raise NotSupportedYetError(f"FILTER or ORDER BY of {name} in MATCH_RECOGNIZE", node.span)
        star = node.args[0] if len(node.args) == 1 else None
        if isinstance(star, ast.Star) and star.qualifier is not None:
            raise BindError("star-argument", "Unknown field '*'", star.span)
        collector = AggregateCollector(grouped=False)
        named: list[int | None] = []
        inner = _with(self, aggregates=collector, row_of=named)
        ExpressionBinder._aggregate(inner, name, node)
        call = collector.calls[0]
        if len(set(named)) > 1:
            raise BindError("match-variables", f"Multiple pattern variables in '{name}'", node.span)
        if not named and not isinstance(star, ast.Star):
            raise PlanError("match-variables", "No pattern variable specified in aggregate", node.span)
        assert self.reads is not None
        args = tuple(InputRef(self.reads.stored(arg), arg.type) for arg in call.args)
        made = AggregateCall(call.function, args, call.type, "", options=call.options)
        return self.reads.column(PatternAggregate(named[0] if named else None, made), call.type, node.span)


def _with(binder: _PatternBinder, **changes: object) -> _PatternBinder:
    """The binder with other fields."""
    return replace(binder, **changes)  # type: ignore[arg-type]


def bind_match(context: BindContext, node: ast.MatchRecognize, source: Rel, named: Scope) -> Rel:
    """The relation of matches. ``named``: the columns of ``source`` under its name.

    As in Flink, ``^`` and ``$`` say nothing, and a subset of variables has no rows.

    Raises:
        BindError: names or types do not fit.
        PlanError: what Flink refuses.
        NotSupportedYetError: valid Flink SQL that is not executed yet.
    """
    if node.rows_per_match is ast.RowsPerMatch.ALL:
        raise PlanError("match-all-rows", "All rows per match mode is not supported yet.", node.span)
    if not node.measures:
        raise BindError("match-measures", "MATCH_RECOGNIZE needs MEASURES", node.span)
    scope = scope_of(source.schema)
    plain = ExpressionBinder(context, named, "PARTITION BY")
    partition = tuple(_column_index(plain.bind(item), "PARTITION BY", item.span) for item in node.partition_by)
    order = _order(node, ExpressionBinder(context, named, "ORDER BY"), source, context.streaming)
    steps = _steps(node.pattern)
    names = tuple(name.text for name, *_ in steps)
    empty = _empty_variables(node, names, named)
    time_type = source.schema[order[0].index].type
    row_time = None if t.is_proctime(time_type) else time_type.as_nullable(False)
    computed: list[Expr] = []
    binder = _BinderFactory(context, scope, names, row_time, len(source.schema), computed)
    defined = _definitions(node, names)
    variables = tuple(
        _variable(binder, names, place, step, defined.get(step[0].text)) for place, step in enumerate(steps)
    )
    _check_quantifiers(variables, node.pattern.span)
    measures, columns = [], [source.schema[index] for index in partition]
    for measure in node.measures:
        own = binder.make("MEASURES", (*names, *empty), measures=True)
        made = own.bind(measure.expression)
        assert own.reads is not None
        measures.append(PatternExpression(made, tuple(own.reads.reads)))
        columns.append(t.Column(measure.name.text, made.type))
    twice = next((c.name for place, c in enumerate(columns) if c.name in [b.name for b in columns[:place]]), None)
    if twice is not None:
        raise BindError("duplicate-column", f"Columns ambiguously defined: {{{twice}}}", node.span)
    skip, skip_variable = _skip(node.after_match, names, empty)
    return Match(
        source,
        partition,
        order,
        variables,
        tuple(computed),
        tuple(measures),
        skip,
        skip_variable,
        _within(context, node),
        tuple(columns),
        empty,
        node.span,
    )


@record
class _BinderFactory:
    """What binders of one clause have in common."""

    context: BindContext
    scope: Scope
    names: tuple[str, ...]
    row_time: t.LogicalType | None
    width: int
    computed: list[Expr]

    def make(self, clause: str, names: tuple[str, ...], measures: bool = False) -> _PatternBinder:
        return _PatternBinder(
            self.context,
            self.scope,
            clause,
            reads=_Reads(self.width, self.computed),
            variables=names,
            row_time=self.row_time,
            measures=measures,
        )


def _column_index(bound: Expr, clause: str, span: Span) -> int:
    if not isinstance(bound, InputRef):
        raise BindError("match-column", f"{clause} of MATCH_RECOGNIZE takes columns", span)
    return bound.index


def _order(node: ast.MatchRecognize, binder: ExpressionBinder, source: Rel, streaming: bool) -> tuple[SortKey, ...]:
    if not node.order_by:
        message = "You must specify either rowtime or proctime for order by."
        raise PlanError("match-order", message, node.span)
    keys = []
    for item in node.order_by:
        index = _column_index(binder.bind(item.expression), "ORDER BY", item.span)
        first = not item.descending if item.nulls is None else item.nulls is ast.NullOrder.FIRST
        keys.append(SortKey(index, item.descending, first))
    span = node.order_by[0].span
    time = source.schema[keys[0].index].type
    # In batch mode no column is a time attribute, and any timestamp is a time.
    if not t.is_time_attribute(time) and (streaming or not isinstance(time, t.TimestampType | t.TimestampLtzType)):
        message = "You must specify either rowtime or proctime for order by as the first one."
        raise PlanError("match-order", message, span)
    if keys[0].descending:
        message = "Primary sort order of a streaming table must be ascending on time."
        raise PlanError("match-order", message, span)
    return tuple(keys)


def _empty_variables(node: ast.MatchRecognize, names: Sequence[str], named: Scope) -> tuple[str, ...]:
    """What measures may name beside the pattern's variables: subsets and the table itself, both without rows."""
    known = list(names)
    defined = {definition.name.text for definition in node.definitions}
    for subset in node.subsets:
        if subset.name.text in known or subset.name.text in defined:
            message = f"Pattern variable '{subset.name.text}' has already been defined"
            raise BindError("match-subset", message, subset.name.span)
        known.append(subset.name.text)
        for name in subset.variables:
            if name.text not in known:
                raise BindError("match-subset", f"Unknown pattern '{name.text}'", name.span)
    tables = (item.alias for item in named.namespaces if item.alias is not None)
    return (*known[len(names) :], *(alias for alias in tables if alias not in known))


#: A variable, its least (None: not written) and most rows, and whether it takes few.
_Step = tuple[ast.Name, int | None, int | None, bool]


def _steps(pattern: ast.Pattern) -> list[_Step]:
    parts = pattern.parts if isinstance(pattern, ast.PatternSequence) else (pattern,)
    steps: list[_Step] = []
    for part in parts:
        match part:
            case ast.PatternVariable(name):
                steps.append((name, 1, 1, False))
            case ast.PatternRepeat(ast.PatternVariable(name), low, high, reluctant):
                steps.append((name, low, high, reluctant))
            case ast.PatternRepeat() | ast.PatternSequence():
                raise _refused("Group patterns are not supported yet.", part)
            case ast.PatternAlternation():
                raise _refused("Currently, CEP doesn't support branching patterns.", part)
            case ast.PatternExclusion():
                raise _refused("Currently, CEP doesn't support '{-' '-}' patterns.", part)
            case ast.PatternPermute():
                raise _refused("Currently, CEP doesn't support PERMUTE patterns.", part)
    names = [name.text for name, *_ in steps]
    for place, (name, *_) in enumerate(steps):
        if name.text in names[:place]:
            message = "Pattern variables must be unique. That might change in the future."
            raise PlanError("match-pattern", message, name.span)
    return steps


def _refused(message: str, part: ast.Pattern) -> PlanError:
    return PlanError("match-pattern", f"Expression not supported. {message}", part.span)


def _definitions(node: ast.MatchRecognize, names: Sequence[str]) -> dict[str, ast.PatternDefinition]:
    defined: dict[str, ast.PatternDefinition] = {}
    for definition in node.definitions:
        name = definition.name
        if name.text in defined:
            raise BindError("match-define", f"Pattern variable '{name.text}' has already been defined", name.span)
        defined[name.text] = definition
    return defined


def _variable(
    factory: _BinderFactory, names: tuple[str, ...], place: int, step: _Step, definition: ast.PatternDefinition | None
) -> PatternVariable:
    name, low, high, reluctant = step
    if low is None:
        hint = f"write {name.text}{{0,{high}}}"
        message = "The from should be a positive number greater than 0."
        raise PlanError("match-pattern", f"Pattern variable {name.text}: {message}", name.span, hint)
    if high == 0:
        raise PlanError("match-pattern", f"{name.text} is repeated 0 times", name.span)
    if (low, high) == (0, 1) and reluctant:
        raise PlanError("match-pattern", "Reluctant optional variables are not supported yet.", name.span)
    greedy = not reluctant and low != high and (low, high) != (0, 1)
    made = PatternVariable(name.text, low, high, greedy)
    if definition is None:
        return made
    binder = factory.make("DEFINE", names)
    condition = binder.condition(definition.condition)
    assert binder.reads is not None
    reads = binder.reads.reads
    if all(_is_current(read, place) for read in reads):
        found = {index: read.column for index, read in enumerate(reads) if isinstance(read, PatternColumn)}
        of_row = remap_inputs(condition, found.__getitem__)
        return PatternVariable(name.text, low, high, greedy, row_condition=binder.reads.stored(of_row))
    return PatternVariable(name.text, low, high, greedy, path_condition=PatternExpression(condition, tuple(reads)))


def _is_current(read: PatternRead, place: int) -> bool:
    """Whether a condition of a variable reads the row itself, which is the last one of its variable."""
    return isinstance(read, PatternColumn) and read.variable in (None, place) and not read.first and not read.offset


def _check_quantifiers(variables: Sequence[PatternVariable], span: Span) -> None:
    for before, variable in pairwise(variables):
        if before.greedy and not variable.low:
            raise PlanError("match-pattern", "Optional pattern cannot be preceded by greedy pattern", span)
    if not any(variable.low for variable in variables):
        raise PlanError(
            "match-pattern",
            "Patterns that can produce empty matches are not supported. There must be at least one non-optional state.",
            span,
        )
    if variables[-1].greedy:
        raise PlanError(
            "match-pattern",
            "Greedy quantifiers are not allowed as the last element of a Pattern yet. "
            "Finish your pattern with either a simple variable or reluctant quantifier.",
            span,
        )


def _skip(after: ast.AfterMatch | None, names: Sequence[str], empty: Sequence[str]) -> tuple[MatchSkip, int | None]:
    if after is None:
        return MatchSkip.TO_NEXT_ROW, None
    if after.variable is None:
        return MatchSkip[after.kind.name], None
    if after.variable.text in empty:
        message = "The pattern name specified in AfterMatchSkipStrategy can not be found in the given Pattern"
        raise PlanError("match-skip", f"{message}: {after.variable.text}", after.variable.span)
    if after.variable.text not in names:
        raise BindError("match-skip", f"Unknown pattern '{after.variable.text}'", after.variable.span)
    return MatchSkip[after.kind.name], names.index(after.variable.text)


def _within(context: BindContext, node: ast.MatchRecognize) -> int | None:
    if node.within is None:
        return None
    bound = ExpressionBinder(context, Scope(), "WITHIN").bind(node.within)
    if not isinstance(bound, Literal) or not isinstance(bound.type, t.DayTimeIntervalType) or bound.value is None:
        message = "Only constant intervals with millisecond resolution are supported as time constraints of patterns."
        raise PlanError("match-within", message, node.within.span)
    # No time at all means any, as in Flink.
    return int(bound.value) or None
