"""What the columns of an input are, whatever the query calls them: the names by which kept state is known."""

from __future__ import annotations

from typing import Final

from flowsql_core.record import record

#: How conditions begin that say where others hold. Older snapshots have none of them.
PLACED: Final = "@ "


@record
class Lineage:
    """Where the rows of one input come from.

    ``columns``: per column a canonical text over columns of tables (``clicks.n + 1``), the same under any alias.
    ``conditions``: sorted; which rows arrive (``clicks.n > 3``), each once.
    """

    columns: tuple[str, ...]
    conditions: tuple[str, ...] = ()
