"""``Configuration``: options of an environment as programs write them, under PyFlink's names."""

from __future__ import annotations

import ast
from collections.abc import Mapping, MutableMapping
from typing import Any, Self

from flowsql_core.secrets.shown import shown_value


class Configuration:
    """Texts by key. Numbers and truth values are kept as the texts that SET would take.

    >>> Configuration().set_integer("parallelism.default", 2).to_dict()
    {'parallelism.default': '2'}
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: MutableMapping[str, str] = {} if other is None else dict(other._values)
        #: Values that were set as something else than texts, beside the texts that stand for them.
        self._given: dict[str, tuple[str, object]] = {} if other is None else dict(other._given)

    @classmethod
    def from_dict(cls, map: Mapping[str, str]) -> Configuration:
        """The options of a dict."""
        made = cls()
        for key, value in map.items():
            made.set_string(key, value)
        return made

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """The items of a list text: YAML's ``[a, b]`` or ``a;b``; none of an empty text or of None."""
        text = (value or "").strip()
        if text.startswith("[") and text.endswith("]"):
            return [item.strip().strip("'\"") for item in text[1:-1].split(",") if item.strip()]
        return [item.strip() for item in text.split(";") if item.strip()]

    def get_string(self, key: str, default_value: str) -> str:
        """The text of a key."""
        return self._values.get(key, default_value)

    def set_string(self, key: str, value: str) -> Self:
        """Put a text under a key."""
        self._values[key] = value
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        """A whole number."""
        return int(self._values[key]) if key in self._values else default_value

    def set_integer(self, key: str, value: int) -> Self:
        """Put a whole number under a key."""
        return self._set(key, str(value), value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """A truth value."""
        return self._values[key].lower() == "true" if key in self._values else default_value

    def set_boolean(self, key: str, value: bool) -> Self:
        """Put a truth value under a key."""
        return self._set(key, "true" if value else "false", value)

    def get_float(self, key: str, default_value: float) -> float:
        """A number."""
        return float(self._values[key]) if key in self._values else default_value

    def set_float(self, key: str, value: float) -> Self:
        """Put a number under a key."""
        return self._set(key, str(value), float(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """Bytes."""
        return bytearray(ast.literal_eval(self._values[key])) if key in self._values else default_value

    def set_bytearray(self, key: str, value: bytearray) -> Self:
        """Put bytes under a key."""
        return self._set(key, repr(bytes(value)), bytes(value))

    def _set(self, key: str, text: str, value: object) -> Self:
        self.set_string(key, text)
        self._given[key] = (text, value)
        return self

    def key_set(self) -> set[str]:
        """All keys."""
        return set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Copy everything into a dict: numbers, truth values and bytes as they were set, all else as texts."""
        for key, text in self._values.items():
            as_set, value = self._given.get(key, (text, text))
            target_dict[key] = value if as_set == text else text

    def add_all(self, other: Configuration, prefix: str | None = None) -> Self:
        """Take over the options of another, with ``prefix`` before their keys."""
        for key, value in other._values.items():
            self._values[(prefix or "") + key] = value
        self._given.update({(prefix or "") + key: given for key, given in other._given.items()})
        return self

    def contains_key(self, key: str) -> bool:
        """Whether a key was set."""
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """A copy as a dict."""
        return dict(self._values)

    def remove_config(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        return self._values.pop(key, None) is not None

    def __deepcopy__(self, memo: object = None) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={shown_value(key, value)}" for key, value in self._values.items()) + "}"
