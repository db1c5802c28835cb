"""Options whose values are never shown."""

from __future__ import annotations

import re
from typing import Final

from flowsql_core.secrets.placeholders import is_placeholder

HIDDEN: Final = "******"
_SECRET: Final = re.compile(
    r"(^|[.\-_])(password|passwd|secret|token|secret-key|api-?key|authorization|cookie|sasl\.jaas\.config|credential"
    r"|connection-string|(secret[\-_])?access[\-_]key([\-_]id)?|account[\-_]key|sas[\-_]key)$",
    re.IGNORECASE,
)


def shown_value(key: str, value: str) -> str:
    """The value of an option as statements and messages show it; a placeholder is no secret."""
    return HIDDEN if _SECRET.search(key) and not is_placeholder(value) else value
