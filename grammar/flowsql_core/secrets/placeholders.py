"""``${env:NAME}`` and ``${file:PATH}`` in options: what they stand for.

Placeholders are filled in where a connector reads its option, in the process that reads it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from flowsql_core.errors import BindError
from flowsql_core.secrets.hidden import hide
from flowsql_core.secrets.references import PLACEHOLDER


def filled(text: str) -> str:
    """The text with what its placeholders stand for: variables of the environment, files without their last line end.

    Raises:
        BindError: ``missing-variable``, or ``unreadable-secret`` of a file.
    """
    if "${" not in text:
        return text
    made = PLACEHOLDER.sub(_value, text)
    if made != text:
        hide(made, text)
    return made


def _value(found: re.Match[str]) -> str:
    kind, name = found.groups()
    value = _of_file(name) if kind == "file" else os.environ.get(name)
    if value is None:
        raise BindError(
            "missing-variable",
            f"The environment variable '{name}' is not set.",
            hint=f"'{found[0]}' stands for its value",
        )
    hide(value, found[0])
    return value


def _of_file(name: str) -> str:
    try:
        return Path(name).expanduser().read_bytes().decode("utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"The file of '${{file:{name}}}' cannot be read: {why}."
        raise BindError("unreadable-secret", message) from None
