"""Calls of a user's functions: found in the catalogs, arguments checked and cast, the call typed."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_compute.functions.registry import implicit_cast
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.expr import Cast, Expr
from flowsql_core.process_function import ProcessUdf
from flowsql_core.python_call import PYTHON, PythonFunction, aggregate_options, python_call, spoken_name
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import argument_cast_allowed
from flowsql_core.udf import FunctionKind, ScalarUdf, TableUdf
from flowsql_core.udf_aggregates import AggregateUdf, TableAggregateUdf
from flowsql_core.udf_types import takes, type_of_hint
from flowsql_grammar import ast
from flowsql_planner.bind.expression.aggregate_calls import PendingAggregate
from flowsql_planner.bind.expression.over_calls import OverFunction
from flowsql_planner.catalog.functions import FunctionManager, UserFunction
from flowsql_planner.error_position import errors_at


def refuse_clauses(node: ast.FunctionCall) -> None:
    """BindError for what only aggregate functions take."""
    name = node.name.last.text
    if node.filter is not None or node.within_group or node.order_by:
        raise BindError("not-an-aggregate", f"'{name}' is not an aggregate function", node.span)
    if node.quantifier is not None:
        raise BindError("not-an-aggregate", f"DISTINCT/ALL not allowed with {name} function", node.span)


def bind_user_call(
    functions: FunctionManager, found: UserFunction, args: Sequence[Expr], node: ast.FunctionCall, rows: bool = False
) -> Expr:
    """The typed call of a user's function; ``rows``: of a table function, whose rows are an array.

    Raises:
        BindError: the function cannot be loaded, does not take these arguments, or gives no rows, or rows, where the
            other is wanted.
    """
    udf = _load(functions, found, node)
    name = node.name.last.text
    if isinstance(udf, ProcessUdf):
        message = f"'{spoken_name(name)}' is a process table function: it makes rows of tables."
        raise BindError("function-kind", message, node.span, f"SELECT * FROM {udf.form(spoken_name(name))}")
    if isinstance(udf, TableUdf) is not rows or isinstance(udf, AggregateUdf):
        if isinstance(udf, AggregateUdf):
            message = f"'{spoken_name(name)}' is an aggregate function: it makes no rows of one row."
            raise BindError("function-kind", message, node.span)
        kind, place = ("table", "in FROM: LATERAL TABLE(...)") if not rows else ("scalar", "where a value stands")
        message = f"'{spoken_name(name)}' is a {kind} function: it can be called only {place}."
        raise BindError("function-kind", message, node.span)
    cast = _arguments(name, udf, tuple(_moment(arg) for arg in args), node.span)
    return python_call(_function(found, udf, name), cast, udf.result_type, node.span)


@record
class ProcessCallee:
    """A process table function that a call names."""

    udf: ProcessUdf
    function: PythonFunction


def process_callee(functions: FunctionManager, found: UserFunction, node: ast.FunctionCall) -> ProcessCallee | None:
    """The process table function behind a name; None for a function of another kind."""
    udf = _load(functions, found, node)
    return ProcessCallee(udf, _function(found, udf, node.name.last.text)) if isinstance(udf, ProcessUdf) else None


def is_user_aggregate(functions: FunctionManager, found: UserFunction, node: ast.FunctionCall) -> bool:
    """Whether a user's function aggregates rows."""
    return isinstance(_load(functions, found, node), AggregateUdf)


def over_function(
    functions: FunctionManager, found: UserFunction, node: ast.FunctionCall, streaming: bool
) -> OverFunction:
    """A user's function before OVER.

    Raises:
        BindError: no aggregate of pandas, which alone Flink takes.
        NotSupportedYetError: DISTINCT.
    """
    udf = _load(functions, found, node)
    name = node.name.last.text
    if not isinstance(udf, AggregateUdf):
        raise BindError("not-an-aggregate", "OVER must be applied to aggregate function", node.span)
    if udf.kind is not FunctionKind.PANDAS:
        message = (
            "Non-Pandas Python UDAFs are not supported in stream mode currently."
            if streaming
            else "non-Pandas UDAFs are not supported in batch mode currently."
        )
        raise BindError("general-aggregate-over", message, node.span)
    if node.quantifier is ast.SetQuantifier.DISTINCT:
        raise NotSupportedYetError(f"{spoken_name(name)}(DISTINCT ...) OVER (...)", node.span)

    def arguments(args: Sequence[Expr]) -> Sequence[Expr]:
        return _arguments(name, udf, tuple(_moment(arg) for arg in args), node.span)

    return OverFunction(PYTHON, udf.result_type, aggregate_options(_function(found, udf, name)), arguments)


def user_aggregate(
    functions: FunctionManager,
    found: UserFunction,
    args: Sequence[Expr],
    condition: Expr | None,
    node: ast.FunctionCall,
) -> PendingAggregate:
    """The typed call of a user's aggregate function. ``condition``: of FILTER.

    Raises:
        BindError: the function does not take these arguments or clauses, or gives rows.
    """
    udf = _load(functions, found, node)
    name = node.name.last.text
    if isinstance(udf, TableAggregateUdf) and not udf.in_flat_aggregate:
        message = f"'{spoken_name(name)}' is a table aggregate function: it can be called only in flat_aggregate()."
        raise BindError("function-kind", message, node.span)
    if node.within_group or node.order_by:
        message = f"Aggregate expression '{spoken_name(name)}' must not contain a WITHIN GROUP clause"
        raise BindError("within-group", message, node.span)
    cast = _arguments(name, udf, tuple(_moment(arg) for arg in args), node.span)
    return PendingAggregate(
        PYTHON,
        cast,
        udf.result_type,
        node.quantifier is ast.SetQuantifier.DISTINCT,
        condition,
        options=aggregate_options(_function(found, udf, name)),
        span=node.span,
    )


def _load(functions: FunctionManager, found: UserFunction, node: ast.FunctionCall) -> ScalarUdf:
    with errors_at(node.span):
        return functions.load(found)


def _function(found: UserFunction, udf: ScalarUdf, name: str) -> PythonFunction:
    """The function as plans carry it, under its name as it was written: letters of any case find a function."""
    stored = found.definition if found.definition.function is None else None
    return PythonFunction(
        name,
        udf.key if stored is None else f"{stored.class_name}/{found.name}",
        udf.kind.value,
        udf.deterministic,
        path=None if stored is None or stored.source is not None else stored.class_name,
        source=None if stored is None else stored.source,
        function=udf,
    )


def _moment(arg: Expr) -> Expr:
    """A processing time is read from the clock where it becomes an argument."""
    if not t.is_proctime(arg.type):
        return arg
    return Cast(arg, t.without_attribute(arg.type), implicit=True, span=arg.span)


def _arguments(name: str, udf: ScalarUdf, args: tuple[Expr, ...], span: Span) -> tuple[Expr, ...]:
    if not udf.accepts_count(len(args)):
        raise _misfit(name, udf, args, span)
    if udf.input_types is not None:
        for place, (arg, type_) in enumerate(zip(args, udf.input_types, strict=True)):
            if not argument_cast_allowed(arg.type, type_):
                raise BindError(
                    "argument-types",
                    f"Invalid argument type at position {place}. Data type {type_} expected but {arg.type} passed.",
                    arg.span or span,
                )
        return tuple(implicit_cast(arg, type_) for arg, type_ in zip(args, udf.input_types, strict=True))
    hints = udf.input_hints or ()
    made = []
    for index, arg in enumerate(args):
        hint = hints[index] if index < len(hints) else None
        if hint is None or takes(hint, arg.type):
            made.append(arg)
            continue
        wanted = type_of_hint(hint)
        if wanted is None or not argument_cast_allowed(arg.type, wanted):
            raise _misfit(name, udf, args, span)
        made.append(implicit_cast(arg, wanted))
    return tuple(made)


def _misfit(name: str, udf: ScalarUdf, args: tuple[Expr, ...], span: Span) -> BindError:
    name = spoken_name(name)
    given = ", ".join(str(arg.type.as_nullable()) for arg in args)
    return BindError(
        "argument-types",
        f"Invalid function call:\n{name}({given})\n"
        f"Invalid input arguments. Expected signatures are:\n{_form(name, udf)}",
        span,
    )


def _form(name: str, udf: ScalarUdf) -> str:
    if udf.input_types is not None:
        return f"{name}({', '.join(map(str, udf.input_types))})"
    import inspect  # only errors show signatures

    from flowsql_core.udf import called, table_eval

    if isinstance(udf, AggregateUdf):
        function = udf.takes_rows
    else:
        function = table_eval(udf.function.inner) if isinstance(udf, TableUdf) else called(udf.function)
    try:
        return f"{name}{inspect.signature(function)}"
    except (TypeError, ValueError):
        return f"{name}(...)"
