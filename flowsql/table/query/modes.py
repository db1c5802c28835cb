"""The mode that an environment plans its queries in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql_core.config import RUNTIME_MODE, RuntimeMode

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment


def is_batch(environment: TableEnvironment) -> bool:
    """Whether an environment is in batch mode."""
    return environment.get_config().get(RUNTIME_MODE.key, RUNTIME_MODE.default.value).upper() == RuntimeMode.BATCH.name
