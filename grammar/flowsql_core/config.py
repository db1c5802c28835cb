"""Typed configuration: options with type, default and text; one layered lookup behind CLI, SET, API, file and hints.

Precedence, lowest first: default < config file < command line < SET/TableConfig < table hint. Any key is kept here;
which ones users may set is judged at the doors (``flowsql.configuration``). Options stand beside their readers;
``OPTIONS`` collects them for SET and docs.
Source: Flink manual, "Configuration"; value syntax of ``TimeUtils`` and ``MemorySize``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from flowsql_core.deprecated_keys import DEPRECATED_KEYS
from flowsql_core.errors import BindError
from flowsql_core.record import record

T = TypeVar("T")

#: All options by key, filled as modules define them.
OPTIONS: dict[str, ConfigOption[Any]] = {}


@record
class ConfigOption(Generic[T]):
    """A key with its reader. ``parse`` turns text into the value and raises ValueError with what would be right."""

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str

    def read(self, text: str) -> T:
        """The value of a text, or a BindError that names key and text."""
        try:
            return self.parse(text)
        except ValueError as error:
            raise BindError(
                "invalid-option-value", f"Could not parse value '{text}' for key '{self.key}'.", hint=str(error)
            ) from error


def option(key: str, parse: Callable[[str], T], default: T, doc: str) -> ConfigOption[T]:
    """Define and register an option."""
    made = ConfigOption(key, parse, default, doc)
    OPTIONS[key] = made
    return made


_DURATION_UNITS = {
    "": 1, "ms": 1, "milli": 1, "millis": 1, "millisecond": 1, "milliseconds": 1,
    "s": 1000, "sec": 1000, "secs": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "mins": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip
_SUB_MILLISECOND_UNITS = {"ns", "nano", "nanos", "nanosecond", "nanoseconds", "µs", "micro", "micros", "microsecond"}
_SIZE_UNITS = {"": 1, "b": 1, "bytes": 1}
for _i, _letter in enumerate("kmgt", 1):
    for _name in (_letter, f"{_letter}b", f"{_letter}ib"):
        _SIZE_UNITS[_name] = 1024**_i
_SIZE_UNITS |= {"kibibytes": 1024, "mebibytes": 1024**2, "gibibytes": 1024**3, "tebibytes": 1024**4}


def parse_duration_ms(text: str) -> int:
    """Milliseconds of ``10 s``, ``1min``, ``PT10S`` or a bare number of ms."""
    text = text.strip()
    if iso := re.fullmatch(r"([+-]?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", text, re.I):
        sign, days, hours, minutes, seconds = iso.groups()
        total = (int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60) * 1000
        total += round(float(seconds or 0) * 1000)
        return -total if sign == "-" else total
    match = re.fullmatch(r"(\d+)\s*([a-zµ]*)", text.lower())
    if match and match[2] in _DURATION_UNITS:
        return int(match[1]) * _DURATION_UNITS[match[2]]
    if match and match[2] in _SUB_MILLISECOND_UNITS:
        return int(match[1]) // (1_000_000 if match[2].startswith("n") else 1000)
    raise ValueError("a duration is a number with a unit, e.g. '10 s', '5 min', '200 ms'")


def parse_memory_bytes(text: str) -> int:
    """Bytes of ``64mb``, ``1 g`` or a bare number."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if match and match[2] in _SIZE_UNITS:
        return int(match[1]) * _SIZE_UNITS[match[2]]
    raise ValueError("a size is a number with a unit, e.g. '64 mb', '1 g'")


def parse_bool(text: str) -> bool:
    """``true`` or ``false`` in any case."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("expected 'true' or 'false'")


def parse_text(text: str) -> str:
    """The text itself."""
    return text


def parse_enum(kind: type[E]) -> Callable[[str], E]:
    """A parser for the values of an enum, in any case."""

    def parse(text: str) -> E:
        for member in kind:
            if text.strip().lower() in (str(member.value).lower(), member.name.lower()):
                return member
        raise ValueError("expected one of " + ", ".join(str(member.value) for member in kind))

    return parse


E = TypeVar("E", bound=enum.Enum)


class Configuration:
    """Texts by key in layers; typed reading through options. Cheap to copy; a child sees its parent's values."""

    def __init__(self, parent: Configuration | None = None, values: Mapping[str, str] | None = None) -> None:
        self._parent = parent
        self._values: dict[str, str] = {}
        self._told: set[str] = set() if parent is None else parent._told
        for key, value in (values or {}).items():
            self.set(key, value)

    def set(self, key: str, value: str) -> None:
        """Put a text under a key in this layer; a known option is parsed first, so that a bad value fails here."""
        key = DEPRECATED_KEYS.get(key, key)
        if key in OPTIONS:
            OPTIONS[key].read(value)
        self._values[key] = value

    def reset(self, key: str) -> None:
        """Forget this layer's value of a key."""
        self._values.pop(DEPRECATED_KEYS.get(key, key), None)

    def reset_all(self) -> None:
        """Forget this layer's values."""
        self._values.clear()

    def text(self, key: str) -> str | None:
        """The text that counts for a key, or None."""
        key = DEPRECATED_KEYS.get(key, key)
        if key in self._values:
            return self._values[key]
        return None if self._parent is None else self._parent.text(key)

    def get(self, option: ConfigOption[T]) -> T:
        """The typed value, or the option's default."""
        text = self.text(option.key)
        return option.default if text is None else option.read(text)

    def with_layer(self, values: Mapping[str, str] | None = None) -> Configuration:
        """A new layer on top."""
        return Configuration(self, values)

    def first_time(self, sentence: str) -> bool:
        """Whether nobody has asked so yet, in any layer: a session is told each thing once."""
        if sentence in self._told:
            return False
        self._told.add(sentence)
        return True

    def items(self) -> Iterator[tuple[str, str]]:
        """All keys with the texts that count, sorted."""
        merged: dict[str, str] = dict(self._parent.items()) if self._parent is not None else {}
        merged.update(self._values)
        yield from sorted(merged.items())


class RuntimeMode(enum.Enum):
    """``execution.runtime-mode``."""

    STREAMING = "streaming"
    BATCH = "batch"
    AUTOMATIC = "automatic"


RUNTIME_MODE = option("execution.runtime-mode", parse_enum(RuntimeMode), RuntimeMode.STREAMING, "Streaming or batch.")
LOCAL_TIME_ZONE = option(
    "table.local-time-zone", parse_text, "default", "Session time zone; 'default' is the machine's."
)
PARALLELISM = option("parallelism.default", int, 1, "Subtasks of an operator.")
AUTO_WATERMARK_INTERVAL_MS = option(
    "pipeline.auto-watermark-interval",
    parse_duration_ms,
    200,
    "A row that lifts the watermark by more emits it; behind unbounded sources it leaves at the latest so long "
    "after its row.",
)
OBJECT_REUSE = option(
    "pipeline.object-reuse", parse_bool, False, "Hand Python objects on without copies inside a chain."
)
MINI_BATCH_ENABLED = option(
    "table.exec.mini-batch.enabled", parse_bool, False, "One net change per key and mini-batch."
)
MINI_BATCH_LATENCY_MS = option(
    "table.exec.mini-batch.allow-latency", parse_duration_ms, 0, "Longest wait of a row for its mini-batch."
)
MINI_BATCH_SIZE = option("table.exec.mini-batch.size", int, -1, "Rows of a mini-batch at most.")
STATE_TTL_MS = option("table.exec.state.ttl", parse_duration_ms, 0, "Idle state older than this may go; 0 keeps it.")


class NotNullMode(enum.Enum):
    """``table.exec.sink.not-null-enforcer``: what happens to a row with a NULL where the table has none."""

    ERROR = "ERROR"
    DROP = "DROP"


NOT_NULL_ENFORCER = option(
    "table.exec.sink.not-null-enforcer",
    parse_enum(NotNullMode),
    NotNullMode.ERROR,
    "What happens to a NULL in a NOT NULL column of a sink: ERROR fails the job, DROP drops the row silently.",
)


class TypeLengthMode(enum.Enum):
    """``table.exec.sink.type-length-enforcer``: what happens to texts and bytes that are not as long as declared."""

    IGNORE = "IGNORE"
    TRIM_PAD = "TRIM_PAD"
    ERROR = "ERROR"


TYPE_LENGTH_ENFORCER = option(
    "table.exec.sink.type-length-enforcer",
    parse_enum(TypeLengthMode),
    TypeLengthMode.IGNORE,
    "CHAR, VARCHAR, BINARY and VARBINARY values of another length than a sink's column declares: IGNORE writes them as "
    "they are, TRIM_PAD cuts and pads them, ERROR fails the job.",
)


class NestedMode(enum.Enum):
    """``table.exec.sink.nested-constraint-enforcer``: how deep constraints are enforced."""

    IGNORE = "IGNORE"
    ROWS = "ROWS"
    ROWS_AND_COLLECTIONS = "ROWS_AND_COLLECTIONS"


NESTED_ENFORCER = option(
    "table.exec.sink.nested-constraint-enforcer",
    parse_enum(NestedMode),
    NestedMode.IGNORE,
    "Whether NOT NULL and lengths are enforced inside of columns, too: in ROWS, or in ROWS_AND_COLLECTIONS.",
)
