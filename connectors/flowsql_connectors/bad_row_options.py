"""Options that say what a table does with rows that cannot be read."""

from __future__ import annotations

from flowsql_connectors.options import ConnectorOption, optional, parse_choice

ON_ERROR = ConnectorOption(
    "on-error", parse_choice("fail", "skip", "dead-letter"), "fail", "FlowSQL: what a row that cannot be read does."
)
DEAD_LETTER_PATH: ConnectorOption[str | None] = ConnectorOption(
    "on-error.dead-letter.path", optional(str), None, "FlowSQL: folder of the rows that could not be read."
)
DEAD_LETTER_TABLE: ConnectorOption[str | None] = ConnectorOption(
    "on-error.dead-letter.table", optional(str), None, "FlowSQL: json table of the rows that could not be read."
)
