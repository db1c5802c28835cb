"""TO_CHANGELOG and FROM_CHANGELOG: changes as rows with a column that tells their kind, and back.

Source: Flink's ``ToChangelogTypeStrategy`` and ``FromChangelogTypeStrategy``, whose messages these are.
"""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import BindError, PlanError, did_you_mean
from flowsql_core.process_function import ON_TIME, UID
from flowsql_core.record import record
from flowsql_core.row import RowKind
from flowsql_core.span import Span
from flowsql_core.types.logical import STRING, CharacterType, Column, Schema
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.bind.query.on_time import TimedTable, require_attribute, time_columns
from flowsql_planner.bind.query.unique_identifier import unique_identifier
from flowsql_planner.logical.expression_text import ExpressionPrinter
from flowsql_planner.logical.nodes import TO_CHANGELOG, ChangelogFunction, Rel
from flowsql_planner.logical.rewrite import unique_names

_FUNCTIONS: Final = (TO_CHANGELOG, "FROM_CHANGELOG")
_PARAMETERS: Final = ("input", "op", "op_mapping")
_OP: Final = "op"
_SEVERAL: Final = " Use comma-separated keys to map multiple codes to the same operation (e.g., MAP['c, r', 'INSERT'])."


@record
class ChangelogCall:
    """A call with its arguments by parameter name."""

    name: str
    arguments: dict[str, ast.Argument]
    span: Span

    @property
    def data(self) -> ast.TableArgument:
        """The table argument."""
        table = self.arguments["input"]
        if isinstance(table, ast.Subquery):
            return ast.TableArgument(table.query, span=table.span)
        if not isinstance(table, ast.TableArgument):
            raise BindError(
                "bad-table-argument", f"The argument 'input' of {self.name} is a table", table.span, "write TABLE t"
            )
        if table.partition_by:
            raise BindError(
                "window-partition",
                "Only tables with set semantics may be partitioned. Invalid PARTITION BY clause in the 0-th operand of "
                f"table function '{self.name}'",
                table.partition_by[0].span,
                "leave PARTITION BY out",
            )
        return table


def as_changelog_call(call: ast.FunctionCall) -> ChangelogCall | None:
    """The call with its arguments named; None for other functions."""
    name = call.name.last.text.upper()
    if len(call.name.parts) > 1 or name not in _FUNCTIONS:
        return None
    arguments: dict[str, ast.Argument] = {}
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.NamedArgument):
            parameter, value = argument.name.text, argument.value
        else:
            parameter, value = (*_PARAMETERS, ON_TIME, UID, "")[min(position, 5)], argument
        if parameter not in (*_PARAMETERS, ON_TIME, UID):
            raise BindError(
                "unknown-parameter",
                f"{name} has no parameter '{parameter}'" if parameter else f"{name} has five parameters",
                argument.span,
                did_you_mean(parameter, (*_PARAMETERS, ON_TIME, UID)),
            )
        if parameter in arguments:
            raise BindError("duplicate-parameter", f"Parameter {parameter} of {name} is given twice", argument.span)
        if not isinstance(value, ast.DefaultValue):
            arguments[parameter] = value
    if "input" not in arguments:
        raise BindError(
            "argument-count",
            f"No match found for function signature {name}().",
            call.span,
            "name a table: input => TABLE t",
        )
    return ChangelogCall(name, arguments, call.span)


def bind_changelog(context: BindContext, call: ChangelogCall, input_: Rel) -> ChangelogFunction:
    """The function over its bound input."""
    if call.name == TO_CHANGELOG and not context.streaming:
        message = "Cannot generate a valid execution plan for the given query: TO_CHANGELOG in batch mode"
        raise PlanError("changelog-in-batch", message, call.span, "SET 'execution.runtime-mode' = 'streaming'")
    op = _descriptor(call)
    codes, mapping = _mapping(context, call)
    named = f"DESCRIPTOR(_UTF-16LE'{op}')" if "op" in call.arguments else "DEFAULT()"
    uid, uid_text = unique_identifier(context, call.name, call.arguments.get(UID))
    time, time_text = _time(context, call, input_.schema)
    invocation = f"{call.name}(TABLE(#0), {named}, {mapping}, {time_text}, {uid_text})"
    columns = tuple(Column(column.name, column.type) for column in input_.schema)
    if call.name == TO_CHANGELOG:
        schema: Schema = (Column(op, STRING), *columns)
        names = [column.name for column in schema]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BindError(
                "duplicate-column",
                f"Field names must be unique. Found duplicates: [{', '.join(twice)}]",
                call.span,
                "name the column of kinds otherwise: op => DESCRIPTOR(...)",
            )
        schema = _with_time(schema, input_.schema, time)
        return ChangelogFunction(input_, call.name, codes, schema, invocation, None, time, uid, call.span)
    index = _op_column(call, op, columns)
    rest = _with_time(columns[:index] + columns[index + 1 :], input_.schema, time)
    return ChangelogFunction(input_, call.name, codes, rest, invocation, index, time, uid, call.span)


def _time(context: BindContext, call: ChangelogCall, schema: Schema) -> tuple[int | None, str]:
    """The column of ``on_time``, and the argument as plans show it."""
    given = call.arguments.get(ON_TIME)
    if given is None:
        return None, "DEFAULT()"
    at = ast.FunctionCall(ast.Identifier((ast.Name(call.name),)), span=call.span)
    (place,), text = time_columns(given, [TimedTable("input", schema)], at)
    if place is not None and context.streaming:
        require_attribute(schema[place], given)
    return place, text


def _with_time(made: Schema, source: Schema, time: int | None) -> Schema:
    """The time of a row is a column of its own, behind the others."""
    if time is None:
        return made
    schema = (*made, Column("rowtime", source[time].type.as_nullable(False)))
    names = unique_names(column.name for column in schema)
    return tuple(Column(name, column.type) for name, column in zip(names, schema, strict=True))


def _descriptor(call: ChangelogCall) -> str:
    argument = call.arguments.get("op")
    if argument is None:
        return _OP
    if not isinstance(argument, ast.Descriptor) or len(argument.columns) != 1:
        raise BindError(
            "bad-descriptor", "The descriptor for argument 'op' must contain exactly one column name.", argument.span
        )
    return argument.columns[0].name.last.text


def _op_column(call: ChangelogCall, op: str, columns: Schema) -> int:
    at = call.arguments["op"].span if "op" in call.arguments else call.span
    names = [column.name for column in columns]
    if op not in names:
        raise BindError(
            "column-not-found", f"The op column '{op}' does not exist in the input schema.", at, did_you_mean(op, names)
        )
    index = names.index(op)
    if not isinstance(columns[index].type, CharacterType):
        raise BindError(
            "bad-op-column", f"The op column '{op}' must be of STRING type, but was '{columns[index].type}'.", at
        )
    return index


def _mapping(context: BindContext, call: ChangelogCall) -> tuple[tuple[tuple[str, RowKind], ...], str]:
    """Codes with the kinds that they stand for, and the argument's text."""
    argument = call.arguments.get("op_mapping")
    if argument is None:
        return tuple((kind.name, kind) for kind in RowKind), "DEFAULT()"
    constant = isinstance(argument, ast.MapConstructor) and all(
        isinstance(item, ast.StringLiteral) for pair in argument.entries for item in pair
    )
    if not constant:
        raise BindError("bad-op-mapping", "The 'op_mapping' argument must be a constant MAP literal.", argument.span)
    assert isinstance(argument, ast.MapConstructor)
    text = ExpressionPrinter(()).print(ExpressionBinder(context, Scope(), call.name).bind(argument))
    to_rows = call.name == TO_CHANGELOG
    codes: list[tuple[str, RowKind]] = []
    seen: set[RowKind] = set()
    # Of equal keys the last one stands, as in any MAP.
    entries = {key.value: (key, value) for key, value in argument.entries if isinstance(key, ast.StringLiteral)}
    for key, value in entries.values():
        assert isinstance(value, ast.StringLiteral)
        kinds, words = (key, (value.value,)) if to_rows else (value, tuple(map(str.strip, key.value.split(","))))
        for name in map(str.strip, kinds.value.split(",") if to_rows else (kinds.value,)):
            kind = _kind(name, kinds.span)
            if kind in seen:
                raise BindError(
                    "bad-op-mapping",
                    f"Invalid target mapping for argument 'op_mapping'. Duplicate change operation: '{name}'."
                    + ("" if to_rows else _SEVERAL),
                    kinds.span,
                )
            seen.add(kind)
            codes.extend((word, kind) for word in words)
    if not to_rows and RowKind.UPDATE_AFTER in seen and RowKind.UPDATE_BEFORE not in seen:
        raise BindError(
            "bad-op-mapping",
            "The 'op_mapping' must include UPDATE_BEFORE for retract mode. Upsert mode (without UPDATE_BEFORE) is not "
            "supported in this version.",
            argument.span,
        )
    return tuple(codes), text


def _kind(name: str, span: Span | None) -> RowKind:
    if name not in RowKind.__members__:
        raise BindError(
            "bad-op-mapping",
            f"Invalid target mapping for argument 'op_mapping'. Unknown change operation: '{name}'. Valid values are: "
            "[INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER].",
            span,
            did_you_mean(name, list(RowKind.__members__)),
        )
    return RowKind[name]
