"""``TableConfig``: the session's options as programs see them; SET writes to the same place."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator, MutableMapping
from typing import Any, Self

from flowsql.common.configuration import Configuration
from flowsql.common.public_api import public_api
from flowsql.common.without_java import WithoutJava
from flowsql.configuration import set_option
from flowsql.table.sql_dialect import SqlDialect
from flowsql_core.config import LOCAL_TIME_ZONE, parse_duration_ms
from flowsql_core.config import Configuration as Layers

_STATE_TTL = "table.exec.state.ttl"
_CODE_LENGTH = "table.generated-code.max-length"
_SQL_DIALECT = "table.sql-dialect"


@public_api
class TableConfig(WithoutJava):
    """A view of a TableEnvironment's configuration. What is set here counts like ``SET``."""

    def __init__(self, configuration: Layers | None = None) -> None:
        self._configuration = Layers() if configuration is None else configuration

    @staticmethod
    def get_default() -> TableConfig:
        """Options of no session, all at their defaults."""
        return TableConfig()

    def set(self, key: str, value: str) -> Self:
        """Put a value under a key.

        Raises:
            BindError: the value does not fit the option, or FlowSQL would not follow it; see docs/options.md.
        """
        set_option(self._configuration, key, value)
        return self

    def get(self, key: str, default_value: str) -> str:
        """The text that counts for a key."""
        text = self._configuration.text(key)
        return default_value if text is None else text

    def get_local_timezone(self) -> str:
        """The name of the session time zone, the machine's where nobody set one: ``Etc/UTC``, ``Europe/Berlin``."""
        from flowsql.session_zone import session_zone

        return session_zone(self._configuration)

    def set_local_timezone(self, timezone_id: str) -> Self:
        """Change the session time zone, e.g. ``Europe/Berlin``."""
        return self.set(LOCAL_TIME_ZONE.key, timezone_id)

    def set_idle_state_retention(self, duration: datetime.timedelta) -> None:
        """How long state of a key is kept that nothing touches: ``table.exec.state.ttl``."""
        self.set(_STATE_TTL, f"{duration // datetime.timedelta(milliseconds=1)} ms")

    def get_idle_state_retention(self) -> datetime.timedelta:
        """How long state of a key is kept that nothing touches; zero is for ever."""
        return datetime.timedelta(milliseconds=parse_duration_ms(self.get(_STATE_TTL, "0 ms")))

    def get_configuration(self) -> Configuration:
        """The session's options as a ``Configuration``: what is set there counts like ``SET``."""
        return SessionConfiguration(self._configuration)

    def add_configuration(self, configuration: Any) -> None:
        """Set all options of a ``Configuration``, or of a dict."""
        options = configuration.to_dict() if hasattr(configuration, "to_dict") else dict(configuration.items())
        for key, value in options.items():
            self.set(key, value)

    def to_map(self) -> dict[str, str]:
        """All options that are set, as texts."""
        return dict(self._configuration.items())

    def get_sql_dialect(self) -> SqlDialect:
        """Flink's own SQL."""
        return SqlDialect.DEFAULT

    def set_sql_dialect(self, sql_dialect: SqlDialect) -> None:
        """Only Flink's own SQL is read; BindError for any other."""
        self.set(_SQL_DIALECT, sql_dialect.name.lower())

    def get_max_generated_code_length(self) -> int:
        """What was set, or Flink's default; nothing depends on it, as no Java code is generated."""
        return int(self.get(_CODE_LENGTH, "4000"))

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """Keep a number, with a warning that nothing depends on it: no Java code is generated."""
        self.set(_CODE_LENGTH, str(max_generated_code_length))

    def get_python_executable(self) -> str:
        """The Python that runs functions: this one, unless ``python.executable`` says otherwise."""
        return self.get("python.executable", sys.executable)

    def set_python_executable(self, python_exec: str) -> None:
        """The Python that runs functions: ``python.executable``."""
        self.set("python.executable", python_exec)


class SessionConfiguration(Configuration):
    """The options of a session, as a program reads and sets them."""

    def __init__(self, layers: Layers) -> None:
        super().__init__()
        self._values = _SessionOptions(layers)

    def __deepcopy__(self, memo: object = None) -> Configuration:
        return Configuration.from_dict(self.to_dict())


class _SessionOptions(MutableMapping[str, str]):
    """The texts of a session's options by key."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def __getitem__(self, key: str) -> str:
        text = self._layers.text(key)
        if text is None:
            raise KeyError(key)
        return text

    def __setitem__(self, key: str, value: str) -> None:
        TableConfig(self._layers).set(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._layers.reset(key)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._layers.items())

    def __len__(self) -> int:
        return sum(1 for _ in self._layers.items())
