"""What a reason is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from flowsql_core.graph.specs import ScanSpec
from flowsql_core.record import record
from flowsql_runtime.diagnosis.snapshot import JobNow, OperatorNow
from flowsql_runtime.diagnosis.words import table_text


@record
class Finding:
    """Why nothing comes. ``key``: what stays the same while numbers and moments in the ``text`` change."""

    key: str
    text: str


#: Why an operator of a job gives nothing.
Explain = Callable[[JobNow, OperatorNow], Finding | None]


class Reason(ABC):
    """One reason why one operator gives nothing."""

    #: Whether it can be the reason although the operator has given rows before.
    holds_later: ClassVar[bool] = False

    @abstractmethod
    def of(self, job: JobNow, operator: OperatorNow, explain: Explain) -> Finding | None:
        """The reason as it is for an operator, None where it is not that one.

        Args:
            job: as it stands.
            operator: took rows, or is a source; without ``holds_later`` it has given none.
            explain: the same for an operator that feeds it.
        """

    def finding(self, operator: OperatorNow, text: str, *more: object) -> Finding:
        """A finding of this reason; ``more`` tells findings of one operator apart."""
        return Finding(":".join(map(str, (type(self).__name__, operator.node.id, *more))), text)


def tables_text(job: JobNow, operator: OperatorNow) -> str:
    """The tables that an operator's rows come from: ``table 'a'``, ``tables 'a', 'b'``."""
    sources = [operator] if operator.is_source else list(job.before(operator.node.id).sources())
    names = list(dict.fromkeys(table_text(one.node) for one in sources))
    are_tables = all(isinstance(one.node.spec, ScanSpec) for one in sources)
    word = "table" if are_tables else "source"
    return f"{word}{'' if len(names) == 1 else 's'} {', '.join(names)}"
