"""Names of part files: those that readers see, and the hidden ones until a commit."""

from __future__ import annotations

import re
from typing import Final

from flowsql_connectors.filesystem.files import escape_path_name
from flowsql_core.record import record

_RUN: Final = "[0-9a-f-]{36}"


def hidden_name(final: str, lineage: str) -> str:
    """The name of a part until it is committed."""
    return f".{final}.inprogress.{escape_path_name(lineage)}"


@record
class PartNames:
    """``<prefix>-<run>-<subtask>-<number><suffix>``; tables have the subtask in it, sinks of streams do not.

    A run is one writer, new with every start.
    """

    prefix: str = "part"
    suffix: str = ""
    with_subtask: bool = True

    def final(self, run: str, subtask: int, number: int) -> str:
        """The visible name of a writer's ``number``-th part."""
        place = f"{subtask}-{number}" if self.with_subtask else str(number)
        return f"{self.prefix}-{run}-{place}{self.suffix}"

    def writer_of_hidden(self, name: str) -> tuple[str, str] | None:
        """``(run, lineage)`` behind a hidden part's name; None for other files. The lineage is escaped as in the name.

        >>> PartNames().writer_of_hidden(".part-6f1c8f0e-0000-0000-0000-000000000000-0-7.inprogress.job-1")
        ('6f1c8f0e-0000-0000-0000-000000000000', 'job-1')
        """
        match = re.fullmatch(self._hidden, name)
        return None if match is None else (match[1], match[2])

    @property
    def _hidden(self) -> str:
        place = r"\d+-\d+" if self.with_subtask else r"\d+"
        head, tail = re.escape(self.prefix), re.escape(self.suffix)
        return rf"\.(?:compacted-)?{head}-({_RUN})-{place}{tail}\.inprogress\.(.+)"
