"""``TableConfig``: the session's options as programs see them; SET writes to the same place."""

from __future__ import annotations

import warnings
from typing import Self

from flowsql.configuration import set_option
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration


class TableConfig:
    """A view of a TableEnvironment's configuration. What is set here counts like ``SET``."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def set(self, key: str, value: str) -> Self:
        """Put a value under a key; a bad value of a known option is refused, a misspelt key warned about."""
        warning = set_option(self._configuration, key, value)
        if warning is not None:
            warnings.warn(warning, stacklevel=2)
        return self

    def get(self, key: str, default: str) -> str:
        """The text that counts for a key."""
        text = self._configuration.text(key)
        return default if text is None else text

    def get_local_timezone(self) -> str:
        """The session time zone; ``default`` is the machine's."""
        return self._configuration.get(LOCAL_TIME_ZONE)

    def set_local_timezone(self, zone: str) -> None:
        """Change the session time zone, e.g. ``Europe/Berlin``."""
        self.set(LOCAL_TIME_ZONE.key, zone)

    def get_configuration(self) -> Configuration:
        """The layered configuration itself."""
        return self._configuration
