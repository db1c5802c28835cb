"""Whether the library of a lake is there."""

from __future__ import annotations

from importlib.util import find_spec

from flowsql_core.errors import ConnectorError


def require(connector: str, *modules: str) -> None:
    """Say what is missing before it is imported.

    Args:
        connector: whose extra has the same name.
        modules: that it needs.

    Raises:
        ConnectorError: one of them is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            raise ConnectorError(
                "connector-not-installed",
                f"Connector '{connector}' needs the Python module '{module}', which is not installed.",
                hint=f"pip install 'flowsql[{connector}]'",
            )
