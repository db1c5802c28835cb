"""``flowsql.regex.timeout``: how long a regular expression may look at one text."""

from __future__ import annotations

from typing import Final

from flowsql_core.config import option, parse_duration_ms

REGEX_LIMIT_MS: Final = option(
    "flowsql.regex.timeout",
    parse_duration_ms,
    5_000,
    "How much processor time a regular expression may take for one text before the job fails; those that run in linear "
    "time are never stopped.",
)
DEFAULT_LIMIT_S: Final = REGEX_LIMIT_MS.default / 1000
