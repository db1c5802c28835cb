"""Window table-valued functions: ``TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE))`` and its kin.

Source: Flink manual, "Windowing table-valued functions"; FLIP-145.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.expr import Literal
from flowsql_core.graph.specs import WindowKind
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.logical.nodes import Rel, WindowTableFunction

#: Parameter names in order; the last ones may be left out.
_PARAMETERS = {
    WindowKind.TUMBLE: ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    WindowKind.HOP: ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    WindowKind.CUMULATE: ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    WindowKind.SESSION: ("DATA", "TIMECOL", "GAP"),
}
_OPTIONAL = frozenset({"OFFSET"})
_FORMS = {
    WindowKind.TUMBLE: "TUMBLE(TABLE table_name, DESCRIPTOR(timecol), datetime interval[, datetime interval])",
    WindowKind.HOP: "HOP(TABLE table_name, DESCRIPTOR(timecol), datetime interval, datetime interval[, datetime "
    "interval])",
    WindowKind.CUMULATE: "CUMULATE(TABLE table_name, DESCRIPTOR(timecol), datetime interval, datetime interval[, "
    "datetime interval])",
    WindowKind.SESSION: "SESSION(TABLE table_name [PARTITION BY (keycols, ...)], DESCRIPTOR(timecol), datetime "
    "interval)",
}
WINDOW_START = "window_start"
WINDOW_END = "window_end"
WINDOW_TIME = "window_time"


@record
class WindowCall:
    """A window function with its arguments by parameter name."""

    kind: WindowKind
    arguments: dict[str, ast.Argument]
    span: Span

    @property
    def data(self) -> ast.TableArgument:
        """The table argument."""
        table = self.arguments["DATA"]
        if isinstance(table, ast.Subquery):
            return ast.TableArgument(table.query, span=table.span)
        if not isinstance(table, ast.TableArgument):
            raise self.refuse(table.span)
        return table

    def refuse(self, span: Span) -> BindError:
        """The arguments do not have the form of the function."""
        return BindError(
            "bad-window-arguments",
            f"Cannot apply '{self.kind.value}' to these arguments. Supported form(s): {_FORMS[self.kind]}",
            span,
        )


def as_window_call(call: ast.FunctionCall) -> WindowCall | None:
    """The window function that a call is, its arguments named; None for other functions."""
    name = call.name.last.text.upper()
    if len(call.name.parts) > 1 or name not in WindowKind.__members__:
        return None
    kind = WindowKind[name]
    parameters = _PARAMETERS[kind]
    made = WindowCall(kind, {}, call.span)
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.NamedArgument):
            parameter, value = argument.name.text, argument.value
            if parameter not in parameters and parameter.upper() in parameters:
                raise BindError(
                    "unknown-parameter",
                    f"Param '{parameter}' not found in function '{name}'; did you mean '{parameter.upper()}'?",
                    argument.span,
                )
            if parameter not in parameters:
                hint = did_you_mean(parameter, parameters)
                raise BindError(
                    "unknown-parameter", f"{name} has no parameter '{argument.name.text}'", argument.span, hint
                )
        else:
            if position >= len(parameters):
                raise made.refuse(argument.span)
            parameter, value = parameters[position], argument
        if parameter in made.arguments:
            raise BindError("duplicate-parameter", f"Parameter {parameter} of {name} is given twice", argument.span)
        if isinstance(value, ast.DefaultValue):
            words = "No match found for function signature DEFAULT"
            raise BindError("default-argument", words, value.span, "leave the argument out")
        made.arguments[parameter] = value
    required = [parameter for parameter in parameters if parameter not in _OPTIONAL]
    if any(parameter not in made.arguments for parameter in required):
        raise BindError(
            "argument-count",
            f"Invalid number of arguments to function '{name}'. Was expecting {len(required)} arguments",
            call.span,
            _FORMS[kind],
        )
    return made


def bind_window(context: BindContext, call: WindowCall, input_: Rel) -> WindowTableFunction:
    """The window function over its bound input."""
    schema = input_.schema
    time_index = _time_column(context, call, schema)
    partition = _partition(call, schema)
    times = {name: _milliseconds(context, call, name) for name in call.arguments if name not in ("DATA", "TIMECOL")}
    match call.kind:
        case WindowKind.TUMBLE:
            size = step = times["SIZE"]
        case WindowKind.HOP:
            size, step = times["SIZE"], times["SLIDE"]
        case WindowKind.CUMULATE:
            size, step = times["SIZE"], times["STEP"]
        case WindowKind.SESSION:
            size = step = times["GAP"]
    if size <= 0 or step <= 0:
        raise BindError("bad-window-size", _not_positive(call.kind, size, step), call.span)
    if call.kind is WindowKind.CUMULATE and size % step:
        raise BindError(
            "bad-window-size",
            "CUMULATE table function based aggregate requires maxSize must be an integral multiple of step, but got "
            f"maxSize {size} ms and step {step} ms.",
            call.span,
        )
    output = (*schema, *window_columns(schema[time_index].type))
    offset = times.get("OFFSET", 0)
    if call.kind is WindowKind.TUMBLE and abs(offset) >= size:
        raise BindError(
            "bad-window-offset",
            "TUMBLE table function parameters must satisfy abs(offset) < size, but got "
            f"size {size} ms and offset {offset} ms.",
            call.span,
        )
    return WindowTableFunction(input_, call.kind, time_index, size, step, offset, output, partition, call.span)


def _not_positive(kind: WindowKind, size: int, step: int) -> str:
    """What Flink says about a length of zero or less, in milliseconds."""
    match kind:
        case WindowKind.TUMBLE:
            wanted, got = "size", f"{size} ms"
        case WindowKind.HOP:
            wanted, got = "slide and size", f"slide {step} ms and size {size} ms"
        case WindowKind.CUMULATE:
            wanted, got = "maxSize and step", f"maxSize {size} ms and step {step} ms"
        case WindowKind.SESSION:
            wanted, got = "gap", f"gap {size} ms"
    return f"{kind.value} table function based aggregate requires {wanted} to be positive, but got {got}."


def window_columns(time_type: t.LogicalType) -> t.Schema:
    """window_start, window_end (wall clock in any case), and window_time, a time attribute of the input's kind."""
    bound = t.TimestampType(precision=3, nullable=False)
    time = time_type.as_nullable(False)
    if isinstance(time, t.TimestampType | t.TimestampLtzType):
        time = replace(time, precision=3)
    return (t.Column(WINDOW_START, bound), t.Column(WINDOW_END, bound), t.Column(WINDOW_TIME, time))


def _time_column(context: BindContext, call: WindowCall, schema: t.Schema) -> int:
    descriptor = call.arguments["TIMECOL"]
    if not isinstance(descriptor, ast.Descriptor) or not descriptor.columns:
        raise call.refuse(descriptor.span)
    names = [column.name for column in schema]
    for listed in descriptor.columns:
        if listed.name.last.text not in names or len(listed.name.parts) > 1:
            hint = did_you_mean(listed.name.last.text, names)
            raise BindError("column-not-found", f"Unknown identifier '{listed.name}'", listed.name.span, hint)
    # As in Flink, more columns than the first are looked up and mean nothing.
    name = descriptor.columns[0].name
    index = names.index(name.last.text)
    type_ = schema[index].type
    is_time = t.is_time_attribute(type_) or (
        not context.streaming and isinstance(type_, t.TimestampType | t.TimestampLtzType)
    )
    if not is_time:
        raise BindError(
            "not-a-time-attribute",
            f"The window function requires the timecol is a time attribute type, but is {type_.as_nullable()}.",
            name.span,
            f"declare WATERMARK FOR {name} in the table's DDL",
        )
    return index


def _partition(call: WindowCall, schema: t.Schema) -> tuple[int, ...]:
    data = call.data
    if data.order_by:
        raise BindError("window-order", f"{call.kind.value} takes no ORDER BY", data.order_by[0].span)
    if data.partition_by and call.kind is not WindowKind.SESSION:
        raise BindError(
            "window-partition",
            "Only tables with set semantics may be partitioned. Invalid PARTITION BY clause in the 0-th operand of "
            f"table function '{call.kind.value}'",
            data.partition_by[0].span,
            "put the column into GROUP BY",
        )
    names = [column.name for column in schema]
    partition = []
    for expression in data.partition_by:
        if not isinstance(expression, ast.ColumnRef) or expression.path.last.text not in names:
            raise BindError(
                "column-not-found",
                "PARTITION BY needs columns of the table",
                expression.span,
                did_you_mean(str(expression.path), names) if isinstance(expression, ast.ColumnRef) else None,
            )
        partition.append(names.index(expression.path.last.text))
    return tuple(partition)


def _milliseconds(context: BindContext, call: WindowCall, parameter: str) -> int:
    argument = call.arguments[parameter]
    bound = ExpressionBinder(context, Scope(), call.kind.value).bind(argument)
    if not isinstance(bound, Literal) or not isinstance(bound.type, t.DayTimeIntervalType) or bound.value is None:
        raise call.refuse(argument.span)
    return int(bound.value)
