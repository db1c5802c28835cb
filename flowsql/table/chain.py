"""The text behind a chain of methods, and small changes of trees.

``t.where(col("n") > 1).select(col("k"))`` has no SQL text that an error could point into, so it gets one: each method
adds a line with its arguments printed as SQL, and its nodes bear the places in that line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from flowsql.table.syntax import ast, shown
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
    node = getattr(arg, "_node", None)
    if isinstance(node, ast.Node):
        return shown(node)
    return repr(arg) if isinstance(arg, str) else str(arg)


def placed(node: N, span: Span) -> N:
    """The tree with every node at a place."""
    from flowsql_planner.bind.respan import respan
    from flowsql_planner.deep import with_room

    return with_room(lambda: respan(node, span))


def moved(node: N, by: int) -> N:
    """The tree with every place further on in a longer text."""
    return cast(N, rewritten(node, lambda part: with_span(part, Span(part.span.start + by, part.span.end + by))))


def with_span(node: ast.Node, span: Span) -> ast.Node:
    """The node at another place."""
    return rebuilt(node, {name: getattr(node, name) for name in type(node).layout.fields}, span)


def rebuilt(node: ast.Node, fields: dict[str, object], span: Span) -> ast.Node:
    """A node of the same class with other fields."""
    details = {name: getattr(node, name) for name in type(node).layout.details}
    make: Callable[..., ast.Node] = type(node)
    return make(**(fields | details | {"span": span}))


def rewritten(
    node: ast.Node, change: Callable[[ast.Node], ast.Node], skip: Callable[[ast.Node], bool] = lambda node: False
) -> ast.Node:
    """The tree with ``change`` applied to every node, those below first; trees that ``skip`` knows stay as they are.

    What nothing changes stays the same object.
    """
    from flowsql_planner.deep import with_room

    return with_room(lambda: _rewritten(node, change, skip))


def _rewritten(node: ast.Node, change: Callable[[ast.Node], ast.Node], skip: Callable[[ast.Node], bool]) -> ast.Node:
    if skip(node):
        return node
    fields = {name: getattr(node, name) for name in type(node).layout.fields}
    new = {name: _rewritten_value(value, change, skip) for name, value in fields.items()}
    if any(new[name] is not fields[name] for name in fields):
        node = rebuilt(node, new, node.span)
    return change(node)


def _rewritten_value(value: object, change: Callable[[ast.Node], ast.Node], skip: Callable[[ast.Node], bool]) -> object:
    if isinstance(value, ast.Node):
        return _rewritten(value, change, skip)
    if isinstance(value, tuple):
        made = tuple(_rewritten_value(item, change, skip) for item in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    return value
