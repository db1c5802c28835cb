"""What a user sees of an exception in a function: the exception first, then function, arguments and its own frames."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import os
import site
import sysconfig
import types
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from flowsql_core.record import record

#: Frames, arguments, and characters of one argument that a report shows.
MAX_FRAMES: Final = 3
MAX_ARGUMENTS: Final = 6
MAX_VALUE: Final = 60


@record
class UserFailure:
    """A failure of a user's function, in a form that a worker process sends. ``row``: in the batch, from 0."""

    code: str
    message: str
    row: int | None = None
    step: int | None = None


class UserFailureError(Exception):
    """Carries a :class:`UserFailure` from where a function failed; the cause is the user's own exception."""

    def __init__(self, failure: UserFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def describe_failure(error: BaseException, where: str) -> str:
    """The report of an exception: first line as Python prints it, then ``where``, then frames of user code."""
    name = type(error).__name__ if type(error).__module__ == "builtins" else _full_name(type(error))
    first = f"{name}: {error}" if str(error) else name
    return "\n".join([first, f"in {where}", *_frames(error.__traceback__)])


def call_text(name: str, function: Callable[..., Any], values: Sequence[Any]) -> str:
    """``the Python function 'f', called with x = 0, y = 'a'``."""
    return f"the Python function '{name}'{_arguments(function, values)}"


def value_text(value: Any) -> str:
    """A value as a reader sees it, cut where it is long."""
    try:
        text = repr(value).replace("\n", "\\n")
    except Exception as error:  # a repr of a user's class
        text = f"<{type(value).__name__}, whose repr fails: {type(error).__name__}>"
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 3] + "..."


def _full_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ in ("__main__", None) else f"{kind.__module__}.{kind.__qualname__}"


def _arguments(function: Callable[..., Any], values: Sequence[Any]) -> str:
    if not values:
        return ""
    try:
        names: list[str] = [*inspect.signature(function).bind(*values).arguments]
    except (TypeError, ValueError):
        names = []
    if len(names) != len(values):
        names = [f"argument {place + 1}" for place in range(len(values))]
    pairs = [f"{name} = {value_text(value)}" for name, value in zip(names, values, strict=True)]
    more = f" and {len(pairs) - MAX_ARGUMENTS} more" if len(pairs) > MAX_ARGUMENTS else ""
    return f", called with {', '.join(pairs[:MAX_ARGUMENTS])}{more}"


def _frames(trace: types.TracebackType | None) -> list[str]:
    frames = list(_walk(trace))
    own = [frame for frame in frames if _is_users(frame[0])]
    return [
        f"  {_shown(file)}:{line} in {name}: {linecache.getline(file, line).strip()}".removesuffix(": ")
        for file, line, name in own[-MAX_FRAMES:]
    ]


def _walk(trace: types.TracebackType | None) -> Iterator[tuple[str, int, str]]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_frame.f_code.co_name
        trace = trace.tb_next


def _shown(file: str) -> str:
    here = os.getcwd() + os.sep
    return file.removeprefix(here)


def _is_users(file: str) -> bool:
    return not file.startswith(_foreign()) and not file.startswith("<frozen")


@cache
def _foreign() -> tuple[str, ...]:
    """Folders of FlowSQL itself, of the standard library and of installed packages."""
    # The roof by name only: no floor imports it.
    specs = (importlib.util.find_spec(name) for name in ("flowsql", "flowsql_core", "flowsql_runtime"))
    own = [path for spec in specs if spec is not None for path in spec.submodule_search_locations or ()]
    installed = (*site.getsitepackages(), site.getusersitepackages())
    library = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(path + os.sep for path in (*own, *installed, *library) if path)
