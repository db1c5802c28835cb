"""``EnvironmentSettings``: what a TableEnvironment starts with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from flowsql.common.configuration import Configuration as UserConfiguration
from flowsql.configuration import set_options
from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_planner.catalog.manager import DEFAULT_CATALOG, DEFAULT_DATABASE

_CATALOG_NAME = "table.builtin-catalog-name"
_DATABASE_NAME = "table.builtin-database-name"


class EnvironmentSettings:
    """Streaming or batch, and first values of options. Made by the two modes' methods or a builder."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Answers are changelogs of inputs that may never end."""
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Answers are final rows of bounded inputs."""
        return EnvironmentSettings.new_instance().in_batch_mode().build()

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """A builder; streaming unless told."""
        return EnvironmentSettings.Builder()

    def get_built_in_catalog_name(self) -> str:
        """The catalog that a session starts with."""
        return self._values.get(_CATALOG_NAME, DEFAULT_CATALOG)

    def get_built_in_database_name(self) -> str:
        """The database that a session starts with."""
        return self._values.get(_DATABASE_NAME, DEFAULT_DATABASE)

    def is_streaming_mode(self) -> bool:
        """Whether this is not batch mode."""
        return Configuration(None, self._values).get(RUNTIME_MODE) is not RuntimeMode.BATCH

    def get_configuration(self) -> UserConfiguration:
        """A copy of the options, as they were given."""
        return UserConfiguration.from_dict(self._values)

    class Builder:
        """Collects settings; ``build`` makes them."""

        def __init__(self) -> None:
            self._values: dict[str, str] = {}

        def in_streaming_mode(self) -> Self:
            """See :meth:`EnvironmentSettings.in_streaming_mode`."""
            self._values[RUNTIME_MODE.key] = RuntimeMode.STREAMING.name
            return self

        def in_batch_mode(self) -> Self:
            """See :meth:`EnvironmentSettings.in_batch_mode`."""
            self._values[RUNTIME_MODE.key] = RuntimeMode.BATCH.name
            return self

        def with_configuration(self, config: Any) -> Self:
            """Add the options of a ``Configuration`` or a dict; what is refused is refused here.

            Warnings come when an environment is made with the settings.
            """
            values = config.to_dict() if hasattr(config, "to_dict") else dict(config.items())
            set_options(Configuration(), values.items(), lambda warning: None)
            self._values.update(values)
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> Self:
            """The name of the catalog that a session starts with."""
            self._values[_CATALOG_NAME] = built_in_catalog_name
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> Self:
            """The name of the database that a session starts with."""
            self._values[_DATABASE_NAME] = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            """The settings."""
            return EnvironmentSettings(self._values)
