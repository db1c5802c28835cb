"""What hints behind SELECT must name: a table or alias of its FROM, as Flink's ``QueryHintsResolver`` wants it.

A hint calls a table without an alias by one to three parts of its path, one with an alias by that alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from flowsql_core.errors import BindError, did_you_mean
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.query.from_clause import relation_names
from flowsql_planner.bind.query.join_hints import JOIN_HINTS
from flowsql_planner.bind.query.lookup_hints import TABLE
from flowsql_planner.bind.query.multi_join_hints import MULTI_JOIN
from flowsql_planner.bind.query.table import check_hint_names

#: What each kind of hint that needs arguments expects, in Flink's words.
_EXPECTED: Final = {
    "STATE_TTL": (
        "Invalid STATE_TTL hint, expecting at least one key-value options specified",
        "STATE_TTL('t' = '1d')",
    ),
    **{
        name: (
            f"Invalid hint: {name}, expecting at least one table or view specified in hint {name}",
            f"{name}(t)",
        )
        for name in (*JOIN_HINTS, MULTI_JOIN)
    },
}


def checked_hints(context: BindContext, node: ast.Select) -> tuple[ast.Hint, ...]:
    """Return the hints of a SELECT, with the names that the rest of the binder calls the items of FROM by.

    Flink looks at the names only where the SELECT joins, those of STATE_TTL also where it groups.

    Raises:
        BindError: at a hint that is unknown or empty, names nothing in FROM, or does not work in this mode.
    """
    check_hint_names(node.hints)
    for hint in node.hints:
        kind = hint.name.text.upper()
        has_pairs = kind in JOIN_HINTS and any(argument.key is not None for argument in hint.arguments)
        if kind in _EXPECTED and (has_pairs or not hint.arguments):
            message, example = _EXPECTED[kind]
            raise BindError("bad-hint", message, hint.span, f"for example {example}")
    if not node.hints or node.from_ is None:
        return node.hints
    hints = tuple(_by_shortest_names(context, hint, node.from_) for hint in node.hints)
    joins = isinstance(node.from_, ast.Join)
    everything = frozenset(name for leaf in items(node.from_) for name in relation_names(leaf))
    looked_up = frozenset(_right_names(node.from_))
    for hint in hints:
        kind = hint.name.text.upper()
        if kind == "STATE_TTL" and (joins or node.group_by is not None):
            _require(hint, [(argument, argument.key) for argument in hint.arguments], everything)
        elif kind in (*JOIN_HINTS, MULTI_JOIN) and joins:
            _require(hint, [(argument, argument.value) for argument in hint.arguments], everything)
            if kind == MULTI_JOIN and not context.streaming:
                raise BindError("bad-hint", f"{MULTI_JOIN} joins streams: batch mode has no such join", hint.span)
        elif kind == "LOOKUP" and joins:
            named = [(argument, argument.value) for argument in hint.arguments if argument.key == TABLE]
            _require(hint, named[-1:], looked_up)
    return hints


def items(node: ast.Relation) -> Iterator[ast.Relation]:
    """Yield the items of FROM, from left to right."""
    if isinstance(node, ast.Join):
        yield from items(node.left)
        yield from items(node.right)
    else:
        yield node


def _right_names(node: ast.Relation) -> Iterator[str]:
    if isinstance(node, ast.Join):
        yield from _right_names(node.left)
        yield from _right_names(node.right)
        yield from relation_names(node.right)


def _require(hint: ast.Hint, named: Sequence[tuple[ast.HintArgument, str | None]], names: frozenset[str]) -> None:
    for argument, name in named:
        if name is not None and name not in names:
            kind = hint.name.text.upper()
            side = " on the right of a join" if kind == "LOOKUP" else ""
            raise BindError(
                "bad-hint",
                "The options of following hints cannot match the name of input tables or views"
                f"{side}: '{name}' in '{kind}'",
                argument.span or hint.span,
                did_you_mean(name, names),
            )


def _by_shortest_names(context: BindContext, hint: ast.Hint, from_: ast.Relation) -> ast.Hint:
    """The hint with the last part of a table's path in the place of more of them."""
    if not any("." in (argument.key or "") or "." in argument.value for argument in hint.arguments):
        return hint
    shorter: dict[str, str] = {}
    for leaf in items(from_):
        if isinstance(leaf, ast.TableRef) and leaf.alias is None and not isinstance(leaf.name, ast.FileName):
            path = context.qualify(leaf.name)
            last = leaf.name.last.text
            shorter |= {str(path): last, f"{path.database}.{path.name}": last}
    arguments = tuple(
        replace(
            argument,
            key=argument.key if argument.key is None else shorter.get(argument.key, argument.key),
            value=shorter.get(argument.value, argument.value),
        )
        for argument in hint.arguments
    )
    return replace(hint, arguments=arguments)
