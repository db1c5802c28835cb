"""Classes of the user that options name."""

from __future__ import annotations

import importlib
from typing import Any

from flowsql_core.errors import BindError


def instance_of(base: type, key: str, name: str, parameters: tuple[str, ...] = ()) -> Any:
    """An instance of the class that an option names as ``module.Class``.

    Args:
        base: what it must extend.
        key: of the option.
        name: of the class.
        parameters: what it is made with.

    Raises:
        BindError: there is no such class, it cannot be made, or it does not extend ``base``.
    """
    module, _, own = name.rpartition(".")
    try:
        made = getattr(importlib.import_module(module), own)(*parameters)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise BindError(
            "invalid-option-value",
            f"Can not create new instance for custom class from {name}: {error}",
            hint=f"'{key}' names a Python class as module.Class; classes of Java cannot be loaded",
        ) from error
    if not isinstance(made, base):
        raise BindError(
            "invalid-option-value",
            f"Class {name} is no {base.__name__}.",
            hint=f"derive it from {base.__module__}.{base.__name__}",
        )
    return made
