"""Where configuration comes from: ``config.yaml``, then the command line. SET and the Table API come on top of it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from flowsql.option_homes import OPTION_HOMES
from flowsql_core.config import DEPRECATED_KEYS, OPTIONS, Configuration
from flowsql_core.errors import BindError, did_you_mean

CONFIG_DIRECTORY_VARIABLE = "FLOWSQL_CONF_DIR"
CONFIG_FILE = "config.yaml"
SQL_DIALECT = "table.sql-dialect"


def file_configuration() -> Configuration:
    """The layer of ``config.yaml`` in ``$FLOWSQL_CONF_DIR``, or else in the working directory; empty if there is none.

    Raises:
        BindError: the file is no mapping, or a value does not fit its option.
        OSError: the file cannot be read.
    """
    folder = os.environ.get(CONFIG_DIRECTORY_VARIABLE)
    path = Path(folder or ".") / CONFIG_FILE
    if not path.is_file():
        if folder:
            raise BindError(
                "config-file-not-found", f"There is no '{CONFIG_FILE}' in {CONFIG_DIRECTORY_VARIABLE}='{folder}'."
            )
        return Configuration()
    # Only who has such a file pays for the YAML reader.
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise BindError("bad-config-file", f"'{path}' is not YAML: {error}") from error
    if content is None:
        return Configuration()
    if not isinstance(content, dict):
        raise BindError("bad-config-file", f"'{path}' must hold keys and values.")
    return Configuration(None, dict(_flat(content)))


def command_line_configuration(
    settings: Iterable[tuple[str, str]], output_format: str, warn: Callable[[str], None]
) -> Configuration:
    """The file's layer, what the output format implies, and ``-D`` settings on top, later ones winning.

    The uppermost layer is empty: ``SET`` writes there, and ``RESET`` empties it again.
    """
    base = file_configuration()
    if output_format == "jsonl":
        base.set("flowsql.print.format", "jsonl")
    command_line = base.with_layer()
    for key, value in settings:
        warning = set_option(command_line, key, value)
        if warning is not None:
            warn(warning)
    return command_line.with_layer()


def set_option(configuration: Configuration, key: str, value: str) -> str | None:
    """Put a value under a key; a warning when the key is an old one, or unknown and nearly a known one.

    Raises:
        BindError: the value does not fit the option.
    """
    if key == SQL_DIALECT and value.lower() != "default":
        raise BindError(
            "sql-dialect",
            f"The SQL dialect '{value}' is parsed in Java; FlowSQL runs Python and reads Flink's own SQL.",
            hint="what functions of Hive did, CREATE FUNCTION ... LANGUAGE PYTHON does",
        )
    known = DEPRECATED_KEYS.get(key, key)
    if known not in OPTIONS and known in OPTION_HOMES:
        # Its module has not been needed yet; the value must be judged now all the same.
        importlib.import_module(OPTION_HOMES[known])
    configuration.set(key, value)
    if key in DEPRECATED_KEYS:
        return f"The key '{key}' is deprecated, use '{known}'."
    if key in OPTIONS:
        return None
    near = _near_miss(key)
    return None if near is None else f"Unknown configuration key '{key}': did you mean '{near}'?"


def _near_miss(key: str) -> str | None:
    """A known key that is at most two edits away; names that merely look alike are somebody else's options."""
    hint = did_you_mean(key, OPTION_HOMES)
    if hint is None:
        return None
    near = hint.removeprefix("did you mean '").removesuffix("'?")
    return near if _edits(key, near) <= 2 else None


def _edits(a: str, b: str) -> int:
    """Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def _flat(content: dict[object, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        name = f"{prefix}{key}"
        match value:
            case dict():
                yield from _flat(value, f"{name}.")
            case list():
                yield name, ";".join(map(_text, value))
            case None:
                continue
            case _:
                yield name, _text(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
