"""Names of a package that are imported with their module when somebody first asks for one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package; ``homes`` has the names of each of its modules, blanks between."""
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> object:  # noqa: N807
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        loaded = import_module(f"{package}.{home}")
        # All names of the module at once: the next one is found without a call.
        namespace = vars(sys.modules[package])
        for other in homes[home].split():
            namespace[other] = getattr(loaded, other)
        return namespace[name]

    return __getattr__, lambda: sorted(home_of)
