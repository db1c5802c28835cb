"""Client libraries, imported where a table needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flowsql_core.errors import ConnectorError


def imported(module: str, connector: str, extra: str) -> Any:
    """A module of a client library.

    Raises:
        ConnectorError: it is not installed; with the extra that brings it.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        raise ConnectorError(
            "connector-not-installed",
            f"Connector '{connector}' needs the Python module '{missing.name}', which is not installed.",
            hint=f"pip install 'flowsql[{extra}]'",
        ) from missing
