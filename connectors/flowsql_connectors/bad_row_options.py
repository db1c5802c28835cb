"""Options that say what a table does with rows that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.options import ConnectorOption, OptionValues, optional, parse_choice
from flowsql_core.errors import BindError, NotSupportedYetError

ON_ERROR = ConnectorOption(
    "on-error", parse_choice("fail", "skip", "dead-letter"), "fail", "FlowSQL: what a row that cannot be read does."
)
DEAD_LETTER_PATH: ConnectorOption[str | None] = ConnectorOption(
    "on-error.dead-letter.path", optional(str), None, "FlowSQL: folder of the rows that could not be read."
)
DEAD_LETTER_TABLE: ConnectorOption[str | None] = ConnectorOption(
    "on-error.dead-letter.table", optional(str), None, "FlowSQL: json table of the rows that could not be read."
)
BAD_ROW_OPTIONS: Final = (ON_ERROR, DEAD_LETTER_PATH, DEAD_LETTER_TABLE)


def action_of(values: OptionValues, targets: Sequence[ConnectorOption[Any]]) -> str:
    """``on-error`` of options that fit together.

    Args:
        targets: each says where letters go, in the order in which messages name them. ``DEAD_LETTER_TABLE`` is among
            them; where SQL names a table, its topic or folder stands here in its place.

    Raises:
        BindError: it is not said where letters go, or said twice, or although there are none.
    """
    action = values.get(ON_ERROR)
    given = [one for one in targets if values.get(one) is not None]
    if action != "dead-letter" and given:
        raise BindError("bad-row-options", f"'{given[0].key}' needs '{ON_ERROR.key}' = 'dead-letter'.")
    if action == "dead-letter" and (len(given) != 1 or given[0] is DEAD_LETTER_TABLE):
        *first, last = (f"'{one.key}'" for one in targets)
        raise BindError(
            "bad-row-options", f"'{ON_ERROR.key}' = 'dead-letter' needs one of {', '.join(first)} and {last}."
        )
    return action


def letter_folder(values: OptionValues) -> str | None:
    """The folder of ``on-error.dead-letter.path``.

    Raises:
        NotSupportedYetError: it is not of this machine.
    """
    folder = values.get(DEAD_LETTER_PATH)
    if folder is None:
        return None
    if is_remote(folder):
        raise NotSupportedYetError(f"'{DEAD_LETTER_PATH.key}' = '{folder}'", None, "name a folder of this machine")
    return folder.removeprefix("file://")
