"""Where configuration comes from: ``config.yaml``, then the command line. SET and the Table API come on top of it."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from flowsql.option_homes import OPTION_HOMES
from flowsql_core.config import Configuration
from flowsql_core.deprecated_keys import DEPRECATED_KEYS
from flowsql_core.errors import BindError, did_you_mean

CONFIG_DIRECTORY_VARIABLE = "FLOWSQL_CONF_DIR"
CONFIG_FILE = "config.yaml"

#: Options that are handed on to somebody else, who knows them: Spark.
_PASSED_ON = "spark."
#: FlowSQL's own options, and those that state and rows depend on: who writes another key there has misspelt one.
_ALL_KNOWN = ("flowsql.", "execution.checkpoint", "execution.savepoint", "execution.state", "restart-strategy",
              "state.checkpoint", "state.savepoint")  # fmt: skip
#: Options that state and rows depend on: a key that differs by two letters is not taken for the user's own.
_DURABILITY = ("execution.checkpointing.", "execution.state-recovery.", "restart-strategy.", "state.",
               "high-availability.")  # fmt: skip
#: Where nobody keeps keys of their own, but older versions of Flink had others.
_OF_FLINK = ("containerized.", "execution.", "high-availability.", "jobmanager.", "kubernetes.", "metrics.",
             "pipeline.", "python.", "security.", "state.", "table.", "taskmanager.", "yarn.")  # fmt: skip


#: What is told a user in passing: to a program a warning, to the command a line on its error output.
Tell = Callable[[str], None]


class OptionWarning(UserWarning):
    """An option that a program set does not do what it might expect."""


def warn_program(sentence: str) -> None:
    """Warn about the line of the program that called FlowSQL."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0].startswith("flowsql"):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, OptionWarning, stacklevel=level)


def file_configuration(tell: Tell = warn_program) -> Configuration:
    """The layer of ``config.yaml`` in ``$FLOWSQL_CONF_DIR``, or else in the working directory; empty if there is none.

    Raises:
        BindError: the file is no mapping, or an option is refused, see :func:`set_option`.
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
    return set_options(Configuration(), _flat(content), tell)


def command_line_configuration(
    settings: Iterable[tuple[str, str]], output_format: str, tell: Tell, defaults: Iterable[tuple[str, str]] = ()
) -> Configuration:
    """The file's layer, what the output format implies, and ``-D`` settings on top, later ones winning.

    ``defaults`` count where the file says nothing.

    The uppermost layer is empty: ``SET`` writes there, and ``RESET`` empties it again.
    """
    base = file_configuration(tell)
    if output_format == "jsonl":
        base.set("flowsql.print.format", "jsonl")
    set_options(base, ((key, value) for key, value in defaults if base.text(key) is None), tell)
    return set_options(base.with_layer(), settings, tell).with_layer()


def set_options(
    configuration: Configuration, values: Iterable[tuple[str, str]], tell: Tell = warn_program
) -> Configuration:
    """Set options in order, see :func:`set_option`; the configuration itself."""
    for key, value in values:
        set_option(configuration, key, value, tell)
    return configuration


def set_option(configuration: Configuration, key: str, value: str, tell: Tell = warn_program) -> None:
    """Put a value under a key, as every door does: SET, ``-D``, ``config.yaml``, ``TableConfig``, environments.

    What is worth a word is told once a session: an old key, an option of Flink that has no effect here, and a key that
    is nearly a known one. Other unknown keys are the user's own and are kept, as in Flink.

    Raises:
        BindError: the value does not fit the option; or the option would change answers, durability or resources and
            nothing reads it (``flowsql.options.dispositions``); or the key is a misspelt one of that kind.
    """
    known = DEPRECATED_KEYS.get(key, key)
    if known not in OPTION_HOMES and not known.startswith(_PASSED_ON):
        _set_unread(configuration, known, value, tell)
    else:
        if known in OPTION_HOMES:
            # Its module may not have been needed yet; the value must be judged now all the same.
            importlib.import_module(OPTION_HOMES[known])
        configuration.set(known, value)
    if known != key:
        _tell_once(configuration, f"The key '{key}' is deprecated, use '{known}'.", tell)


def _set_unread(configuration: Configuration, key: str, value: str, tell: Tell) -> None:
    """Put a value under a key that nothing in FlowSQL reads, unless it is refused."""
    # The table of Flink's options is large, and most sessions set only what is read.
    from flowsql.options.dispositions import warning_of
    from flowsql.options.flink import find, map_of, with_entry

    option = find(key)
    if option is not None:
        warning = warning_of(option, key, option.read(key, value), value)
    elif (of_map := map_of(key)) is not None:
        name = key.removeprefix(f"{of_map.key}.")
        if of_map.key in OPTION_HOMES:
            pairs = with_entry(configuration.text(of_map.key) or "", name, value)
            return set_option(configuration, of_map.key, pairs, tell)
        warning = warning_of(of_map, key, ((name, value),), value)
    else:
        warning = _warning_of_stranger(key)
    configuration.set(key, value)
    if warning is not None:
        _tell_once(configuration, warning, tell)


def _tell_once(configuration: Configuration, sentence: str, tell: Tell) -> None:
    if configuration.first_time(sentence):
        tell(sentence)


def _warning_of_stranger(key: str) -> str | None:
    """What is to be said about a key that neither FlowSQL nor Flink knows.

    Raises:
        BindError: it is a misspelt one.
    """
    from flowsql.options.flink import flink_options

    near = _nearest(key, (*OPTION_HOMES, *flink_options(), *DEPRECATED_KEYS))
    is_misspelt = near is not None and _edits(key.lower(), near.lower()) <= 2
    meant = None if near is None else DEPRECATED_KEYS.get(near, near)
    if key.startswith(_ALL_KNOWN) or (is_misspelt and str(meant).startswith(_DURABILITY)):
        raise BindError(
            "unknown-option", f"There is no option '{key}'.", hint=None if meant is None else f"did you mean '{meant}'?"
        )
    if is_misspelt:
        return f"Unknown configuration key '{key}': did you mean '{meant}'?"
    if key.startswith(_OF_FLINK):
        return f"'{key}' has no effect: Flink 2.3 has no such option, and neither has FlowSQL."
    return None


def _nearest(key: str, candidates: Iterable[str]) -> str | None:
    hint = did_you_mean(key, candidates)
    return None if hint is None else hint.removeprefix("did you mean '").removesuffix("'?")


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
