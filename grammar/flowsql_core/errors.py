"""The error family: the user's, the outside world's, ours. Each has a stable code and, where SQL is to blame, a place.

Nothing else is raised across a package border. A message says what is wrong; the hint says what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from flowsql_core.secrets.hidden import foreign_texts, hidden, hidden_now
from flowsql_core.span import Source, Span


class FlowSqlError(Exception):
    """Base of every error that a user may see.

    Args:
        code: stable, kebab-case, e.g. ``column-not-found``.
        message: first line; Flink's own text where people search for it.
        at: where in the SQL text; ``None`` when no text is to blame.
        hint: one suggestion, without a final full stop.
    """

    def __init__(self, code: str, message: str, at: Span | None = None, hint: str | None = None) -> None:
        message = hidden_now(message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.hint = hint
        self.source: Source | None = None
        self.operator: str | None = None
        #: The row that broke the rule, where one did and it is known.
        self.row: FailedRow | None = None
        #: Further lines of the report: expression, row, tables. The one who knows the whole job writes them.
        self.details: tuple[str, ...] = ()

    def within(self, source: Source) -> Self:
        """Remember the text that ``at`` points into; the innermost caller wins."""
        if self.source is None:
            self.source = source
        return self

    def in_operator(self, name: str) -> Self:
        """Remember the operator (and subtask) that failed; the innermost caller wins."""
        if self.operator is None:
            self.operator = name
        return self

    def __str__(self) -> str:
        return self.message

    def render(self) -> str:
        """The whole report: message, place with caret, hint, operator. Under 15 lines."""
        return "\n".join(part for part in (self.message, self.render_details()) if part)

    def render_details(self) -> str:
        """What the report tells behind the message; empty where the message is all."""
        parts = []
        if self.at is not None and self.source is not None:
            parts.append(self.source.frame(self.at, self.hint or ""))
        elif self.hint:
            parts.append(f"hint: {self.hint}")
        parts += self.details
        if self.operator:
            parts.append(f"in operator {shortened(self.operator, MAX_OPERATOR)}")
        return hidden("\n".join(parts), foreign_texts(self))


#: Characters of an operator's description that a report shows; EXPLAIN shows all.
MAX_OPERATOR = 240


def shortened(text: str, length: int) -> str:
    """The text, or as much of it as fits into ``length`` characters, ``...`` included."""
    return text if len(text) <= length else text[: length - 3] + "..."


@dataclass(slots=True)
class FailedRow:
    """A row that broke a rule, found on the way out of the failure.

    ``row``: from 0, in the batch that the failing operator took. ``values``: texts of the columns concerned, by index.
    ``expr``: the expression that failed (``flowsql_core.expr.Expr``). ``names``: of the columns, where they are not
    those of the operator's input. ``batch`` and ``position``: the batch upstream that the row was followed to, and
    where it stands there. ``read_row``: from 0, among the rows that subtask ``subtask`` of the source gave out.
    ``came_row``: from 0, among those that came to the failing operator, where it found out too late to follow the row.
    """

    row: int
    values: Mapping[int, str]
    expr: Any = None
    names: tuple[str, ...] | None = None
    batch: Any = field(default=None, repr=False, compare=False)
    position: int = -1
    read_row: int | None = None
    subtask: int = 0
    came_row: int | None = None

    def arrived_in(self, batch: Any, row: int) -> None:
        """The failing operator took the row in this batch, at this position."""
        self.batch, self.row, self.position = batch, row, row


class ParseError(FlowSqlError):
    """The text is not Flink SQL."""


class BindError(FlowSqlError):
    """Names, types or clauses of a well-formed statement do not fit together."""


class PlanError(FlowSqlError):
    """A bound statement has no plan: a changelog that a sink cannot take, a missing time attribute."""


class NotSupportedYetError(PlanError):
    """Valid Flink SQL that FlowSQL does not execute yet; the message is ``not supported yet: <construct>``."""

    def __init__(self, construct: str, at: Span | None = None, hint: str | None = None) -> None:
        super().__init__("not-supported-yet", f"not supported yet: {construct}", at, hint)
        self.construct = construct


class ExecutionError(FlowSqlError):
    """A row broke a rule while the job ran: a failed cast, a NULL row time, a bad record."""


class ConnectorError(FlowSqlError):
    """The outside world refused: a missing file, a lost broker."""

    def __init__(
        self, code: str, message: str, at: Span | None = None, hint: str | None = None, *, retryable: bool = False
    ) -> None:
        super().__init__(code, message, at, hint)
        self.retryable = retryable


class InternalError(FlowSqlError):
    """An invariant of FlowSQL itself is broken."""

    #: Behind what went wrong.
    SUFFIX: ClassVar = " (this is a FlowSQL bug)"

    def __init__(self, message: str) -> None:
        super().__init__("internal", f"{message}{self.SUFFIX}")


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """``did you mean 'x'?`` for the nearest candidate, or None when none is near."""
    import difflib  # most sessions name everything right

    known = {candidate.lower(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f"did you mean '{known[near[0]]}'?" if near else None
