"""What a program sees of an error: its own lines, and the report with the place in the statement.

Classes that programs call stand under :func:`public_api`. An error of FlowSQL that leaves one of their methods loses
the frames inside of FlowSQL; causes keep the frames of the program's own functions. ``sql-client.verbose`` keeps all.
"""

from __future__ import annotations

import functools
import inspect
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, TracebackType
from typing import Any, Final, TypeVar
from weakref import WeakSet

from flowsql_core.config import Configuration, option, parse_bool
from flowsql_core.errors import FlowSqlError, InternalError

C = TypeVar("C", bound=type)

VERBOSE = option(
    "sql-client.verbose", parse_bool, False, "Show all frames of an error: its whole Python trace, not the program's."
)

#: Root packages whose frames are FlowSQL's.
_OWN: Final = frozenset(
    {
        "flowsql",
        "flowsql_core",
        "flowsql_grammar",
        "flowsql_planner",
        "flowsql_compute",
        "flowsql_runtime",
        "flowsql_connectors",
    }
)
_STANDARD: Final = sysconfig.get_path("stdlib")
#: Folders of installed packages; they may lie within the standard library's.
_INSTALLED: Final = ("site-packages", "dist-packages")
#: Methods without a name of their own that programs call through the language.
_SPECIAL: Final = ("__next__",)

#: The options of sessions that live in this process.
_sessions: WeakSet[Configuration] = WeakSet()


class _Report(str):
    """The note of an error that :func:`leave_frames` wrote."""

    __slots__ = ()


def public_api(cls: C) -> C:
    """A class whose public methods let errors of FlowSQL out without the frames inside of it."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        match member:
            case FunctionType():
                setattr(cls, name, _guarded(member))
            case staticmethod():
                setattr(cls, name, staticmethod(_guarded(member.__func__)))
            case classmethod():
                setattr(cls, name, classmethod(_guarded(member.__func__)))
            case _:
                pass
    return cls


def keeps_frames(configuration: Configuration) -> None:
    """Have ``sql-client.verbose`` of a session count, as long as the session lives."""
    _sessions.add(configuration)


def leave_frames(error: FlowSqlError) -> None:
    """Take the frames inside of FlowSQL out of an error that goes to the program, and note the report on it.

    The note tells what ``render()`` tells behind the message: Python prints it below the trace.
    """
    notes = [note for note in getattr(error, "__notes__", ()) if not isinstance(note, _Report)]
    report = error.render_details()
    error.__notes__ = [*notes, _Report(report)] if report else notes
    # A fault of FlowSQL itself is reported with its whole trace.
    if isinstance(error, InternalError) or any(session.get(VERBOSE) for session in list(_sessions)):
        return
    _shorten_causes(error)
    error.__traceback__ = _program_frames(error.__traceback__)


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method within a handler that shortens errors.

    ``raise`` without an error adds no frame: what was put into ``__traceback__`` goes on as it is.
    """
    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return (yield from method(*args, **kwargs))
            except FlowSqlError as error:
                leave_frames(error)
                raise
    else:

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except FlowSqlError as error:
                leave_frames(error)
                raise

    return call


def _shorten_causes(error: BaseException) -> None:
    """Leave the program's frames in the errors behind this one; those that have none are not shown as context."""
    seen = {id(error)}
    current: BaseException | None = error
    while current is not None:
        behind = current.__cause__ or current.__context__
        if behind is None or id(behind) in seen:
            return
        seen.add(id(behind))
        behind.__traceback__ = _from_program(behind.__traceback__)
        if current.__cause__ is None and behind.__traceback__ is None:
            current.__suppress_context__ = True
        current = behind


def _program_frames(trace: TracebackType | None) -> TracebackType | None:
    """The frames of functions that are neither FlowSQL's nor those of a library."""
    return _linked(link for link in _links(trace) if not (_is_own(link) or _is_standard(link) or _is_installed(link)))


def _from_program(trace: TracebackType | None) -> TracebackType | None:
    """The frames from the first one of the program on: what its functions call may be a library of its own."""
    links = list(_links(trace))
    while links and (_is_own(links[0]) or _is_standard(links[0])):
        links.pop(0)
    return _linked(link for link in links if not _is_own(link))


def _links(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _linked(links: Iterable[TracebackType]) -> TracebackType | None:
    made: TracebackType | None = None
    for link in reversed(list(links)):
        made = TracebackType(made, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return made


def _is_own(link: TracebackType) -> bool:
    return str(link.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in _OWN


def _is_standard(link: TracebackType) -> bool:
    name = link.tb_frame.f_code.co_filename
    return name.startswith("<frozen") or (name.startswith(_STANDARD) and not _is_installed(link))


def _is_installed(link: TracebackType) -> bool:
    return any(folder in link.tb_frame.f_code.co_filename for folder in _INSTALLED)
