"""What a syntax error says: what was met, what would have fitted, what was probably meant."""

from __future__ import annotations

from flowsql_core.errors import ParseError, did_you_mean
from flowsql_core.span import Source
from flowsql_grammar.lexer import BAD, Token, check_lexical, kinds
from flowsql_grammar.reserved import RESERVED
from flowsql_grammar.tables import tables

MAX_LISTED = 12

_NAMED = {
    "IDENT": "<IDENTIFIER>",
    "QUOTED_IDENT": "<IDENTIFIER>",
    "QUOTED_STRING": "<STRING>",
    "CHARSET_STRING": "<STRING>",
    "UNICODE_STRING": "<STRING>",
    "BINARY_STRING": "<BINARY STRING>",
    "WHOLE_NUMBER": "<NUMBER>",
    "DECIMAL_NUMBER": "<NUMBER>",
    "APPROXIMATE_NUMBER": "<NUMBER>",
    "$END": "<EOF>",
}
# Lists that start an expression are long and say little: one word stands for them.
_EXPRESSION_MARKS = {"CASE", "CAST", "NULL", "EXTRACT"}
_CLAUSES_FIRST = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "QUALIFY",
    "ORDER",
    "LIMIT",
    "AS",
    "ON",
    "JOIN",
    "BY",
    "SET",
    "VALUES",
    "WITH",
)


def syntax_error(tokens: list[Token], index: int, source: Source, start: str) -> ParseError:
    """The error for ``tokens[index]``, which fits nowhere.

    Raises:
        ParseError: at once, with a message of its own, where the token is an unterminated string or comment.
    """
    token = tokens[index]
    check_lexical(token)
    stack = _stack_before(tokens, index, start)
    accepted = acceptable(stack)
    place = token.span
    line, column = source.position(token.start)
    met = "<EOF>" if token.kind == 0 else token.text
    if len(met) > 60:
        met = met[:57] + "..."
    message = f'SQL parse failed. Encountered "{met}" at line {line}, column {column}.'
    listed = describe(accepted)
    if listed:
        shown = listed[:MAX_LISTED] + (["..."] if len(listed) > MAX_LISTED else [])
        message += ("\nWas expecting one of: " if len(listed) > 1 else "\nWas expecting: ") + ", ".join(shown)
    return ParseError("syntax", message, place, _hint(tokens, index, accepted, start))


def acceptable(stack: list[int]) -> set[int]:
    """The terminals that can be shifted from a stack of states, reductions simulated."""
    loaded = tables()
    return {kind for kind in loaded.row(stack[-1]) if kind < len(loaded.terminals) and _shifts(stack, kind)}


def _shifts(stack: list[int], kind: int) -> bool:
    """Whether the terminal is shifted in the end; ``stack`` is left alone."""
    loaded = tables()
    kept = len(stack)
    above: list[int] = []  # the stack is stack[:kept] + above
    while True:
        state = above[-1] if above else stack[kept - 1]
        action = loaded.row(state).get(kind)
        if action is None:
            return False
        if not action & 1:
            return True
        pop = len(loaded.plans[action >> 1])
        from_above = min(pop, len(above))
        if from_above:
            del above[-from_above:]
        kept -= pop - from_above
        state = above[-1] if above else stack[kept - 1]
        above.append(loaded.row(state)[loaded.lefts[action >> 1]] >> 1)
        if kind == 0 and above[-1] in loaded.ends.values():
            return True


def _stack_before(tokens: list[Token], index: int, start: str) -> list[int]:
    """The states after ``tokens[:index]``, before any reduction that ``tokens[index]`` might have asked for."""
    loaded, known = tables(), kinds()
    stack = [loaded.starts[start]]
    for token in tokens[:index]:
        while True:
            row = loaded.row(stack[-1])
            action = row.get(token.kind)
            if action is None:
                action = row[known.ident]
            if not action & 1:
                stack.append(action >> 1)
                break
            if length := len(loaded.plans[action >> 1]):
                del stack[-length:]
            stack.append(loaded.row(stack[-1])[loaded.lefts[action >> 1]] >> 1)
    return stack


def describe(accepted: set[int]) -> list[str]:
    """Terminals as shown to people: words in quotes, names collapsed to ``<IDENTIFIER>``, the likely ones first."""
    loaded, known = tables(), kinds()
    names = {loaded.terminals[kind] for kind in accepted}
    any_name = known.ident in accepted
    words = {loaded.display[kind] for kind in accepted if kind in known.words.values()}
    expression = words >= _EXPRESSION_MARKS
    if any_name:
        words = {word for word in words if word in RESERVED}
    shown: list[str] = []
    if expression:
        shown.append("<EXPRESSION>")
        words &= set(_CLAUSES_FIRST) | {"DISTINCT", "ALL"}
        names -= {
            "QUOTED_STRING",
            "CHARSET_STRING",
            "UNICODE_STRING",
            "BINARY_STRING",
            "WHOLE_NUMBER",
            "DECIMAL_NUMBER",
        }
        names -= {"APPROXIMATE_NUMBER", "IDENT", "QUOTED_IDENT"}
    ranked = sorted(words, key=lambda word: (_rank(word), word))
    shown += [f'"{word}"' for word in ranked]
    for name in ("IDENT", "QUOTED_STRING", "BINARY_STRING", "WHOLE_NUMBER", "$END"):
        if name in names and _NAMED[name] not in shown:
            shown.insert(0 if name in ("IDENT", "$END") else len(shown), _NAMED[name])
    for kind in sorted(accepted):
        text, name = loaded.display[kind], loaded.terminals[kind]
        if name in _NAMED or name == "FINAL_CALL" or text in known.words:
            continue
        if expression and text in "+-(?":
            continue
        shown.append(f'"{text.replace("_", " ")}"')
    return shown


def _rank(word: str) -> int:
    return _CLAUSES_FIRST.index(word) if word in _CLAUSES_FIRST else len(_CLAUSES_FIRST)


def _hint(tokens: list[Token], index: int, accepted: set[int], start: str) -> str | None:
    loaded, known = tables(), kinds()
    token = tokens[index]
    upper = token.text.upper()
    words = [loaded.display[kind] for kind in accepted if kind in known.words.values()]
    if token.kind == BAD and token.text == '"':
        return "strings stand in single quotes, names in back-ticks"
    if token.text == "=" and index and tokens[index - 1].text in "=!":
        return "equality is a single '='" if tokens[index - 1].text == "=" else "inequality is '<>'"
    if token.text == "!":
        return "inequality is '<>'"
    if token.text == ":" and index + 1 < len(tokens) and tokens[index + 1].text == ":":
        return "write CAST(value AS type)"
    if upper in RESERVED and known.ident in accepted:
        return f"{upper} is a reserved word: as a name it is written `{token.text}`"
    if token.kind in (known.ident, *known.soft) and (meant := did_you_mean(token.text, words)):
        return meant.replace(meant.split("'")[1], meant.split("'")[1].upper())
    previous = tokens[index - 1] if index else None
    if previous is not None and previous.kind == known.ident:
        before = acceptable(_stack_before(tokens, index - 1, start)) | accepted
        options = [loaded.display[kind] for kind in before if kind in known.words.values()]
        return did_you_mean(previous.text, options)
    return None
