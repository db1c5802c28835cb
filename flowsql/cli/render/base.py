"""What all forms of answers share: a renderer writes the answers of one statement after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TextIO

from flowsql.table.table_result import AnswerKind, TableResult, limited
from flowsql_core.record import record

if TYPE_CHECKING:
    from flowsql_core.batch import ChangelogBatch


@record
class Limits:
    """When a query's rows end early: after ``max_rows``, or at ``deadline`` (``time.monotonic()``); None is never."""

    max_rows: int | None = None
    deadline: float | None = None


class Renderer(ABC):
    """Writes the answers of a script to ``out``, one after the other."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    @abstractmethod
    def answer(self, result: TableResult, limits: Limits, started: float) -> None:
        """Write one statement's answer while its job runs; ``started`` is when the statement was given."""

    def failure(self, text: str) -> None:
        """A statement failed; standard error has it already."""

    def note(self, text: str) -> None:
        """A text for people; formats for programs leave it out."""

    def echo(self, statement: str) -> None:
        """A statement of a file, before it runs; formats for programs leave it out."""


class LinesRenderer(Renderer):
    """Common road of the formats for programs: a head for each answer, then its rows; nothing for the others."""

    def answer(self, result: TableResult, limits: Limits, started: float) -> None:
        """The rows of a query, listing or text; an INSERT is waited for and prints nothing."""
        del started
        match result.kind:
            case AnswerKind.DONE:
                return
            case AnswerKind.CHANGE:
                result.wait()
            case AnswerKind.TEXT | AnswerKind.LISTING | AnswerKind.QUERY:
                # A failing query fails before its head where it can.
                rows = limited(result.batches(limits.deadline), limits.max_rows)
                self._out.write(self.head(result))
                for batch in rows:
                    self._out.write(self.rows(result, batch))
                    self._out.flush()
        self._out.flush()

    @abstractmethod
    def head(self, result: TableResult) -> str:
        """What stands in front of the rows."""

    @abstractmethod
    def rows(self, result: TableResult, batch: ChangelogBatch) -> str:
        """The lines of some rows."""
