"""Process table functions: what a program writes of them, and what one is once it is declared.

A function takes tables row by row and gives rows, with state, timers and scalar arguments beside. Users meet these
names in ``flowsql.table.process_function``; how a declaration follows from a function's hints stands in
``process_signature``. Names and meaning are those of Flink's ``ProcessTableFunction`` (FLIP-440), which exists in Java
only.
"""

from __future__ import annotations

import datetime
import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, overload

from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_core.types.logical import LogicalType, RowType, Schema
from flowsql_core.udf import ScalarUdf, UserDefinedFunction

#: Arguments that every function has behind its own.
ON_TIME: Final = "on_time"
UID: Final = "uid"

#: Why ``on_time`` is refused (Flink's words).
TIMES_WITH_UPDATES: Final = (
    "Time operations using the `on_time` argument are currently not supported for PTFs that consume or produce updates."
)
#: Why a column is no argument of ``on_time`` (Flink's words); ``{name}`` is the column's.
NO_TIME_ATTRIBUTE: Final = (
    "Column '{name}' is not a valid time attribute. Only columns with a watermark declaration qualify for the "
    "`on_time` argument. Also, make sure that the watermarked column is forwarded without any modification."
)
IMPLICIT: Final = (ON_TIME, UID)

#: A moment as a function sees it: datetime, or milliseconds of the epoch.
Moment: TypeAlias = datetime.datetime | int


class ArgumentTrait(enum.Enum):
    """What an argument is and asks for. The first three say its kind; the others belong to tables."""

    SCALAR = "SCALAR"
    #: Each row for itself.
    ROW_SEMANTIC_TABLE = "ROW_SEMANTIC_TABLE"
    #: The rows of a partition belong together: state and timers are theirs.
    SET_SEMANTIC_TABLE = "SET_SEMANTIC_TABLE"
    #: PARTITION BY may be left out; then all rows are one partition.
    OPTIONAL_PARTITION_BY = "OPTIONAL_PARTITION_BY"
    #: All columns of the row stand in front of what the function makes of it. No timers then.
    PASS_COLUMNS_THROUGH = "PASS_COLUMNS_THROUGH"
    #: Rows may update and delete: their kind is ``row.get_row_kind()``.
    SUPPORT_UPDATES = "SUPPORT_UPDATES"
    #: With each update comes the row before it.
    REQUIRE_UPDATE_BEFORE = "REQUIRE_UPDATE_BEFORE"
    #: A deleted row comes with all of its columns.
    REQUIRE_FULL_DELETE = "REQUIRE_FULL_DELETE"
    #: ``on_time => DESCRIPTOR(ts)`` is needed.
    REQUIRE_ON_TIME = "REQUIRE_ON_TIME"


class ArgumentHint:
    """What a type hint alone does not say of an argument.

    ``Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)]`` is a table,
    ``Annotated[int, ArgumentHint(type="INT")]`` a scalar of another type than its hint's. ``type`` of a table: the ROW
    that its columns must be.
    """

    def __init__(self, *traits: ArgumentTrait, type: Any = None, is_optional: bool = False) -> None:
        self.traits = frozenset(traits)
        self.type = type
        self.is_optional = is_optional


class StateHint:
    """Makes a parameter a state entry: ``Annotated[Visits, StateHint(ttl="1 day")]``.

    Args:
        type: of a ``Row`` the ROW, of a ``ListView`` the ARRAY, of a ``MapView`` the MAP; else hints say the types.
        ttl: how long an entry that is not written stays; None: ``table.exec.state.ttl``; "0" keeps it for ever.
    """

    def __init__(self, *, type: Any = None, ttl: str | None = None) -> None:
        self.type = type
        self.ttl = ttl


@record
class TableSemantics:
    """What the table of an argument is in a call.

    ``partition_by_columns``, ``order_by_columns``: places in ``data_type``; ``time_column`` likewise, -1 without
    ``on_time``. ``changelog_mode``: the kinds of change that arrive.
    """

    data_type: RowType
    partition_by_columns: tuple[int, ...] = ()
    order_by_columns: tuple[int, ...] = ()
    time_column: int = -1
    changelog_mode: ChangelogMode = INSERT_ONLY


class TimeContext(ABC):
    """Time and timers of the current partition, in datetime (aware for TIMESTAMP_LTZ) or milliseconds."""

    @abstractmethod
    def time(self) -> Any:
        """The time of the row, or of the timer that fires; None without ``on_time``."""

    @abstractmethod
    def current_watermark(self) -> Any:
        """The watermark of this subtask; None where none came."""

    @abstractmethod
    def table_watermark(self) -> Any:
        """The watermark of the table that the row is of; in a timer the current one."""

    @abstractmethod
    def register_on_time(self, name_or_time: str | Moment, time: Moment | None = None) -> None:
        """Wait for a time: ``register_on_time(t)``, or ``register_on_time("ping", t)``, which replaces a timer of that
        name."""

    @abstractmethod
    def clear_timer(self, name_or_time: str | Moment) -> None:
        """Forget a timer by its name or time; one that is not there is ignored."""

    @abstractmethod
    def clear_all_timers(self) -> None:
        """Forget all timers of the partition."""


class Context(ABC):
    """What ``eval`` may ask for as its first parameter."""

    @overload
    def time_context(self) -> TimeContext: ...
    @overload
    def time_context(self, kind: type) -> TimeContext: ...
    @abstractmethod
    def time_context(self, kind: type = datetime.datetime) -> TimeContext:
        """Time and timers; ``kind``: ``datetime``, or ``int`` for milliseconds."""

    @abstractmethod
    def table_semantics_for(self, argument: str) -> TableSemantics:
        """What the table of an argument is in this call."""

    @abstractmethod
    def clear_state(self, name: str) -> None:
        """Forget a state entry of the partition when ``eval`` has returned."""

    @abstractmethod
    def clear_all_state(self) -> None:
        """Forget all state entries of the partition when ``eval`` has returned."""

    @abstractmethod
    def clear_all_timers(self) -> None:
        """Forget all timers of the partition."""

    @abstractmethod
    def clear_all(self) -> None:
        """Forget state and timers of the partition."""

    @abstractmethod
    def get_changelog_mode(self) -> ChangelogMode:
        """The kinds of change that the function may emit."""


class OnTimerContext(Context):
    """What ``on_timer`` may ask for as its first parameter."""

    @abstractmethod
    def current_timer(self) -> str | None:
        """The name of the timer that fires; None of one without a name."""


@record
class ChangelogContext:
    """What a function may look at when it chooses its changelog mode for a call.

    ``table_modes``: the kinds of change that arrive, by table argument. ``required``: those that the consumers ask for.
    """

    table_modes: tuple[tuple[str, ChangelogMode], ...]
    required: ChangelogMode

    def get_table_changelog_mode(self, argument: str) -> ChangelogMode:
        """The kinds of change that the table of an argument brings.

        Raises:
            KeyError: no such table argument.
        """
        return dict(self.table_modes)[argument]

    def get_required_changelog_mode(self) -> ChangelogMode:
        """What the consumers ask for; insert-only where they take no changes, or the function need not make any."""
        return self.required


class ChangelogFunction(ABC):
    """Beside :class:`ProcessTableFunction`: the function says itself, for each call, which changes it makes."""

    @abstractmethod
    def get_changelog_mode(self, changelog_context: ChangelogContext) -> ChangelogMode:
        """The kinds of change that the function makes in a call. Asked several times while a query is planned."""


#: Chooses the changelog mode of a call.
ChooseMode: TypeAlias = Callable[[ChangelogContext], ChangelogMode]


class ProcessTableFunction(UserDefinedFunction, ABC):
    """A function of tables that makes rows: ``eval(context?, *state entries, *arguments)``, called for each row.

    ``eval`` yields or returns rows: tuples, ``Row``s, or values of the only column. A class may have
    ``on_timer(context?, *state entries)`` too, which does the same when a timer fires.
    """

    Context = Context
    OnTimerContext = OnTimerContext
    TimeContext = TimeContext

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The rows that one row makes; None for none."""

    def get_result_type(self) -> Any:
        """The type of the rows, where the declaration does not say it."""
        raise RuntimeError("Method get_result_type is not implemented")


# What a declaration says


@record
class TableParameter:
    """A table argument. ``columns``: what they must be; None: any."""

    name: str
    traits: frozenset[ArgumentTrait]
    columns: Schema | None = None

    def has(self, trait: ArgumentTrait) -> bool:
        """Whether it has a trait."""
        return trait in self.traits

    @property
    def is_set(self) -> bool:
        """Whether rows of a partition belong together."""
        return ArgumentTrait.SET_SEMANTIC_TABLE in self.traits


@record
class ScalarParameter:
    """A scalar argument; ``type`` None takes any. One that is left out is ``default``."""

    name: str
    type: LogicalType | None
    optional: bool = False
    default: Any = None


Parameter: TypeAlias = TableParameter | ScalarParameter


@record
class StateField:
    """A value that is kept. ``type`` None: as a pickle."""

    name: str
    type: LogicalType | None


@record
class StateEntry:
    """A state entry: one object of fields, a list, or a map by ``key``.

    ``fields``: of the object; of lists and maps the value. ``ttl_ms`` None: ``table.exec.state.ttl``; 0: for ever.
    """

    name: str
    kind: Literal["value", "list", "map"]
    fields: tuple[StateField, ...]
    key: LogicalType | None = None
    ttl_ms: int | None = None


class ProcessUdf(ScalarUdf):
    """A process table function with its declaration. ``result_type``: the ROW of what it makes of a row.

    ``state_makers``: make an object of each ``value`` entry, by name, of the fields given by name; without any an empty
    one. ``on_timer``: None without timers.
    """

    parameters: tuple[Parameter, ...] = ()
    states: tuple[StateEntry, ...] = ()
    state_makers: dict[str, Callable[..., Any]]
    takes_context: bool = False
    on_timer: Callable[..., Any] | None = None
    #: Whether ``on_timer`` takes a context, and the states that it takes.
    timer_takes_context: bool = False
    timer_states: tuple[str, ...] = ()
    changelog_mode: ChangelogMode = INSERT_ONLY
    #: In place of ``changelog_mode``.
    choose_changelog_mode: ChooseMode | None = None

    @property
    def tables(self) -> tuple[TableParameter, ...]:
        """Its table arguments."""
        return tuple(parameter for parameter in self.parameters if isinstance(parameter, TableParameter))

    @property
    def has_timers(self) -> bool:
        """Whether timers may be registered."""
        return self.on_timer is not None

    def form(self, name: str) -> str:
        """The signature, as messages show it."""
        shown = []
        for parameter in self.parameters:
            match parameter:
                case TableParameter(columns=columns):
                    of = "" if columns is None else f" ({', '.join(f'{c.name} {c.type}' for c in columns)})"
                    shown.append(f"{parameter.name} => TABLE{of}{' PARTITION BY ...' if parameter.is_set else ''}")
                case ScalarParameter(type=type_, optional=optional):
                    text = "any value" if type_ is None else str(type_)
                    shown.append(f"{parameter.name} => {text}{' (optional)' if optional else ''}")
        if self.tables:
            shown.append(f"{ON_TIME} => DESCRIPTOR(...)")
        return f"{name}({', '.join([*shown, f'{UID} => STRING'])})"


def mode_refusal(mode: ChangelogMode, parameters: Sequence[Parameter]) -> str | None:
    """Why a function of such parameters cannot have a changelog mode; None: it can."""
    tables = [parameter for parameter in parameters if isinstance(parameter, TableParameter)]
    if not mode.insert_only and any(table.has(ArgumentTrait.PASS_COLUMNS_THROUGH) for table in tables):
        return f"emits {mode} and passes columns through, which goes with inserts only."
    rows = [table for table in tables if not table.is_set]
    if mode.upsert and rows:
        return (
            f"emits upserts, {mode}, but its table '{rows[0].name}' has row semantics: the key of upserts is that of "
            "PARTITION BY, which tables with SET_SEMANTIC_TABLE have."
        )
    return None


def names_of(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Names of parameters, with those that every function has."""
    return (*(parameter.name for parameter in parameters), *IMPLICIT)
