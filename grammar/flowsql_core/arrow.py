"""``pyarrow.compute``, loaded when a first kernel is called: the module takes 0.1 s to build its wrappers, and a
constant query, DDL and planning need none of them. Import it as ``from flowsql_core.arrow import compute as pc``.
"""

from __future__ import annotations

import importlib
from typing import Any


class _LazyModule:
    """Loads a module at its first attribute and then hands that out as if it were the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        # Next time it is found without coming here.
        setattr(self, attribute, value)
        return value


compute: Any = _LazyModule("pyarrow.compute")
