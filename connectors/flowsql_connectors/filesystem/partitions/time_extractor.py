"""The time that a partition stands for: out of its values by a pattern, or by a class of the user."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from typing import Final

from flowsql_connectors.filesystem.named_class import instance_of
from flowsql_connectors.filesystem.options import (
    EXTRACTOR_CLASS,
    EXTRACTOR_KIND,
    TIMESTAMP_FORMATTER,
    TIMESTAMP_PATTERN,
)
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import BindError, ExecutionError, NotSupportedYetError
from flowsql_core.record import record


class PartitionTimeExtractor(ABC):
    """Tells the time that a partition stands for.

    A class of the user is named by ``partition.time-extractor.class`` as ``module.Class`` and made without arguments.
    """

    @abstractmethod
    def extract(self, partition_keys: list[str], partition_values: list[str]) -> datetime.datetime:
        """A wall clock without a zone, of a partition's keys and its values as the folder names them."""


@record
class DefaultExtractor(PartitionTimeExtractor):
    """``pattern`` with the values in the place of ``$key`` (None: the first value), read by ``formatter``."""

    pattern: str | None
    formatter: str | None

    def extract(self, partition_keys: list[str], partition_values: list[str]) -> datetime.datetime:
        """Of the pattern.

        Raises:
            ExecutionError: the text is no time.
        """
        text = partition_values[0] if self.pattern is None else self.pattern
        if self.pattern is not None:
            values = dict(zip(partition_keys, partition_values, strict=True))
            # Longer names first: $hour must not be read as $ho followed by 'ur'.
            for key in sorted(values, key=len, reverse=True):
                text = text.replace(f"${key}", values[key])
        try:
            return _parse_time(text, self.formatter)
        except ValueError as error:
            folder = "/".join(f"{key}={value}" for key, value in zip(partition_keys, partition_values, strict=True))
            raise ExecutionError(
                "bad-partition-time",
                f"Partition '{folder}' makes no time: '{text}'.",
                hint=f"'{TIMESTAMP_PATTERN.key}' must give yyyy-MM-dd HH:mm:ss or yyyy-MM-dd",
            ) from error


@record
class CustomExtractor(PartitionTimeExtractor):
    """``named``: an extractor of the user, made by the name ``name``."""

    name: str
    named: PartitionTimeExtractor

    def extract(self, partition_keys: list[str], partition_values: list[str]) -> datetime.datetime:
        """What the user's class says.

        Raises:
            ExecutionError: it fails, or answers no time.
        """
        try:
            made = self.named.extract(partition_keys, partition_values)
        except Exception as error:
            raise ExecutionError(
                "bad-partition-time",
                f"{self.name}.extract({partition_keys}, {partition_values}) failed: {type(error).__name__}: {error}",
            ) from error
        if not isinstance(made, datetime.datetime) or made.tzinfo is not None:
            raise ExecutionError(
                "bad-partition-time",
                f"{self.name}.extract({partition_keys}, {partition_values}) answered {made!r}.",
                hint="a datetime without a zone is wanted",
            )
        return made


def time_extractor(values: OptionValues) -> PartitionTimeExtractor:
    """The extractor of a table.

    Raises:
        BindError: there is no such kind, or no such class.
    """
    kind, name = values.get(EXTRACTOR_KIND), values.get(EXTRACTOR_CLASS)
    match kind:
        case "default":
            if name is not None:
                raise BindError(
                    "invalid-option-value",
                    f"'{EXTRACTOR_CLASS.key}' counts with '{EXTRACTOR_KIND.key}' = 'custom' only.",
                )
            return DefaultExtractor(values.get(TIMESTAMP_PATTERN), values.get(TIMESTAMP_FORMATTER))
        case "custom":
            if name is None:
                raise BindError("missing-option", f"'{EXTRACTOR_KIND.key}' = 'custom' needs '{EXTRACTOR_CLASS.key}'.")
            return CustomExtractor(name, instance_of(PartitionTimeExtractor, EXTRACTOR_CLASS.key, name))
    raise BindError(
        "invalid-option-value",
        f"Unsupported extractor kind: {kind}",
        hint=f"'{EXTRACTOR_KIND.key}' is default or custom",
    )


_TIME: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?")
_LETTERS: Final = {"yyyy": "%Y", "uuuu": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def _parse_time(text: str, formatter: str | None) -> datetime.datetime:
    if formatter is None:
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError(text)
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        return datetime.datetime(year, month, day, hour, minute, second)
    return datetime.datetime.strptime(text, _strptime_form(formatter))


def _strptime_form(formatter: str) -> str:
    form = ""
    for piece in re.finditer(r"'([^']*)'|(([a-zA-Z])\3*)|[^a-zA-Z']+", formatter):
        letters = piece[2]
        if letters is None:
            form += (piece[1] if piece[1] is not None else piece[0]).replace("%", "%%")
        elif letters in _LETTERS:
            form += _LETTERS[letters]
        else:
            raise NotSupportedYetError(f"letters '{letters}' in '{TIMESTAMP_FORMATTER.key}'")
    return form
