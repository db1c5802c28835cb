"""What rules are, what they look at, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from flowsql_core.config import PARALLELISM, RUNTIME_MODE, STATE_TTL_MS, Configuration, RuntimeMode
from flowsql_core.errors import FlowSqlError
from flowsql_core.record import record
from flowsql_core.span import Source, Span
from flowsql_grammar import ast
from flowsql_grammar.ast.node import NOWHERE, Node
from flowsql_planner.lint.growth import grows
from flowsql_planner.logical.internal_calls import query_calls
from flowsql_planner.logical.nodes import Rel, expressions
from flowsql_planner.logical.rewrite import walk as walk_logical
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import GroupAggregate, OverAggregate, Physical, WindowAggregate
from flowsql_planner.physical.nodes import walk as walk_physical

N = TypeVar("N", bound=Node)

#: Characters of the text of a script that a message quotes.
_QUOTED = 60


@record
class Finding:
    """A place of a script that a rule objects to, or a statement that fails (``is_error``; ``rule`` is its code)."""

    rule: str
    span: Span
    message: str
    reason: str
    remedy: str
    source: Source
    is_error: bool = False

    @property
    def position(self) -> tuple[int, int]:
        """Line and column, from 1."""
        return self.source.position(self.span.start)


@record
class Hit:
    """What the check of a rule found. ``remedy`` None: the rule's. ``explains_error``: why the statement fails."""

    span: Span
    message: str
    remedy: str | None = None
    reason: str | None = None
    explains_error: bool = False


@record
class Rule:
    """``summary``: what it finds, in a sentence. ``reason``: why that bites. ``remedy``: what to write instead."""

    name: str
    summary: str
    reason: str
    remedy: str
    check: Callable[[Subject], Iterable[Hit]]


@dataclass(eq=False)
class Subject:
    """A statement as rules see it: as it is written, as it is bound, and as it would run.

    ``roots``: the logical plan of each sink or query, before any rule of the optimizer. ``plans``: the physical ones,
    with changelog modes; none where the statement moves no rows, fails, or runs in batch mode. ``error``: why it fails.
    """

    statement: ast.Statement
    source: Source
    configuration: Configuration
    roots: tuple[Rel, ...] = ()
    plans: tuple[Physical, ...] = ()
    context: PlanContext | None = None
    error: FlowSqlError | None = None
    _growing: dict[int, bool] = field(default_factory=dict)

    @property
    def streaming(self) -> bool:
        """Whether the statement runs as a stream."""
        return self.configuration.get(RUNTIME_MODE) is not RuntimeMode.BATCH

    @property
    def parallelism(self) -> int:
        """Of the job."""
        return self.configuration.get(PARALLELISM)

    @property
    def ttl_ms(self) -> int:
        """How long state is kept that nobody touches; 0: for ever."""
        return self.configuration.get(STATE_TTL_MS)

    # The text

    @cached_property
    def selects(self) -> dict[Span, ast.Select]:
        """The SELECTs of the statement by their places, which plan nodes know."""
        return {node.span: node for node in self.written(ast.Select)}

    @cached_property
    def joins(self) -> dict[Span, ast.Join]:
        """The joins of FROM by their places."""
        return {node.span: node for node in self.written(ast.Join)}

    def written(self, kind: type[N]) -> Iterator[N]:
        """All parts of the statement that are of a kind, parents first."""
        return (node for node in self.statement.walk() if isinstance(node, kind))

    def text(self, span: Span) -> str:
        """A part of the script in one line, shortened for a message."""
        words = " ".join(self.source.text[span.start : span.end].split())
        return words if len(words) <= _QUOTED else words[: _QUOTED - 3] + "..."

    def place(self, *candidates: Span | None) -> Span:
        """The first place that is one of the script's text; else the whole statement."""
        return next((span for span in candidates if span is not None and span != NOWHERE), self.statement.span)

    def group_span(self, group_by: ast.GroupBy) -> Span:
        """What stands behind ``GROUP BY``."""
        first, last = group_by.elements[0].span, group_by.elements[-1].span
        return self.place(group_by.span) if NOWHERE in (first, last) else first.to(last)

    def node_place(self, node: Physical) -> Span:
        """The clause that makes an operator: GROUP BY or an aggregate of its SELECT, the condition of its join."""
        select = None if node.span is None else self.selects.get(node.span)
        join = None if node.span is None else self.joins.get(node.span)
        if isinstance(node, GroupAggregate | WindowAggregate) and select is not None:
            if select.group_by is not None:
                return self.group_span(select.group_by)
            return self.place(*(call.span for call in node.calls), node.span)
        if isinstance(node, OverAggregate):
            return self.place(*(call.span for call in node.calls), node.span)
        if join is not None:
            return join.right.span if join.on is None else join.right.span.to(join.on.span)
        return self.place(node.span)

    # The plans

    def logical(self) -> Iterator[Rel]:
        """All nodes of the bound plans, those of queries in expressions included."""
        waiting = list(self.roots)
        while waiting:
            for node in walk_logical(waiting.pop()):
                yield node
                for expr in expressions(node):
                    waiting += [call.option("plan") for call in query_calls(expr)]

    def physical(self) -> Iterator[Physical]:
        """All nodes of the physical plans, a shared one once."""
        seen: set[int] = set()
        for plan in self.plans:
            for node in walk_physical(plan):
                if id(node) not in seen:
                    seen.add(id(node))
                    yield node

    def grows(self, node: Physical) -> bool:
        """Whether the table that a node's changes describe gets ever more rows."""
        if id(node) not in self._growing:
            self._growing[id(node)] = self.context is not None and grows(node, self.context, self.grows)
        return self._growing[id(node)]
