"""Warns of a stream whose state grows for ever, when it starts: what ``flowsql lint`` would have found."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from flowsql.cli.options import WARN_GROWING_STATE

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment
    from flowsql_core.span import Source
    from flowsql_grammar.ast.statement import Statement
    from flowsql_planner.physical.context import PlanContext
    from flowsql_planner.physical.nodes import Physical

RULE: Final = "unbounded-state"


@contextlib.contextmanager
def warned_of_growth(environment: TableEnvironment, statement: Statement, source: Source) -> Iterator[None]:
    """Run a statement in the block; behind it, tell on standard error what of its state nothing removes."""
    if not environment.configuration.get(WARN_GROWING_STATE):
        yield
        return
    plans: list[tuple[tuple[Physical, ...], PlanContext]] = []
    environment.watch_plans(lambda roots, context: plans.append((roots, context)))
    try:
        yield
    finally:
        environment.watch_plans(None)
    for roots, context in plans:
        if context.reads_without_end():
            _warn(environment, statement, source, roots, context)


def _warn(
    environment: TableEnvironment,
    statement: Statement,
    source: Source,
    roots: tuple[Physical, ...],
    context: PlanContext,
) -> None:
    from flowsql_planner.lint.engine import in_order, lint_statement
    from flowsql_planner.lint.formats import FORMATS
    from flowsql_planner.lint.model import Subject
    from flowsql_planner.lint.registry import BY_NAME

    subject = Subject(statement, source, environment.configuration, plans=roots, context=context)
    found = in_order(lint_statement(subject, [BY_NAME[RULE]]), source)
    told = [finding for finding in found if finding.rule == RULE]
    if told:
        sys.stdout.flush()
        print(f"[WARNING] {FORMATS['text'](told)}", file=sys.stderr, flush=True)
