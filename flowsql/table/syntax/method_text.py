"""The text behind a chain of methods.

``t.where(col("n") > 1).select(col("k"))`` has no SQL text that an error could point into, so it gets one: each method
adds a line with its arguments printed as SQL, and its nodes bear the places in that line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from flowsql.table.syntax.build import ast, shown
from flowsql.table.syntax.operands import ExpressionOperand
from flowsql.table.syntax.rewrite import placed, rewritten, with_span
from flowsql_core.span import Source, Span

N = TypeVar("N", bound="ast.Node")


class Step:
    """One method of a chain.

    ``source``: the text up to and including this method. ``spans``: where each argument stands in it. ``whole``: the
    method with its arguments.
    """

    def __init__(self, before: Source, method: str, args: Sequence[object]) -> None:
        text = f"{before.text}\n.{method}("
        self.method = method
        self.spans: list[Span] = []
        for position, arg in enumerate(args):
            text += ", " if position else ""
            written = _written(arg)
            self.spans.append(Span(len(text), len(text) + len(written)))
            text += written
        self.source = Source(f"{text})", before.name, before.first_line)
        self.whole = Span(len(before.text) + 1, len(text) + 1)

    def at(self, position: int, node: N) -> N:
        """A tree that belongs to an argument."""
        return placed(node, self.spans[position])

    def fill(self, node: N, *known: ast.Node) -> N:
        """A new tree around ``known`` ones: what has no place yet gets the method's."""
        skip = {id(one) for one in known}

        def give(part: ast.Node) -> ast.Node:
            return with_span(part, self.whole) if part.span.end == 0 else part

        return cast(N, rewritten(node, give, lambda part: id(part) in skip))


def _written(arg: object) -> str:
    """An argument as the text of the chain shows it: an expression as SQL, so that it can be put into a query."""
    if isinstance(arg, ExpressionOperand):
        return shown(arg._node)
    return repr(arg) if isinstance(arg, str) else str(arg)
