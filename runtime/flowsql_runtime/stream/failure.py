"""What a failed user function looks like: its exception first, then where in the user's code, and the element."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Final

from flowsql_core.errors import ExecutionError, FlowSqlError, shortened

MAX_VALUE: Final = 200
MAX_FRAMES: Final = 5
#: Packages whose frames a user does not want to see; the roof wraps functions, too.
_OURS: Final = ("flowsql", "flowsql_core", "flowsql_runtime")
_NOTHING: Final = object()


#: What a user's function may raise; Ctrl-C is for the engine.
USER_ERRORS: Final = (Exception, SystemExit)


def user_failure(
    error: BaseException, function: Any, method: str, element: Any = _NOTHING, key: Any = _NOTHING
) -> FlowSqlError:
    """The error of the job for an exception out of a user's function.

    Args:
        error: what the function raised; an error of ours passes unchanged.
        function: the object, or the plain function.
        method: what was called, e.g. ``process_element``.
        element: what it was called with.
        key: of the element, on keyed streams.
    """
    if isinstance(error, FlowSqlError):
        return error
    text = str(error)
    made = ExecutionError("user-function", f"{type(error).__name__}: {text}" if text else type(error).__name__)
    ours = tuple(place + os.sep for name in _OURS if name in sys.modules for place in sys.modules[name].__path__)
    frames = [
        (frame.f_code.co_qualname, line, traceback.FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_name))
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith((*ours, "<frozen"))
    ]
    # The first frame is what the engine called; a function written in C has none.
    lines = [f"in {frames[0][0] if frames else function_name(function, method)}"]
    for _, line, frame in frames[-MAX_FRAMES:]:
        code = f": {frame.line}" if frame.line else ""
        lines.append(f'  File "{frame.filename}", line {line}, in {frame.name}{code}')
    if element is not _NOTHING:
        lines.append(f"element: {_shown(element)}")
    if key is not _NOTHING:
        lines.append(f"key: {_shown(key)}")
    made.details = tuple(lines)
    made.__cause__ = error
    return made


def function_name(function: Any, method: str) -> str:
    """``Class.method`` of an object, the name of a plain function."""
    named = getattr(function, "__qualname__", None)
    return str(named) if named is not None else f"{type(function).__qualname__}.{method}"


def _shown(value: Any) -> str:
    try:
        return shortened(repr(value), MAX_VALUE)
    except Exception as error:  # a repr of the user's may fail as well
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
