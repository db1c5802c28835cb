"""What the tables of operators say about the class that runs a spec."""

from __future__ import annotations

from typing import Final

from flowsql_core.record import record

_PACKAGE: Final = "flowsql_runtime.operators."


@record
class OperatorClass:
    """``module:Class`` below ``package``; ``stateful`` ones get state, a ``source`` has no inputs."""

    path: str
    package: str = _PACKAGE
    stateful: bool = False
    source: bool = False
