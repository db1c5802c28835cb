"""What a syntax error says: what was met, what would have fitted, what was probably meant."""

from __future__ import annotations

from flowsql_core.errors import ParseError
from flowsql_core.span import Source
from flowsql_grammar.hints import hint_for
from flowsql_grammar.lexer import Token, check_lexical, kinds
from flowsql_grammar.reserved import RESERVED
from flowsql_grammar.tables import tables


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
# The same of what may follow an operand.
_OPERATOR_MARKS = {"AND", "BETWEEN", "IS", "LIKE"}
_OPERATORS = _OPERATOR_MARKS | _words(
    "OR IN NOT ILIKE RLIKE SIMILAR MEMBER MULTISET SUBMULTISET OVERLAPS CONTAINS EQUALS PRECEDES SUCCEEDS IMMEDIATELY"
)
_OPERATOR_SYMBOLS = _words("+ - * / % || = <> < <= > >= [ .")
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
    # As Flink's parser, which stands on the last character at the end and escapes the quotes of what it met.
    at_end = token.kind == 0 and index > 0
    line, column = source.position(tokens[index - 1].end - 1 if at_end else token.start)
    met = "<EOF>" if token.kind == 0 else token.text.replace("'", "\\'").replace('"', '\\"')
    if len(met) > 60:
        met = met[:57] + "..."
    message = f'SQL parse failed. Encountered "{met}" at line {line}, column {column}.'
    listed = describe(accepted)
    if listed:
        shown = listed[:MAX_LISTED] + (["..."] if len(listed) > MAX_LISTED else [])
        message += ("\nWas expecting one of: " if len(listed) > 1 else "\nWas expecting: ") + ", ".join(shown)

    def before() -> set[int]:
        return acceptable(_stack_before(tokens, index - 1, start))

    return ParseError("syntax", message, place, hint_for(tokens, index, source, accepted, before, start))


def acceptable_after(tokens: list[Token], start: str = "statement") -> set[int] | None:
    """The terminals that may follow some tokens; None where the tokens begin no sentence of the start symbol."""
    try:
        return acceptable(_stack_before(tokens, len(tokens), start))
    except KeyError:
        return None


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
    operators = words >= _OPERATOR_MARKS
    if operators:
        words -= _OPERATORS
    ranked = sorted(words, key=lambda word: (_rank(word), word))
    shown += [f'"{word}"' for word in ranked]
    for name in ("IDENT", "QUOTED_STRING", "BINARY_STRING", "WHOLE_NUMBER", "$END"):
        if name in names and _NAMED[name] not in shown:
            shown.insert(0 if name in ("IDENT", "$END") else len(shown), _NAMED[name])
    if operators:
        shown.append("<OPERATOR>")
    for kind in sorted(accepted):
        text, name = loaded.display[kind], loaded.terminals[kind]
        if name in _NAMED or name == "FINAL_CALL" or name.startswith("ESCAPE_") or text in known.words:
            continue
        if operators and text in _OPERATOR_SYMBOLS:
            continue
        if expression and text in "+-(?":
            continue
        shown.append(f'"{text.replace("_", " ")}"')
    return shown


def _rank(word: str) -> int:
    return _CLAUSES_FIRST.index(word) if word in _CLAUSES_FIRST else len(_CLAUSES_FIRST)
