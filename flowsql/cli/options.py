"""Options of the command and its shell (``sql-client.*``)."""

from __future__ import annotations

import enum

from flowsql_core.config import option, parse_bool, parse_duration_ms, parse_enum


class ResultMode(enum.Enum):
    """How the shell shows the rows of a query: a live table, its changes in a pane, or printed as they come."""

    TABLE = "TABLE"
    CHANGELOG = "CHANGELOG"
    TABLEAU = "TABLEAU"


class ColorSchema(enum.Enum):
    """Flink's nine schemes of highlighting."""

    DEFAULT = "DEFAULT"
    DARK = "DARK"
    LIGHT = "LIGHT"
    CHESTER = "CHESTER"
    DRACULA = "DRACULA"
    SOLARIZED = "SOLARIZED"
    VS2010 = "VS2010"
    OBSIDIAN = "OBSIDIAN"
    GESHI = "GESHI"


class EditingMode(enum.Enum):
    """Whose keys the prompt has."""

    EMACS = "EMACS"
    VI = "VI"


def _rows(text: str) -> int:
    if not text.strip().isdigit() or not int(text):
        raise ValueError("expected a number of rows above zero")
    return int(text)


PRINT_TIME_COST = option(
    "sql-client.display.print-time-cost", parse_bool, True, "Print the seconds that a query took behind its row count."
)
PRINT_VOLUMES = option(
    "sql-client.display.print-volumes",
    parse_bool,
    False,
    "Behind each query and INSERT, tell on standard error the rows and bytes it read, wrote, shuffled and spilled; of "
    "several tables the rows of each.",
)
WARN_GROWING_STATE = option(
    "sql-client.display.warn-growing-state",
    parse_bool,
    True,
    "Warn on standard error of a stream that starts and whose state grows for ever, with the remedy.",
)
EXPLAIN_SILENCE = option(
    "sql-client.display.explain-silence",
    parse_duration_ms,
    5_000,
    "Tell on standard error why a query or an INSERT gives no rows, when none have come for so long; 0: never.",
)
RESULT_MODE = option(
    "sql-client.execution.result-mode",
    parse_enum(ResultMode),
    ResultMode.TABLEAU,
    "How the shell shows the rows of a query: TABLE, a live table; CHANGELOG, its changes in a pane; TABLEAU, printed. "
    "Scripts always print.",
)
MAX_TABLE_RESULT_ROWS = option(
    "sql-client.execution.max-table-result.rows",
    _rows,
    1_000_000,
    "How many rows the shell keeps of a query in table mode; of more the oldest are forgotten.",
)
COLOR_SCHEMA = option(
    "sql-client.display.color-schema",
    parse_enum(ColorSchema),
    ColorSchema.DEFAULT,
    "The colours of statements in the shell. DEFAULT has none, as in Flink.",
)
SHOW_LINE_NUMBERS = option(
    "sql-client.display.show-line-numbers",
    parse_bool,
    False,
    "Number the lines of a statement that is typed in the shell.",
)
EDITING_MODE = option(
    "sql-client.editing-mode", parse_enum(EditingMode), EditingMode.EMACS, "Keys of the shell's prompt: EMACS or VI."
)
