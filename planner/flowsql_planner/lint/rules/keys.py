"""Keys that are other ones when they are computed again, or that meet keys of another type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowsql_core.expr import Call, Cast, Expr, conjuncts, input_refs
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.lint.growth import made_of
from flowsql_planner.lint.model import Hit, Rule, Subject
from flowsql_planner.logical.nodes import Filter, Join, Project, Rel, Sink
from flowsql_planner.optimize.determinism import changing_function, is_deterministic
from flowsql_planner.physical.nodes import GroupAggregate, Physical, SinkNode, WindowAggregate
from flowsql_planner.physical.nodes.joins.pairs import PairsOfRows
from flowsql_planner.physical.nodes.rank import Ranking


def non_deterministic_key(subject: Subject) -> Iterator[Hit]:
    """Keys of groups, joins, rankings and sinks that a function makes whose value changes from call to call."""
    for node in subject.physical():
        for source, columns, what in _keyed(node):
            for column in columns:
                made = _changing(source, column)
                if made is not None:
                    function, span = made
                    message = (
                        f"{what} '{source.names[column]}' comes from {function}, which is another value each time."
                    )
                    yield Hit(subject.place(span, node.span), message)


def _keyed(node: Physical) -> list[tuple[Physical, Sequence[int], str]]:
    match node:
        case GroupAggregate(grouping=grouping) | WindowAggregate(grouping=grouping):
            return [(node.inputs[0], grouping, "The grouping key")]
        case PairsOfRows(inputs=(left, right)):
            return [(left, node.left_keys, "The join key"), (right, node.right_keys, "The join key")]
        case Ranking():
            return [(node.inputs[0], node.partition, "The partition key")]
        case SinkNode():
            return [(node.inputs[0], node.primary_key(), "The primary key")]
    return []


def _changing(source: Physical, column: int) -> tuple[str, Span | None] | None:
    """The function that makes a column another one each time.

    One that reads the clock harms only where rows are taken back: counting by the hour in which rows come is sound.
    """
    for expr in made_of(source, column):
        if not is_deterministic(expr) or source.retracts:
            function = changing_function(expr)
            if function is not None:
                return ("PROCTIME" if function == "PROCTIME_MATERIALIZE" else function) + "()", expr.span
    return None


def implicit_key_cast(subject: Subject) -> Iterator[Hit]:
    """Equal keys of different types, which a cast that nobody wrote makes alike."""
    leaves: tuple[int, ...]
    for rel in subject.logical():
        if isinstance(rel, Join):
            leaves, condition = (len(rel.left.schema),), rel.condition
        elif isinstance(rel, Filter) and isinstance(rel.input, Join):
            leaves, condition = tuple(_ends(rel.input)), rel.condition
        else:
            if isinstance(rel, Sink):
                yield from _sink_keys(rel, subject)
            continue
        for part in conjuncts(condition):
            if isinstance(part, Call) and part.function == "=" and _meet(part.args[0], part.args[1], leaves):
                one, other = (_uncast(arg).type for arg in part.args)
                reason = _harm(one, other)
                if reason is not None:
                    message = f"The join compares {_text(one)} with {_text(other)}."
                    yield Hit(subject.place(part.span, rel.span), message, reason=reason)


def _ends(rel: Rel) -> Iterator[int]:
    """Where the columns of each table of joined ones end."""
    if isinstance(rel, Join):
        yield from _ends(rel.left)
        width = len(rel.left.schema)
        yield from (width + end for end in _ends(rel.right))
    else:
        yield len(rel.schema)


def _meet(left: Expr, right: Expr, ends: Sequence[int]) -> bool:
    """Whether two expressions are of different tables."""
    one, other = input_refs(left), input_refs(right)
    if not one or not other:
        return False
    tables = [{sum(index >= end for end in ends) for index in columns} for columns in (one, other)]
    return not tables[0] & tables[1]


def _sink_keys(sink: Sink, subject: Subject) -> Iterator[Hit]:
    if sink.table is None or not isinstance(sink.input, Project):
        return
    for column, expr in zip(sink.table.columns, sink.input.exprs, strict=False):
        if column.name in sink.table.primary_key and isinstance(expr, Cast) and expr.implicit:
            have = _uncast(expr).type
            # The blanks of a CHAR are part of the key then, always the same ones.
            texts = isinstance(have, t.CharacterType) and isinstance(column.type, t.CharacterType)
            reason = None if texts else _harm(have, column.type)
            if reason is not None:
                message = f"INSERT makes {_text(have)} a key '{column.name}' of type {_text(column.type)}."
                yield Hit(subject.place(_uncast(expr).span, sink.span), message, reason=reason)


def _uncast(expr: Expr) -> Expr:
    while isinstance(expr, Cast) and expr.implicit:
        expr = expr.operand
    return expr


def _text(type_: t.LogicalType) -> str:
    return t.without_attribute(type_).as_nullable().text()


def _harm(one: t.LogicalType, other: t.LogicalType) -> str | None:
    """Why values that look alike in both types may be unequal, or unlike ones equal; None: they are what they seem."""
    match one, other:
        case (t.DoubleType(), t.DoubleType()) | (t.FloatType(), t.FloatType()):
            return None
        case (t.ApproximateType(), t.NumericType()) | (t.NumericType(), t.ApproximateType()):
            return (
                "whole numbers above 2^53 and most decimal fractions are no DOUBLE: unequal keys meet, equal ones miss"
            )
        case (t.CharType(length=n), t.CharType(length=m)) if n != m:
            return "CHAR fills up with blanks to its length, and they count where it is compared"
        case (t.CharType(), t.VarCharType()) | (t.VarCharType(), t.CharType()):
            return "CHAR fills up with blanks to its length, and they count where it is compared"
        case (t.TimestampType(), t.TimestampLtzType()) | (t.TimestampLtzType(), t.TimestampType()):
            return "the zone of the session decides which of them meet: 'table.local-time-zone'"
        case (t.TimestampType() | t.TimestampLtzType(), t.DateType() | t.TimeType()) | (
            t.DateType() | t.TimeType(),
            t.TimestampType() | t.TimestampLtzType(),
        ):
            return "a DATE is the midnight of its day as a TIMESTAMP, and a TIMESTAMP as a DATE loses its time"
        case (t.CharacterType(), t.CharacterType()):
            return None
        case (t.CharacterType(), _) | (_, t.CharacterType()):
            return "'07' and '7' are one number and two texts"
    return None


RULES = (
    Rule(
        "non-deterministic-key",
        "A key of a group, join, ranking or sink that UUID(), RAND(), the clock or a non-deterministic function makes.",
        "a key is computed again when its row is taken back, or read again after a failure: the new one finds nothing, "
        "and old rows stay for ever",
        "take a key from the data, or compute it once where the row is made and keep it in a column",
        non_deterministic_key,
    ),
    Rule(
        "implicit-key-cast",
        "Keys of different types that a cast nobody wrote makes comparable.",
        "a cast stands on the key",
        "declare both columns with one type, or write the CAST that is meant",
        implicit_key_cast,
    ),
)
