"""What a process table function takes and keeps, from the signatures and type hints of ``eval`` and ``on_timer``.

``eval(context?, *state entries, *arguments)``: a parameter hinted ``Context`` (or called ``ctx`` or ``context`` without
a hint) comes first; ``Annotated[..., StateHint()]``, ``ListView[...]`` and ``MapView[...]`` are state entries;
``Annotated[Row, ArgumentHint(...)]`` with a trait of tables is a table; anything else is a scalar argument.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from flowsql_core.config import parse_duration_ms
from flowsql_core.data_view import ListView, MapView
from flowsql_core.errors import BindError
from flowsql_core.process_function import (
    IMPLICIT,
    ArgumentHint,
    ArgumentTrait,
    ChangelogFunction,
    ChooseMode,
    Context,
    OnTimerContext,
    Parameter,
    ProcessTableFunction,
    ProcessUdf,
    ScalarParameter,
    StateEntry,
    StateField,
    StateHint,
    TableParameter,
    mode_refusal,
)
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_core.types import logical as t
from flowsql_core.types.text import parse_type
from flowsql_core.udf import ROW_CLASS, function_name
from flowsql_core.udf_types import type_of_hint

_CODE: Final = "process-function"
_CONTEXT_NAMES: Final = ("ctx", "context")
_KINDS: Final = (ArgumentTrait.SCALAR, ArgumentTrait.ROW_SEMANTIC_TABLE, ArgumentTrait.SET_SEMANTIC_TABLE)
#: Traits that ask for another one.
_NEEDS: Final = {
    ArgumentTrait.OPTIONAL_PARTITION_BY: ArgumentTrait.SET_SEMANTIC_TABLE,
    ArgumentTrait.REQUIRE_UPDATE_BEFORE: ArgumentTrait.SUPPORT_UPDATES,
    ArgumentTrait.REQUIRE_FULL_DELETE: ArgumentTrait.SUPPORT_UPDATES,
}
#: Types whose values come back from a column as they were: others are kept as pickles.
_EXACT: Final = (t.BooleanType, t.IntegerType, t.DoubleType, t.CharacterType, t.BinaryStringType, t.DateType)


@record
class _Hinted:
    """A parameter with its hint, taken apart."""

    name: str
    hint: Any
    argument: ArgumentHint | None
    state: StateHint | None
    parameter: inspect.Parameter

    @property
    def origin(self) -> Any:
        return typing.get_origin(self.hint) or self.hint

    @property
    def is_state(self) -> bool:
        return self.state is not None or self.origin in (ListView, MapView)


def make_process(
    function: Any,
    *,
    name: str | None,
    result_type: t.RowType,
    deterministic: bool | None,
    changelog_mode: ChangelogMode | ChooseMode | None = None,
    on_timer: Callable[..., Any] | None = None,
    make: type[ProcessUdf] = ProcessUdf,
) -> ProcessUdf:
    """A declared function; ``on_timer``: of one that is no class. ``changelog_mode`` None: what a
    :class:`ChangelogFunction` chooses, inserts of any other.

    Raises:
        TypeError: not a function. BindError: its signature says no arguments.
    """
    if isinstance(function, type) and issubclass(function, ProcessTableFunction):
        function = function()
    is_class = isinstance(function, ProcessTableFunction)
    if not is_class and (isinstance(function, type) or not callable(function)):
        raise TypeError(f"Invalid function: not a function or callable (__call__ is not defined): {function!r}")
    called = function.eval if is_class else function
    own = function.is_deterministic() if is_class else None
    if deterministic is not None and own is not None and deterministic != own:
        raise ValueError(f"Inconsistent deterministic: {deterministic} and {own}")
    made = make(
        function,
        name or function_name(function),
        result_type,
        deterministic=next((said for said in (deterministic, own) if said is not None), True),
    )
    made.state_makers = {}
    _take(made, called)
    timer = getattr(function, "on_timer", None) if is_class else on_timer
    if timer is not None:
        _take_timer(made, timer)
    _take_mode(made, function, changelog_mode)
    _check(made)
    return made


def _take_mode(made: ProcessUdf, function: Any, given: ChangelogMode | ChooseMode | None) -> None:
    if isinstance(function, ChangelogFunction):
        if given is not None:
            raise _refused(
                made,
                "is a ChangelogFunction and has a changelog_mode, too.",
                "leave one of them out: they say one thing",
            )
        given = function.get_changelog_mode
    if isinstance(given, ChangelogMode) or given is None:
        made.changelog_mode = given or INSERT_ONLY
    elif callable(given):
        made.choose_changelog_mode = given
    else:
        raise TypeError(f"changelog_mode is a ChangelogMode, or a function of a context that gives one, not {given!r}")


def make_own_process(function: ProcessTableFunction, name: str | None = None) -> ProcessUdf:
    """A function that nobody declared, with the type that it says itself."""
    row = result_row(function.get_result_type())
    return make_process(function, name=name, result_type=row, deterministic=None)


def result_row(given: Any) -> t.RowType:
    """The ROW of what a function makes, of a type, its SQL text or an object of the Table API; a type alone is its only
    column, which has Flink's name.

    Raises:
        TypeError: no type.
    """
    found = _type(given)
    if isinstance(found, t.RowType):
        return t.RowType(fields=found.fields, nullable=False)
    return t.RowType(fields=(t.Field("EXPR$0", found),), nullable=False)


def _refused(made: ProcessUdf, message: str, hint: str | None = None) -> BindError:
    return BindError(_CODE, f"The process table function '{made.name}' {message}", hint=hint)


def _hinted(made: ProcessUdf, function: Callable[..., Any]) -> list[_Hinted]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise _refused(
            made, f"has a type hint that is not known: {error}", "define or import it at the top of the module"
        ) from error
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise _refused(made, f"takes *{name}: each argument needs a name of its own")
        hint = hints.get(name, Any)
        extras: tuple[Any, ...] = ()
        if typing.get_origin(hint) is typing.Annotated:
            hint, *more = typing.get_args(hint)
            extras = tuple(more)
        argument = next((extra for extra in extras if isinstance(extra, ArgumentHint)), None)
        state = next((extra for extra in extras if isinstance(extra, StateHint)), None)
        found.append(_Hinted(name, hint, argument, state, parameter))
    return found


def _is_context(given: _Hinted, place: int) -> bool:
    if isinstance(given.hint, type) and issubclass(given.hint, Context):
        return True
    return place == 0 and given.hint is Any and given.argument is None and given.name in _CONTEXT_NAMES


def _take(made: ProcessUdf, function: Callable[..., Any]) -> None:
    """The parameters of ``eval``."""
    given = _hinted(made, function)
    if given and _is_context(given[0], 0):
        made.takes_context = True
        given = given[1:]
    states: list[StateEntry] = []
    parameters: list[Parameter] = []
    for one in given:
        if _is_context(one, 1):
            raise _refused(made, f"has its context '{one.name}' behind other parameters", "put it first")
        if not one.is_state:
            parameters.append(_parameter(made, one))
        elif parameters:
            raise _refused(
                made,
                f"has the state entry '{one.name}' behind its arguments.",
                "eval(context?, *state entries, *arguments)",
            )
        else:
            states.append(_state(made, one))
    made.states, made.parameters = tuple(states), tuple(parameters)


def _take_timer(made: ProcessUdf, function: Callable[..., Any]) -> None:
    given = _hinted(made, function)
    if given and (_is_context(given[0], 0) or given[0].hint is OnTimerContext):
        made.timer_takes_context = True
        given = given[1:]
    known = [entry.name for entry in made.states]
    for one in given:
        if one.name not in known:
            raise _refused(
                made,
                f"has on_timer() with the parameter '{one.name}', which is no state entry of eval().",
                f"state entries are: {', '.join(known) or 'none'}",
            )
    made.on_timer = function
    made.timer_states = tuple(one.name for one in given)


def _check(made: ProcessUdf) -> None:
    """What the parameters may be beside each other."""
    names = [parameter.name for parameter in made.parameters]
    taken = [name for name in names if name in IMPLICIT]
    if taken:
        raise _refused(made, f"has an argument '{taken[0]}', which every such function has by itself.")
    tables = made.tables
    sets = [table for table in tables if table.is_set]
    if len(tables) > 1 and len(sets) != len(tables):
        raise _refused(made, "has several table arguments, which all must have set semantics.")
    if (made.states or made.has_timers) and not sets:
        raise _refused(made, "has state or timers, which belong to the partitions of a table with SET_SEMANTIC_TABLE.")
    through = [table for table in tables if table.has(ArgumentTrait.PASS_COLUMNS_THROUGH)]
    if through and len(tables) > 1:
        raise _refused(made, "passes columns through, which goes with one table argument only.")
    if through and made.has_timers:
        raise _refused(made, "passes columns through and has timers, which belong to no row.")
    refusal = mode_refusal(made.changelog_mode, made.parameters)
    if refusal is not None:
        raise _refused(made, refusal)


# Arguments


def _parameter(made: ProcessUdf, given: _Hinted) -> Parameter:
    traits = frozenset() if given.argument is None else given.argument.traits
    kinds = [kind for kind in _KINDS if kind in traits]
    if len(kinds) > 1:
        raise _refused(made, f"has the argument '{given.name}' of several kinds: {kinds[0].value}, {kinds[1].value}")
    for trait, needed in _NEEDS.items():
        if trait in traits and needed not in traits:
            raise _refused(made, f"has the argument '{given.name}' with {trait.value}, which needs {needed.value}.")
    if not kinds and traits:
        raise _refused(
            made,
            f"has the argument '{given.name}' with {next(iter(traits)).value}, which only tables have.",
            "add SET_SEMANTIC_TABLE or ROW_SEMANTIC_TABLE",
        )
    declared = None if given.argument is None or given.argument.type is None else _type(given.argument.type)
    if kinds and kinds[0] is not ArgumentTrait.SCALAR:
        if declared is not None and not isinstance(declared, t.RowType):
            raise _refused(made, f"has the table '{given.name}' of the type {declared}, which is no ROW.")
        columns = None if declared is None else tuple(t.Column(f.name, f.type) for f in declared.fields)
        return TableParameter(given.name, traits, columns)
    type_ = declared if declared is not None else type_of_hint(given.hint)
    default = given.parameter.default
    missing = default is inspect.Parameter.empty
    optional = not missing or (given.argument is not None and given.argument.is_optional)
    return ScalarParameter(given.name, type_, optional, None if missing else default)


def _type(given: Any) -> t.LogicalType:
    found = getattr(given, "logical", given)
    if isinstance(found, str):
        return parse_type(found)
    if not isinstance(found, t.LogicalType):
        raise TypeError(f"a type is a DataType or its SQL text, not {given!r}")
    return found


# State


def _state(made: ProcessUdf, given: _Hinted) -> StateEntry:
    hint = given.state or StateHint()
    declared = None if hint.type is None else _type(hint.type)
    try:
        ttl_ms = None if hint.ttl is None else parse_duration_ms(hint.ttl)
    except ValueError as error:
        raise _refused(made, f"has the state entry '{given.name}' with the ttl {hint.ttl!r}: {error}") from None
    if given.origin is ListView:
        return StateEntry(given.name, "list", (_element(made, given, declared),), None, ttl_ms)
    if given.origin is MapView:
        key, value = _key_and_value(made, given, declared)
        return StateEntry(given.name, "map", (value,), key, ttl_ms)
    fields, maker = _object(made, given, declared)
    made.state_makers[given.name] = maker
    return StateEntry(given.name, "value", fields, None, ttl_ms)


def _exact(type_: t.LogicalType | None) -> t.LogicalType | None:
    return type_.as_nullable() if isinstance(type_, _EXACT) else None


def _element(made: ProcessUdf, given: _Hinted, declared: t.LogicalType | None) -> StateField:
    if declared is not None:
        if not isinstance(declared, t.ArrayType):
            raise _refused(made, f"has the list '{given.name}' of the type {declared}, which is no ARRAY.")
        return StateField("value", _exact(declared.element))
    args = typing.get_args(given.hint)
    return StateField("value", _exact(type_of_hint(args[0])) if args else None)


def _key_and_value(
    made: ProcessUdf, given: _Hinted, declared: t.LogicalType | None
) -> tuple[t.LogicalType, StateField]:
    if declared is not None and not isinstance(declared, t.MapType):
        raise _refused(made, f"has the map '{given.name}' of the type {declared}, which is no MAP.")
    if isinstance(declared, t.MapType):
        key, value = _exact(declared.key), _exact(declared.value)
    else:
        args = typing.get_args(given.hint)
        key, value = (_exact(type_of_hint(arg)) for arg in args) if len(args) == 2 else (None, None)
    if key is None:
        raise _refused(
            made,
            f"has the map '{given.name}' whose keys are not of a type that can be looked up.",
            "MapView[K, V] with K one of str, int, bool, float, bytes, date; or StateHint(type='MAP<STRING, INT>')",
        )
    return key, StateField("value", value)


def _object(
    made: ProcessUdf, given: _Hinted, declared: t.LogicalType | None
) -> tuple[tuple[StateField, ...], Callable[..., Any]]:
    """The fields of a state object, and what makes one."""
    module, _, name = ROW_CLASS.partition(":")
    row = getattr(import_module(module), name)
    if declared is not None:
        if not isinstance(declared, t.RowType):
            raise _refused(made, f"has the state entry '{given.name}' of the type {declared}, which is no ROW.")
        fields = tuple(StateField(field.name, _exact(field.type)) for field in declared.fields)
        return fields, _RowMaker(row, tuple(field.name for field in fields))
    kind = given.hint
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        raise _refused(
            made,
            f"has the state entry '{given.name}', which is no dataclass, ListView or MapView.",
            "a dataclass whose fields all have defaults, or Annotated[Row, StateHint(type='ROW<n BIGINT>')]",
        )
    hints = typing.get_type_hints(kind)
    own = [field for field in dataclasses.fields(kind) if field.init]
    bare = [f.name for f in own if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    if bare:
        raise _refused(
            made,
            f"has the state entry '{given.name}' whose field '{bare[0]}' has no default.",
            "state starts as the class makes it without arguments",
        )
    return tuple(StateField(field.name, _exact(type_of_hint(hints[field.name]))) for field in own), kind


class _RowMaker:
    """Makes rows of NULLs; a class, so that declarations can be pickled."""

    def __init__(self, row: Any, names: tuple[str, ...]) -> None:
        self._row = row
        self._names = names

    def __call__(self, **values: Any) -> Any:
        return self._row.of_names(self._names, [values.get(name) for name in self._names])
