"""Reserved words that were probably meant as names: a text that fits the grammar once they are quoted."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_grammar.lexer import Token, kinds
from flowsql_grammar.reserved import RESERVED
from flowsql_grammar.tables import tables

#: How many tokens before the fault a word may be: the parser stops after ``DATE``, which begins a literal too.
_BACK = 3
_MOST_WORDS = 8
_STRUCTURE = (
    "SELECT FROM WHERE GROUP HAVING ORDER LIMIT WINDOW QUALIFY UNION EXCEPT INTERSECT JOIN INNER LEFT RIGHT FULL CROSS",
    "NATURAL ON USING AND OR NOT IN IS BETWEEN LIKE AS BY SET VALUES INTO THEN ELSE END WHEN WITH OVER WITHIN FILTER",
)
#: Words that open a clause or join operands: hardly anybody means them as a name.
STRUCTURE = frozenset(" ".join(_STRUCTURE).split())


def words_meant_as_names(tokens: Sequence[Token], index: int, start: str) -> tuple[list[Token], bool]:
    """Return reserved words to quote, and whether the text is a sentence then; ``tokens[index]`` fits nowhere.

    A word counts where the parser gets further once it is a name.

    >>> from flowsql_core.span import Source
    >>> from flowsql_grammar.lexer import tokenize
    >>> words, whole = words_meant_as_names(tokenize(Source("SELECT date, at FROM t")), 2, "statement")
    >>> [word.text for word in words], whole
    (['date', 'at'], True)
    """
    current, found = list(tokens), list[Token]()
    fault: int | None = index
    while fault is not None and len(found) < _MOST_WORDS:
        quoted = _quoted(current, fault, start)
        if quoted is None:
            break
        place, fault = quoted
        found.append(current[place])
        current[place] = _as_name(current[place])
    return found, fault is None


def _quoted(tokens: list[Token], fault: int, start: str) -> tuple[int, int | None] | None:
    """The place of the word that gets the parser furthest where it is a name, and where it stops then."""
    best: tuple[int, int | None] | None = None
    most = (0, False)
    for place in range(fault, max(fault - _BACK, 0) - 1, -1):
        word = tokens[place]
        if word.text.upper() not in RESERVED:
            continue
        after = first_fault([*tokens[:place], _as_name(word), *tokens[place + 1 :]], start)
        reached = (len(tokens) if after is None else after, word.text.upper() not in STRUCTURE)
        if reached[0] > fault and reached > most:
            best, most = (place, after), reached
    return best


def _as_name(word: Token) -> Token:
    return Token(kinds().quoted, word.text, word.start, word.end)


def first_fault(tokens: Sequence[Token], start: str) -> int | None:
    """Return the place of the first token that fits nowhere; None where the tokens are a sentence."""
    loaded, known = tables(), kinds()
    stack = [loaded.starts[start]]
    end_state = loaded.ends[start]
    for index, token in enumerate(tokens):
        while True:
            row = loaded.row(stack[-1])
            action = row.get(token.kind)
            if action is None and token.kind in known.soft:
                action = row.get(known.ident)
            if action is None:
                return index
            if not action & 1:
                stack.append(action >> 1)
                break
            if length := len(loaded.plans[action >> 1]):
                del stack[-length:]
            stack.append(loaded.row(stack[-1])[loaded.lefts[action >> 1]] >> 1)
            if token.kind == 0 and stack[-1] == end_state:
                return None
    return None
