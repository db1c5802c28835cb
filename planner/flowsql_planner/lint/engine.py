"""Rules over statements, and the findings of a script put in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsql_core.errors import FlowSqlError
from flowsql_core.interpreter.large_stack import with_room
from flowsql_core.span import Source, Span
from flowsql_planner.lint.comments import switches
from flowsql_planner.lint.model import Finding, Hit, Rule, Subject
from flowsql_planner.lint.registry import BY_NAME

_FAILS = "the statement fails, and what stands behind it may do so because of it"
_MEND = "mend the statement"


def lint_statement(subject: Subject, rules: Sequence[Rule]) -> list[Finding]:
    """What rules find in a statement, and its error where none of them explains it."""
    found: list[Finding] = []
    explained = False
    for rule in rules:
        for hit in _hits(rule, subject):
            explained |= hit.explains_error
            reason, remedy = hit.reason or rule.reason, hit.remedy or rule.remedy
            found.append(Finding(rule.name, hit.span, hit.message, reason, remedy, subject.source))
    if subject.error is not None and not explained:
        found.append(failure(subject.error, subject.statement.span, subject.source))
    return found


def _hits(rule: Rule, subject: Subject) -> list[Hit]:
    """What a rule finds; plans may nest as deeply as those that run."""
    return with_room(lambda: list(rule.check(subject)))


def failure(error: FlowSqlError, at: Span, source: Source) -> Finding:
    """The error of a statement as a finding."""
    own = error.source is None or error.source == source
    place = error.at if error.at is not None and own else at
    return Finding(error.code, place, error.message, _FAILS, error.hint or _MEND, source, is_error=True)


def in_order(found: Iterable[Finding], source: Source) -> list[Finding]:
    """The findings of a script from its top to its end, each once, without those that its comments switch off."""
    off, wrong = switches(source, tuple(BY_NAME))
    kept = [finding for finding in found if finding.is_error or not any(switch.covers(finding) for switch in off)]
    places = {name: place for place, name in enumerate(BY_NAME)}
    once = {(each.rule, each.span, each.message): each for each in (*kept, *wrong)}
    return sorted(once.values(), key=lambda each: (each.span.start, places.get(each.rule, -1), each.span.end))
