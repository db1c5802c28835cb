"""Comparisons of FLOAT and DOUBLE in the form in which Flink evaluates them: NaN answers by that form.

Flink's planner takes numbers for a total order: NOT (x > y) becomes x <= y, x = x asks only whether x is NULL, and
ranges of one operand are joined to one set. For NaN, and for sets that hold a zero, these forms give other answers than
what was written, so they are part of the language. Other types answer the same in every form and stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from flowsql_core.expr import (
    Call,
    Case,
    Cast,
    Expr,
    InputRef,
    Literal,
    children,
    fact,
    transform,
    walk,
)
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import Filter, Join, Project, Rel
from flowsql_planner.optimize.number_sets import EVERYTHING, NumberSet, Range, points, range_of

_NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_REVERSED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: Comparisons of an operand with itself, and what they are where it is not NULL.
_OF_ITSELF: Final = {"=": True, "<=": True, ">=": True, "<>": False, "<": False, ">": False}
_ALWAYS_OF_ITSELF: Final = {"IS DISTINCT FROM": False, "IS NOT DISTINCT FROM": True}
_SURE: Final = t.BOOLEAN.as_nullable(False)


def simplify_comparisons(rel: Rel) -> Rel | None:
    """Filter(x, NOT (d > 1))  =>  Filter(x, d <= 1), and the like, for approximate numbers."""
    match rel:
        case Filter(condition=condition):
            made = simplified(condition, only_true=True)
            return None if made == condition else replace(rel, condition=made)
        case Join(condition=condition) if condition is not None:
            made = simplified(condition, only_true=True)
            return None if made == condition else replace(rel, condition=made)
        case Project(exprs=exprs):
            all_made = tuple(simplified(expr, only_true=False) for expr in exprs)
            return None if all_made == exprs else replace(rel, exprs=all_made)
    return None


def simplified(expr: Expr, *, only_true: bool) -> Expr:
    """An expression in Flink's form.

    Args:
        expr: any expression.
        only_true: only whether it is TRUE counts: a condition.
    """
    if not _compares_numbers(expr):
        return expr
    made = transform(expr, _simplify)
    return _as_condition(made) if only_true else made


def _compares_numbers(expr: Expr) -> bool:
    return fact(expr, "compares_numbers", _compares)


def _compares(node: Expr, below: list[bool]) -> bool:
    return any(below) or (isinstance(node, Call) and (_approximate(node) or _compares_itself(node)))


def _approximate(call: Call) -> bool:
    """Whether a call compares FLOAT or DOUBLE."""
    known = call.function in _NEGATED or call.function in _ALWAYS_OF_ITSELF or call.function in ("IN", "NULLIF")
    return known and any(isinstance(arg.type, t.ApproximateType) for arg in call.args)


def _compares_itself(call: Call) -> bool:
    """Whether a call compares a collection with itself, which equals itself although it holds NULL."""
    if call.function not in _OF_ITSELF and call.function not in _ALWAYS_OF_ITSELF:
        return False
    one, other = call.args
    return isinstance(one.type, t.ArrayType | t.MapType) and one == other


def _simplify(node: Expr) -> Expr:
    """One node whose operands are simplified."""
    match node:
        case Call(function="NOT", args=(operand,)):
            negated = _negation(operand)
            return node if negated is None else negated
        case Call(function="AND" | "OR"):
            return _joined(node)
        case Call(function="IS TRUE" | "IS FALSE" | "IS NOT TRUE" | "IS NOT FALSE" as function, args=(operand,)):
            if operand.type.nullable or not _compares_numbers(operand):
                return node
            if function in ("IS TRUE", "IS NOT FALSE"):
                return operand
            return _negation(operand) or Call("NOT", (operand,), operand.type, (), node.span)
        case Call(function="IN") if _approximate(node):
            return _listed(node)
        case Call(function="=" | "<>" as function, args=(one, Literal(value=bool() as truth))):
            return _of_truth(node, one, (function == "=") is truth)
        case Call(function="=" | "<>" as function, args=(Literal(value=bool() as truth), one)):
            return _of_truth(node, one, (function == "=") is truth)
        case Call(args=(one, other)) if (_approximate(node) and one == other) or _compares_itself(node):
            return _of_itself(node, one)
        case Case(conditions=conditions) if any(map(_compares_numbers, conditions)):
            return replace(node, conditions=tuple(_as_condition(condition) for condition in conditions))
    return node


def _as_condition(expr: Expr) -> Expr:
    """An expression of which only TRUE counts."""
    match expr:
        case Call(function="AND" | "OR" as function, args=args):
            made = tuple(_as_condition(arg) for arg in args)
            if function == "OR":
                made = tuple(arg for arg in made if not _is_null(arg)) or (made[0],)
            if made == args:
                return expr
            return made[0] if len(made) == 1 else _simplify(replace(expr, args=made))
        case Call(function="IS TRUE", args=(operand,)) if _compares_numbers(operand):
            return _as_condition(operand)
        case Call(function="IS FALSE", args=(operand,)) if _compares_numbers(operand):
            negated = _negation(operand)
            return expr if negated is None else _as_condition(negated)
    return expr


def _negation(expr: Expr) -> Expr | None:
    """NOT of an expression without the NOT; None where it has no such form, or needs none."""
    if not _compares_numbers(expr):
        return None
    match expr:
        case Call(function="NOT", args=(operand,)):
            return operand
        case Call(function=function) if function in _NEGATED:
            return replace(expr, function=_NEGATED[function])
        case Call(function="AND" | "OR" as function, args=args):
            made = tuple(_negation(arg) or Call("NOT", (arg,), arg.type, (), expr.span) for arg in args)
            return _joined(replace(expr, function="OR" if function == "AND" else "AND", args=made))
        case Case(results=results, otherwise=otherwise):
            return replace(
                expr,
                results=tuple(_negation(result) or _not(result) for result in results),
                otherwise=_negation(otherwise) or _not(otherwise),
            )
    return None


def _not(expr: Expr) -> Expr:
    if isinstance(expr, Literal):
        return expr if expr.value is None else replace(expr, value=not expr.value)
    return Call("NOT", (expr,), expr.type, (), expr.span)


def _of_truth(call: Call, operand: Expr, wanted: bool) -> Expr:
    """A comparison with TRUE or FALSE."""
    if not _compares_numbers(operand):
        return call
    return operand if wanted else _negation(operand) or _not(operand)


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def _of_itself(call: Call, operand: Expr) -> Expr:
    """A comparison of an operand with itself."""
    if call.function == "NULLIF":
        return Literal(None, call.type.as_nullable(), call.span)
    if call.function in _ALWAYS_OF_ITSELF:
        return Literal(_ALWAYS_OF_ITSELF[call.function], _SURE, call.span)
    if _OF_ITSELF[call.function]:
        return _true_if_known(operand, call)
    if not operand.type.nullable:
        return Literal(False, _SURE, call.span)
    nothing = Literal(None, call.type.as_nullable(), call.span)
    return Call("AND", (Call("IS NULL", (operand,), _SURE, (), call.span), nothing), call.type, (), call.span)


def _true_if_known(operand: Expr, call: Call) -> Expr:
    """TRUE, but NULL where the operand is."""
    if not operand.type.nullable:
        return Literal(True, _SURE, call.span)
    nothing = Literal(None, t.BOOLEAN.as_nullable(), call.span)
    known = Call("IS NOT NULL", (operand,), _SURE, (), call.span)
    return Call("OR", (known, nothing), t.BOOLEAN.as_nullable(), (), call.span)


def _listed(call: Call) -> Expr:
    """IN: a set of constants; whatever else stands in it is compared by itself, and so is a single constant."""
    operand, values = call.args[0], call.args[1:]
    apart = [value for value in values if not _is_null(value) and not _is_number(value)]
    plain = [value for value in values if value not in apart]
    if len(plain) == 1:
        apart, plain = [*plain, *apart], []
    if not apart:
        return call
    parts = [_simplify(Call("=", (operand, value), call.type, (), call.span)) for value in apart]
    if plain:
        parts.insert(0, replace(call, args=(operand, *plain)))
    return parts[0] if len(parts) == 1 else _joined(Call("OR", tuple(parts), call.type, (), call.span))


def _is_number(value: Expr) -> bool:
    return isinstance(value, Literal) and _number(value) is not None


# Sets of one operand


@dataclass(slots=True)
class _Group:
    """Places in an AND or OR that ask for one operand: the sets of numbers there, and IS NULL."""

    places: list[int] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)
    sets: list[NumberSet] = field(default_factory=list)

    def whole(self, function: str) -> NumberSet:
        """The set of all places."""
        made = self.sets[0]
        for one in self.sets[1:]:
            made = made | one if function == "OR" else made & one
        return made

    def is_simple(self, function: str) -> bool:
        """Whether one comparison says it all."""
        if self.nulls:
            return False
        whole = self.whole(function)
        return len(whole.ranges) <= 1 or len((~whole).as_points() or (0, 0)) == 1


def _joined(call: Call) -> Expr:
    """AND or OR whose comparisons of one operand with numbers are one set, where Flink makes them one.

    It does so for all operands once a set of one of them is more than one comparison, or if nothing else is asked.
    """
    groups: dict[Expr, _Group] = {}
    for place, arg in enumerate(call.args):
        known = _set_of(arg)
        if known is not None:
            group = groups.setdefault(known[0], _Group())
            group.places.append(place)
            group.sets.append(known[1])
    for place, arg in enumerate(call.args):
        match arg:
            case Call(function="IS NULL", args=(operand,)) if call.function == "OR" and operand in groups:
                groups[operand].nulls.append(place)
    asked = sum(len(group.places) + len(group.nulls) for group in groups.values())
    alone = len(groups) == 1 and asked == len(call.args)
    if not alone and all(group.is_simple(call.function) for group in groups.values()):
        return call
    made: list[Expr | None] = list(call.args)
    for operand, group in groups.items():
        if len(group.places) + len(group.nulls) == 1:
            continue
        first = group.places[0]
        term = _term(operand, group, call, [call.args[place] for place in group.places])
        if term is not None:
            for place in group.places:
                made[place] = None
            made[first] = term
    kept = tuple(part for part in made if part is not None)
    if kept == call.args:
        return call
    return kept[0] if len(kept) == 1 else replace(call, args=kept)


def _term(operand: Expr, group: _Group, call: Call, parts: list[Expr]) -> Expr | None:
    """The comparison that stands for a set; None where its parts answer the same."""
    whole, type_ = group.whole(call.function), parts[0].type
    if whole == EVERYTHING:
        return _true_if_known(operand, call)
    without, among = (~whole).as_points(), whole.as_points()
    numbers = without if among is None else among
    if not whole.ranges:
        return None

    def compared(function: str, number: float) -> Expr:
        value = Literal(number, operand.type.as_nullable(False), call.span)
        return Call(function, (operand, value), type_, (), call.span)

    if numbers is None:
        if not any(isinstance(node, Call) and node.function == "IN" for part in parts for node in walk(part)):
            return None
        ranges = [_within(pair, compared, type_) for pair in whole.ranges]
        return ranges[0] if len(ranges) == 1 else Call("OR", tuple(ranges), type_, (), call.span)
    if len(numbers) == 1 and not group.nulls:
        return compared("<>" if among is None else "=", numbers[0])
    # A set knows -0.0 from 0.0; a single number is written twice, so that it stays one.
    listed = numbers * 2 if len(numbers) == 1 else numbers
    values = tuple(Literal(number, operand.type.as_nullable(False), call.span) for number in listed)
    inside = Call("IN", (operand, *values), type_, (), call.span)
    return inside if among is not None else Call("NOT", (inside,), type_, (), call.span)


def _within(pair: Range, compared: Callable[[str, float], Expr], type_: t.LogicalType) -> Expr:
    """One range as comparisons."""
    (low, behind), (high, before) = pair
    if low == high:
        return compared("=", low)
    parts = []
    if low > -math.inf:
        parts.append(compared(">" if behind > 0 else ">=", low))
    if high < math.inf:
        parts.append(compared("<" if before < 0 else "<=", high))
    return parts[0] if len(parts) == 1 else Call("AND", tuple(parts), type_, (), parts[0].span)


def _set_of(expr: Expr) -> tuple[Expr, NumberSet] | None:
    """The operand that an expression compares with numbers, and those for which it is TRUE."""
    match expr:
        case Call(function=function, args=(operand, Literal() as value)) if function in _NEGATED:
            return _compared(operand, function, value)
        case Call(function=function, args=(Literal() as value, operand)) if function in _NEGATED:
            return _compared(operand, _REVERSED[function], value)
        case Call(function="IN", args=(operand, *values)) if _is_place(operand):
            numbers = [_number(value) if isinstance(value, Literal) else None for value in values]
            known = [number for number in numbers if number is not None]
            return (operand, points(known)) if len(known) == len(numbers) else None
        case Call(function="NOT", args=(Call(function="IN") as inner,)):
            found = _set_of(inner)
            return None if found is None else (found[0], ~found[1])
        case Call(function="AND" | "OR" as function, args=args):
            parts = [_set_of(arg) for arg in args]
            first = parts[0]
            if first is None:
                return None
            whole = first[1]
            for part in parts[1:]:
                if part is None or part[0] != first[0]:
                    return None
                whole = whole | part[1] if function == "OR" else whole & part[1]
            return first[0], whole
    return None


def _compared(operand: Expr, function: str, value: Literal) -> tuple[Expr, NumberSet] | None:
    number = _number(value)
    if number is None or not _is_place(operand):
        return None
    return operand, range_of(function, number)


def _is_place(operand: Expr) -> bool:
    """What Flink collects ranges of: columns, fields and casts of approximate numbers."""
    if not isinstance(operand.type, t.ApproximateType):
        return False
    return isinstance(operand, InputRef) or (isinstance(operand, Cast) and bool(children(operand)))


def _number(value: Literal) -> float | None:
    """A constant that Flink's planner can write; it has none for NaN and the infinities."""
    if not isinstance(value.type, t.NumericType) or value.value is None:
        return None
    made = float(value.value)
    # Flink's planner writes -0.0 as 0.
    return made + 0.0 if math.isfinite(made) else None
