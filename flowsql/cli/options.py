"""Options of the command and its shell (``sql-client.*``)."""

from __future__ import annotations

from flowsql_core.config import option, parse_bool

VERBOSE = option("sql-client.verbose", parse_bool, False, "Print the Python trace of an error, too.")
PRINT_TIME_COST = option(
    "sql-client.display.print-time-cost", parse_bool, True, "Print the seconds that a query took behind its row count."
)
PRINT_VOLUMES = option(
    "sql-client.display.print-volumes",
    parse_bool,
    False,
    "Behind each query and INSERT, tell on standard error the rows and bytes it read, wrote, shuffled and spilled.",
)
