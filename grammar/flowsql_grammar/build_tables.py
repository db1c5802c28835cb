"""Developer command: make the parse tables from ``sql.lark``. The only importer of lark; never imported at run time.

    python -m flowsql_grammar.build_tables

writes ``tables.bin`` beside the grammar. The format is described in :mod:`flowsql_grammar.tables`.
"""

from __future__ import annotations

import logging
import re
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

from flowsql_core.record import record
from flowsql_grammar.reserved import FUNCTION_WORDS, RESERVED

HERE = Path(__file__).parent
STARTS = ("statement", "expr", "null_type")
GENERIC = {"opt", "list", "flag", "words"}
CONSTANTS = {"true", "false", "only", "bracketed"}
# Words that are functions by their own rules in the grammar.
SPECIAL_FUNCTIONS = {"FLOOR", "CEILING", "CEIL", "CONVERT", "TRANSLATE"}


@record
class Built:
    """The tables as bytes, and the conflicts that were resolved in favour of a shift."""

    data: bytes
    conflicts: tuple[str, ...]
    states: int


def grammar_text() -> str:
    """``sql.lark`` with the two generated rules."""
    text = (HERE / "sql.lark").read_text("utf-8")
    words = sorted(set(re.findall(r'"([A-Z][A-Z_0-9]*)"', text)))
    free = [word for word in words if word not in RESERVED]
    functions = sorted(FUNCTION_WORDS - SPECIAL_FUNCTIONS)
    return (
        text
        + "\n!non_reserved: "
        + " | ".join(f'"{word}"' for word in free)
        + "\n!reserved_function: "
        + " | ".join(f'"{word}"' for word in functions)
        + "\n"
    )


def build() -> Built:
    """Compile the grammar."""
    from lark import Lark
    from lark.lexer import Lexer
    from lark.utils import logger

    class NoLexer(Lexer):
        def __init__(self, conf: Any) -> None: ...

        def lex(self, *args: Any) -> Any:
            raise NotImplementedError

    records: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    old_level, old_handlers = logger.level, list(logger.handlers)
    logger.setLevel(logging.DEBUG)
    logger.handlers[:] = [handler]
    try:
        lark: Any = Lark(
            grammar_text(), parser="lalr", lexer=NoLexer, start=list(STARTS), debug=True, maybe_placeholders=True
        )
    finally:
        logger.setLevel(old_level)
        logger.handlers[:] = old_handlers
    table = lark.parser.parser._parse_table
    return Built(_encode(lark, table), tuple(_conflicts(records)), len(table.states))


def _conflicts(records: list[str]) -> list[str]:
    found: list[str] = []
    for message in records:
        if match := re.search(r"Shift/Reduce conflict for terminal (\S+): \(resolving as shift\)", message):
            found.append(match.group(1))
        elif match := re.match(r"\s*\* <(.*)>", message):
            found[-1] += "  instead of  " + re.sub(r"__(\w+?)_(star|plus)_\d+", r"\1\2", match.group(1))
    return sorted(set(found))


def _encode(lark: Any, table: Any) -> bytes:
    display = {term.name: term.pattern.value for term in lark.terminals}
    terminals = sorted(
        {
            sym
            for row in table.states.values()
            for sym, (_, arg) in row.items()
            if sym.isupper() or sym.startswith("$") or sym in display
        }
    )
    terminals = ["$END"] + [t for t in terminals if t != "$END"]
    non_terminals = sorted(
        {rule.origin.name for rule in lark.rules}
        | {sym for row in table.states.values() for sym in row if sym not in set(terminals)}
    )
    ids = {name: i for i, name in enumerate([*terminals, *non_terminals])}

    rules = list(lark.rules)
    rule_ids = {id(rule): i for i, rule in enumerate(rules)}
    by_value = {rule: i for i, rule in enumerate(rules)}

    def rule_id(rule: Any) -> int:
        return rule_ids.get(id(rule), by_value.get(rule, -1))

    # States in a stable order: breadth first from the start states, symbols by id.
    order: list[Any] = []
    seen: set[Any] = set()
    waiting = [table.start_states[start] for start in STARTS]
    seen.update(waiting)
    from lark.parsers.lalr_analysis import Shift

    while waiting:
        state = waiting.pop(0)
        order.append(state)
        for sym in sorted(table.states[state], key=ids.__getitem__):
            action, arg = table.states[state][sym]
            if action is Shift and arg not in seen:
                seen.add(arg)
                waiting.append(arg)
    number = {state: i for i, state in enumerate(order)}

    sets: dict[tuple[int, ...], int] = {}
    rows: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    row_of_state: list[int] = []
    for state in order:
        by_step: dict[int, list[int]] = {}
        for sym in sorted(table.states[state], key=ids.__getitem__):
            action, arg = table.states[state][sym]
            step = number[arg] * 2 if action is Shift else rule_id(arg) * 2 + 1
            assert 0 <= step < 65536
            by_step.setdefault(step, []).append(ids[sym])
        singles = [n for step, symbols in by_step.items() if len(symbols) == 1 for n in (symbols[0], step)]
        groups = [
            n
            for step, symbols in by_step.items()
            if len(symbols) > 1
            for n in (step, sets.setdefault(tuple(symbols), len(sets)))
        ]
        row_of_state.append(rows.setdefault((tuple(singles), tuple(groups)), len(rows)))

    records = [_rule_record(rule, ids) for rule in rules]
    actions = sorted({action for _, action, _ in records})
    # A letter in front, so that no plan is empty.
    plans = sorted({"-" + plan for _, _, plan in records})
    lines = [
        " ".join(terminals),
        " ".join(display.get(t, t) for t in terminals),
        " ".join(f"{start}={number[table.start_states[start]]}" for start in STARTS),
        " ".join(f"{start}={number[table.end_states[start]]}" for start in STARTS),
        " ".join(actions),
        " ".join(plans),
        f"{len(records)} {len(sets)} {len(rows)} {len(order)}",
    ]
    numbers = [n for left, action, plan in records for n in (left, actions.index(action), plans.index("-" + plan))]
    numbers += [len(members) for members in sets]
    numbers += [len(part) // 2 for row in rows for part in row]
    numbers += row_of_state
    numbers += [n for members in sets for n in members]
    numbers += [n for singles, groups in rows for n in (*singles, *groups)]
    text = "\n".join(lines).encode()
    return zlib.compress(struct.pack("<I", len(text)) + text + struct.pack(f"<{len(numbers)}H", *numbers), 9)


def _rule_record(rule: Any, ids: dict[str, int]) -> tuple[int, str, str]:
    """Left side, what to do, plan; see :mod:`flowsql_grammar.tables`."""
    origin = rule.origin.name
    options = rule.options
    plan = ""
    for sym in rule.expansion:
        if sym.is_term:
            plan += "k" if options.keep_all_tokens or not sym.filter_out else "."
        else:
            plan += "s" if sym.name.startswith("_") else "k"
    if rule.alias:
        action = ("!" if origin.startswith("_") else "") + rule.alias
    elif origin.startswith("_"):
        action = "splice"
    elif options.expand1 and plan.count("k") == 1 and "s" not in plan:
        action = "only"
    elif origin.split("_", 1)[0] in GENERIC:
        action = origin.split("_", 1)[0]
    else:
        assert not options.expand1, f"{rule}: a vanishing rule needs an alias here"
        action = origin
    if action == "flag":
        action = "true" if rule.expansion else "false"
    return ids[origin], action, plan


def main() -> int:
    """Write the tables."""
    built = build()
    (HERE / "tables.bin").write_bytes(built.data)
    sys.stdout.write(f"{built.states} states, {len(built.data)} bytes, {len(built.conflicts)} conflicts\n")
    for conflict in built.conflicts:
        sys.stdout.write(conflict + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
