"""Process table functions: functions of tables with state and timers, which Flink has in Java only.

``process_table_function`` declares one; :class:`ProcessTableFunction` says what it looks like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowsql_core.process_function import ArgumentHint as ArgumentHint
from flowsql_core.process_function import ArgumentTrait as ArgumentTrait
from flowsql_core.process_function import ChangelogContext as ChangelogContext
from flowsql_core.process_function import ChangelogFunction as ChangelogFunction
from flowsql_core.process_function import ChooseMode, ProcessUdf
from flowsql_core.process_function import Context as Context
from flowsql_core.process_function import OnTimerContext as OnTimerContext
from flowsql_core.process_function import ProcessTableFunction as ProcessTableFunction
from flowsql_core.process_function import StateHint as StateHint
from flowsql_core.process_function import TableSemantics as TableSemantics
from flowsql_core.process_function import TimeContext as TimeContext
from flowsql_core.process_signature import make_process, result_row
from flowsql_core.row import ChangelogMode


class UserDefinedProcessTableFunctionWrapper(ProcessUdf):
    """What :func:`process_table_function` makes: for ``Table.process``, ``from_call`` and CREATE FUNCTION."""

    def __repr__(self) -> str:
        return f"<process_table_function {self.form(self.name)} -> {self.result_type}>"


def process_table_function(
    f: Any = None,
    *,
    result_type: Any = None,
    name: str | None = None,
    deterministic: bool | None = None,
    changelog_mode: ChangelogMode | ChooseMode | None = None,
    on_timer: Callable[..., Any] | None = None,
) -> Any:
    """Declare a process table function, as a decorator or by a call.

    Args:
        f: a :class:`ProcessTableFunction`, its class, or a function in the place of ``eval``.
        result_type: of the rows: the type of the only column, or a ROW, as data type or SQL text. Left out: what
            ``get_result_type`` says.
        name: how plans and messages call it.
        deterministic: False where equal tables may give different rows: equal calls are then never made once.
        changelog_mode: the changes that the rows may be: ``ChangelogMode.insert_only()``, ``.upsert()`` by the key of
            PARTITION BY, or ``.all()``; or a function of a :class:`ChangelogContext` that chooses one for each call.
            Left out: what a :class:`ChangelogFunction` chooses, inserts of any other.
        on_timer: beside a function: what is called when a timer fires.

    Raises:
        BindError: the signature says no arguments. TypeError: not a function, or no result type.

    >>> from typing import Annotated
    >>> from flowsql.common import Row
    >>> @process_table_function(result_type="STRING")
    ... def greet(guest: Annotated[Row, ArgumentHint(ArgumentTrait.ROW_SEMANTIC_TABLE)], word: str = "Hello"):
    ...     yield f"{word} {guest.name}!"
    >>> greet
    <process_table_function greet(guest => TABLE, word => STRING (optional), on_time => DESCRIPTOR(...), uid => STRING) -> ROW<`EXPR$0` STRING> NOT NULL>
    """  # noqa: E501

    def declare(function: Any) -> ProcessUdf:
        if isinstance(function, type) and issubclass(function, ProcessTableFunction):
            function = function()
        given = result_type
        if given is None and isinstance(function, ProcessTableFunction):
            given = function.get_result_type()
        made = make_process(
            function,
            name=name,
            result_type=result_row(given),
            deterministic=deterministic,
            changelog_mode=changelog_mode,
            on_timer=on_timer,
            make=UserDefinedProcessTableFunctionWrapper,
        )
        made.__doc__ = getattr(function, "__doc__", None)
        return made

    return declare if f is None else declare(f)
