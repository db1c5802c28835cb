"""The options that Apache Flink declares: a table with type, default and meaning of each, and the parsers of its types.

``flink.tsv`` is written by ``docs/make_flink_options.py`` and holds the first sentences of Flink's own descriptions
(Apache License 2.0). What FlowSQL does with an option stands in ``dispositions``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from flowsql_core.config import parse_bool, parse_duration_ms, parse_memory_bytes
from flowsql_core.errors import BindError
from flowsql_core.record import record

_TABLE: Final = Path(__file__).with_name("flink.tsv")

#: A part of a key that users choose, e.g. ``<name>``; a parameter may have dots.
_PLACEHOLDER: Final = re.compile(r"<(\w+)>")


@record
class FlinkOption:
    """One line of the table. ``default`` is the text of the default, empty where there is none.

    ``kind``: boolean, integer, long, float, double, string, duration, memory, enum or map; ``[]`` behind it is a list.
    ``values``: those of an enum.
    """

    key: str
    kind: str
    values: tuple[str, ...]
    default: str
    old_keys: tuple[str, ...]
    meaning: str

    def parse(self, text: str) -> object:
        """The value of a text; two texts of one value give equal objects.

        Raises:
            ValueError: what would be right.
        """
        element, is_list = self.kind.removesuffix("[]"), self.kind.endswith("[]")
        parse = _PARSERS.get(element) or self._enum_value
        return tuple(parse(item) for item in _items(text)) if is_list else parse(text)

    def read(self, key: str, text: str) -> object:
        """As :meth:`parse`, with a BindError that names the key as it was written."""
        try:
            return self.parse(text)
        except ValueError as error:
            raise BindError(
                "invalid-option-value", f"Could not parse value '{text}' for key '{key}'.", hint=str(error)
            ) from error

    def _enum_value(self, text: str) -> str:
        known = {value.upper(): value for value in self.values}
        if text.strip().upper() not in known:
            raise ValueError("expected one of " + ", ".join(self.values))
        return known[text.strip().upper()]


@cache
def flink_options() -> dict[str, FlinkOption]:
    """All options by key; a key may have placeholders, e.g. ``metrics.reporter.<name>.interval``."""
    found = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        key, kind, values, default, old, meaning = line.split("\t")
        found[key] = FlinkOption(key, kind, _parts(values), default, _parts(old), meaning)
    return found


def find(key: str) -> FlinkOption | None:
    """The option of a key, or None where Flink declares none."""
    options = flink_options()
    if key in options:
        return options[key]
    return next((option for pattern, option in _templates() if pattern.fullmatch(key)), None)


def map_of(key: str) -> FlinkOption | None:
    """The option that a key writes one entry of: maps may be written as ``<map's key>.<entry>``, one key an entry."""
    options = flink_options()
    parts = key.split(".")
    starts = (".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    return next((options[start] for start in starts if start in options and options[start].kind == "map"), None)


def with_entry(pairs: str, name: str, value: str) -> str:
    """The text of a map with one more entry, which counts more than an earlier one of its name."""
    quoted = "'" + value.replace("'", "''") + "'" if any(letter in value for letter in ",:'") else value
    return f"{pairs},{name}:{quoted}" if pairs else f"{name}:{quoted}"


@cache
def _templates() -> tuple[tuple[re.Pattern[str], FlinkOption], ...]:
    """Options whose keys have placeholders, those with more fixed text first."""
    made = []
    for key, option in flink_options().items():
        if _PLACEHOLDER.search(key):
            parts = _PLACEHOLDER.split(key)
            pattern = "".join(
                (r"\S+" if part.startswith("param") or part == "key" else r"[^.\s]+") if i % 2 else re.escape(part)
                for i, part in enumerate(parts)
            )
            made.append((sum(map(len, parts[::2])), re.compile(pattern), option))
    return tuple((pattern, option) for _, pattern, option in sorted(made, key=lambda row: -row[0]))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _items(text: str) -> list[str]:
    """The items of ``a;b`` or of YAML's ``[a, b]``."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [item.strip().strip("'\"") for item in text[1:-1].split(",") if item.strip()]
    return [item.strip() for item in text.split(";") if item.strip()]


def _whole(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"\s*[+-]?\d+\s*", text) and -(1 << bits - 1) <= int(text) < 1 << bits - 1:
            return int(text)
        raise ValueError("expected a whole number" + (" below 2147483648" if bits == 32 else ""))

    return parse


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number, e.g. '0.5'") from None


def _map(text: str) -> tuple[tuple[str, str], ...]:
    """Sorted pairs of ``key:value,key:value`` or of YAML's ``{key: value}``; quoted parts may hold the separators."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    quoted = r"(?:'(?:[^']|'')*'|\"[^\"]*\"|[^,'\"])+"
    pairs = [item.partition(":") for item in re.findall(quoted, inner) if item.strip()]
    if not all(separator for _, separator, _ in pairs):
        raise ValueError("expected pairs 'key:value', separated by ','")
    return tuple(sorted((key.strip(), value.strip()) for key, _, value in pairs))


_PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "boolean": parse_bool,
    "integer": _whole(32),
    "long": _whole(64),
    "float": _number,
    "double": _number,
    "string": str,
    "duration": parse_duration_ms,
    "memory": parse_memory_bytes,
    "map": _map,
}
