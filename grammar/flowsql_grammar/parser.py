"""The LALR driver: tokens to syntax tree, with an explicit stack, so that deep texts need no deep Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from flowsql_core.errors import ParseError
from flowsql_core.span import Source, Span
from flowsql_grammar.build import method
from flowsql_grammar.lexer import Token, kinds
from flowsql_grammar.tables import tables

Start = Literal["statement", "expr", "null_type"]

MAX_DEPTH = 8000
"""Levels of nesting of builder steps: about 200 nested calls or 80 nested subqueries.

Chains such as ``a OR b OR c`` count once, however long they are.
"""

_CHAINS = {"binary", "comma_join", "join", "join_on", "join_using", "set_operation", "item_access", "sequence"}
_GENERIC = {"splice", "only", "opt", "list", "words", "true", "false"}
_UNITS = {"only", "opt"}


class Rule:
    """What the driver does where a rule ends."""

    __slots__ = ("action", "build", "is_chain", "is_unit", "kept", "left", "length", "plan")

    def __init__(self, left: int, action: str, plan: str) -> None:
        self.left = left
        self.action = action
        self.plan = plan
        self.length = len(plan)
        # Positions of the kept symbols where nothing is spliced, else None.
        self.kept = None if "s" in plan else tuple([i for i, letter in enumerate(plan) if letter == "k"])
        # One symbol for another, value unchanged.
        self.is_unit = plan == "k" and action in _UNITS
        self.is_chain = action in _CHAINS
        # None for what the driver does by itself.
        self.build: Callable[..., Any] | None = None if action in _GENERIC else method(action)


_rules: list[Rule | None] = []


def rule_of(number: int) -> Rule:
    """A rule, made when a parse first meets it."""
    loaded = tables()
    if not _rules:
        _rules.extend([None] * len(loaded.lefts))
    made = _rules[number]
    if made is None:
        made = _rules[number] = Rule(loaded.lefts[number], loaded.actions[number], loaded.plans[number])
    return made


def parse_tokens(tokens: list[Token], source: Source, start: Start) -> Any:
    """The tree of a run of tokens that ends with one of kind 0.

    Raises:
        ParseError: the tokens are no sentence of the start symbol; it bears the source.
    """
    try:
        return _run(tokens, source, start)
    except ParseError as error:
        raise error.within(source) from None


def _run(tokens: list[Token], source: Source, start: Start) -> Any:
    loaded = tables()
    rows, unpack, skips = loaded.rows, loaded.row, loaded.skips
    rule_of(0)
    rules = _rules
    known = kinds()
    soft, ident = known.soft, known.ident
    end_state = loaded.ends[start]
    many = len(rows)

    states = [loaded.starts[start]]
    values: list[Any] = [None]
    # Start and end offset, and depth, of each value.
    begins = [tokens[0].start]
    ends = [tokens[0].start]
    depths = [0]
    index = 0
    token = tokens[0]
    kind = token.kind
    while True:
        state = states[-1]
        row = rows[state]
        if row is None:
            row = unpack(state)
        action = row.get(kind)
        if action is None:
            action = row.get(ident) if kind in soft else None
            if action is None:
                # Most texts have no fault.
                from flowsql_grammar.expected import syntax_error

                raise syntax_error(tokens, index, source, start)
        if not action & 1:
            states.append(action >> 1)
            values.append(token)
            begins.append(token.start)
            ends.append(token.end)
            depths.append(0)
            index += 1
            token = tokens[index]
            kind = token.kind
            continue
        number = action >> 1
        rule = rules[number] or rule_of(number)
        length = rule.length
        if rule.is_unit:
            # One symbol stands for another: the value stays. Runs of these, up the levels of expressions, are frequent
            # and always the same from the same states, so that their ends are remembered.
            below = states[-2]
            key = (kind * many + below) * many + state
            after = skips.get(key)
            if after is None:
                after = skips[key] = _end_of_units(below, state, kind)
            states[-1] = after
            if kind == 0 and after == end_state:
                return values[-1]
            continue
        build = rule.build
        if length:
            begin, end = begins[-length], ends[-1]
            depth = depths[-1] if length == 1 else max(depths[-length:])
            kept = rule.kept
            if kept is None:
                children = _spliced(values, rule)
            elif length == 1:
                children = values[-1:] if kept else []
            else:
                base = len(values) - length
                children = [values[base + k] for k in kept]
            if build is not None:
                if rule.is_chain:
                    depth = max(depths[-length], depths[-1] + 1)
                elif length > 1:
                    depth += 1
                if depth > MAX_DEPTH:
                    raise ParseError(
                        "nested-too-deeply",
                        f"SQL parse failed. The statement is nested too deeply (over {MAX_DEPTH} levels).",
                        Span(begin, end),
                        "split it with views or WITH",
                    )
            del (states[-length:], values[-length:], begins[-length:], ends[-length:], depths[-length:])
            value = build(Span(begin, end), *children) if build is not None else _generic(rule.action, children)
        else:
            # Nothing stands at the end of what was read, not at the start of what follows.
            begin = end = ends[-1]
            depth = 0
            value = _generic(rule.action, []) if build is None else build(Span(begin, end))
        row = rows[states[-1]]
        if row is None:
            row = unpack(states[-1])
        states.append(row[rule.left] >> 1)
        if kind == 0 and states[-1] == end_state:
            return value
        values.append(value)
        begins.append(begin)
        ends.append(end)
        depths.append(depth)


def _end_of_units(below: int, state: int, kind: int) -> int:
    """The state after all unit reductions that a terminal asks for, above the state ``below``."""
    loaded, known = tables(), kinds()
    goto = loaded.row(below)
    while True:
        row = loaded.row(state)
        action = row.get(kind)
        if action is None and kind in known.soft:
            action = row.get(known.ident)
        if action is None or not action & 1:
            return state
        rule = rule_of(action >> 1)
        if not rule.is_unit:
            return state
        state = goto[rule.left] >> 1
        if kind == 0 and state in loaded.ends.values():
            return state


def _spliced(values: list[Any], rule: Rule) -> list[Any]:
    """Children of a rule of which some are lists to splice.

    A leading list is extended in place: it has no other owner, and long lists would take quadratic time otherwise.
    """
    base = len(values) - rule.length
    plan = rule.plan
    if plan[0] == "s":
        children: list[Any] = values[base]
        first = 1
    else:
        children = []
        first = 0
    for k in range(first, rule.length):
        letter = plan[k]
        if letter == "k":
            children.append(values[base + k])
        elif letter == "s":
            children.extend(values[base + k])
    return children


def _generic(action: str, children: list[Any]) -> Any:
    match action:
        case "splice":
            return children
        case "only":
            return children[0]
        case "opt":
            return children[0] if children else None
        case "list":
            return tuple(children)
        case "words":
            return " ".join([token.text.upper() for token in children])
        case "true":
            return True
        case _:
            assert action == "false", action
            return False
