"""The error family: the user's, the outside world's, ours. Each has a stable code and, where SQL is to blame, a place.

Nothing else is raised across a package border. A message says what is wrong; the hint says what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

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
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.hint = hint
        self.source: Source | None = None
        self.operator: str | None = None

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
        parts = [self.message]
        if self.at is not None and self.source is not None:
            parts.append(self.source.frame(self.at, self.hint or ""))
        elif self.hint:
            parts.append(f"hint: {self.hint}")
        if self.operator:
            parts.append(f"in operator {self.operator}")
        return "\n".join(parts)


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

    def __init__(self, message: str) -> None:
        super().__init__("internal", f"{message} (this is a FlowSQL bug)")


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """``did you mean 'x'?`` for the nearest candidate, or None when none is near."""
    import difflib  # most sessions name everything right

    known = {candidate.lower(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f"did you mean '{known[near[0]]}'?" if near else None
