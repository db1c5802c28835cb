"""Names of function objects that stand in expressions without having been registered.

``length(col("a"))`` is a call of ``length$1``; the tree carries the object (``api_nodes.InlineFunction``), and each
environment registers it as a temporary system function of that name when it first meets it.
"""

from __future__ import annotations

import itertools
import threading

_NAMES: dict[int, tuple[object, str]] = {}
_COUNTER = itertools.count(1)
_NAMING = threading.Lock()


def inline_name(function: object) -> str:
    """The name of a function object: always the same for the same object, never that of another one."""
    with _NAMING:
        known = _NAMES.get(id(function))
        if known is None:
            # The object is kept: its id must not become another one's.
            known = _NAMES[id(function)] = (function, f"{_word(function)}${next(_COUNTER)}")
        return known[1]


def _word(function: object) -> str:
    """What a person calls the function."""
    for attribute in ("name", "_name", "__name__"):
        found = getattr(function, attribute, None)
        if isinstance(found, str) and found.strip("<>").isidentifier():
            return found.strip("<>")
    return type(function).__name__
