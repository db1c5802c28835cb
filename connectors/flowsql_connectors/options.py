"""WITH clauses: which options a table may carry, how each is read, and what is said when one does not fit.

The first lines of the messages are Flink's (``FactoryUtil``), so that searching for them still works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.secrets.shown import shown_value

T = TypeVar("T")

#: What ``int()`` and ``float()`` say of a text that is no number.
_PYTHON_WORDS = ("invalid literal for", "could not convert string")


@record
class ConnectorOption(Generic[T]):
    """One key of a WITH clause. ``parse`` turns text into the value and raises ValueError with what would be right."""

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str

    def read(self, text: str) -> T:
        """The value of a text, or a BindError that names key and text."""
        try:
            return self.parse(text)
        except ValueError as error:
            reason = str(error)
            if reason.startswith(_PYTHON_WORDS):
                reason = f'For input string: "{shown_value(self.key, text)}"'
            # What names its option itself stands alone, as in Flink.
            head = (
                ""
                if f"'{self.key}'" in reason
                else (f"Could not parse value '{shown_value(self.key, text)}' for key '{self.key}'.\n")
            )
            raise BindError("invalid-option-value", head + reason, hint=f"'{self.key}': {self.doc}") from error


class OptionValues:
    """The options of one table after checking; typed reading."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def get(self, option: ConnectorOption[T]) -> T:
        """The value of an option, or its default."""
        text = self._values.get(option.key)
        return option.default if text is None else option.read(text)

    def has(self, option: ConnectorOption[Any]) -> bool:
        """Whether the WITH clause holds the option."""
        return option.key in self._values


@record
class OptionSet:
    """What a WITH clause of one connector (and format) must and may hold. ``connector`` itself is always allowed."""

    required: tuple[ConnectorOption[Any], ...] = ()
    optional: tuple[ConnectorOption[Any], ...] = ()

    def merged(self, other: OptionSet) -> OptionSet:
        """Options of a connector together with those of its format."""
        return OptionSet((*self.required, *other.required), (*self.optional, *other.optional))

    def keys(self) -> list[str]:
        """All keys, sorted as Flink lists them."""
        return sorted({"connector", "property-version", *(option.key for option in (*self.required, *self.optional))})

    def check(self, table: TableSpec) -> OptionValues:
        """Refuse missing, unknown and unreadable options.

        Raises:
            BindError: ``missing-option``, ``unsupported-option`` or ``invalid-option-value``.
        """
        values = table.filled_options()
        identifier = values.get("connector") or values.get("connector.type", "")
        missing = sorted(option.key for option in self.required if option.key not in values)
        if missing:
            raise BindError(
                "missing-option",
                "One or more required options are missing.\n\nMissing required options are:\n\n" + "\n".join(missing),
                hint=f"add '{missing[0]}' to the WITH clause of {table.name}",
            )
        known = self.keys()
        unknown = sorted(key for key in values if key not in known)
        if unknown:
            raise BindError(
                "unsupported-option",
                f"Unsupported options found for '{identifier}'.\n\nUnsupported options:\n\n"
                + "\n".join(unknown)
                + "\n\nSupported options:\n\n"
                + "\n".join(known),
                hint=did_you_mean(unknown[0], known),
            )
        for option in (*self.required, *self.optional):
            if option.key in values:
                option.read(values[option.key])
        return OptionValues(values)


def parse_boolean(text: str) -> bool:
    """``true`` or ``false`` in any case."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError(f"Unrecognized option for boolean: {text}. Expected either true or false(case insensitive)")


def parse_positive(text: str) -> int:
    """A whole number above zero."""
    number = _whole(text)
    if number <= 0:
        raise ValueError("expected a number above zero")
    return number


def parse_natural(text: str) -> int:
    """A whole number, zero allowed."""
    number = _whole(text)
    if number < 0:
        raise ValueError("expected a number that is not negative")
    return number


def _whole(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError as error:
        raise ValueError(f'For input string: "{text}"; expected a whole number') from error


def parse_choice(*choices: str) -> Callable[[str], str]:
    """A parser for one of a few words, in any case."""

    def parse(text: str) -> str:
        for choice in choices:
            if text.strip().lower() == choice.lower():
                return choice
        raise ValueError(f"Unsupported value '{text}'. Supported values are [{', '.join(choices)}].")

    return parse


def optional(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    """The same parser for an option whose default is None."""
    return cast("Callable[[str], T | None]", parse)


COLUMNS_INFERRED = ConnectorOption(
    "columns.inferred",
    parse_boolean,
    False,
    "FlowSQL: the columns come from a sample of the rows: other values are errors that tell how to declare them.",
)
SINK_PARALLELISM: ConnectorOption[int | None] = ConnectorOption(
    "sink.parallelism", optional(parse_positive), None, "Subtasks of the sink; by default those of its input."
)
SCAN_PARALLELISM: ConnectorOption[int | None] = ConnectorOption(
    "scan.parallelism", optional(parse_positive), None, "Subtasks of the scan; by default those of the job."
)
