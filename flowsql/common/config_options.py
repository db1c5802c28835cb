"""``ConfigOptions.key("k").int_type().default_value(1)``: options that a program defines for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ConfigOption(Generic[T]):
    """A key with a type and a default."""

    def __init__(self, key: str, parse: Callable[[str], Any], default: T) -> None:
        self.key = key
        self.default = default
        self._parse = parse

    def read(self, text: str) -> T:
        """The value of a text."""
        value: T = self._parse(text)
        return value

    def __repr__(self) -> str:
        return f"Key: '{self.key}' , default: {self.default}"


class ConfigOptions:
    """Starts the definition of an option."""

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """An option of this key; its type comes next."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """Knows the key."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """``true`` or ``false``."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, lambda text: text.strip().lower() == "true")

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Text."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        """Knows key and type."""

        def __init__(self, key: str, parse: Callable[[str], Any]) -> None:
            self._key = key
            self._parse = parse

        def default_value(self, value: T) -> ConfigOption[T]:
            """The option with a default."""
            return ConfigOption(self._key, self._parse, value)

        def no_default_value(self) -> ConfigOption[T | None]:
            """The option without one."""
            return ConfigOption(self._key, self._parse, None)
