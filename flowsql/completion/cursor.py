"""Where the cursor stands: the tokens around it, the word that is begun, the tables that the statement names."""

from __future__ import annotations

from typing import Final

from flowsql_core.record import record
from flowsql_core.span import Source
from flowsql_grammar.lexer import BAD, Token, kinds, tokenize
from flowsql_grammar.script import unfinished

#: Behind these words stands a table.
TABLE_WORDS: Final = frozenset({"FROM", "JOIN", "INTO", "TABLE", "DESCRIBE", "DESC", "VIEW", "UPDATE", "OVERWRITE"})
#: What ends the items of FROM.
_BEHIND_FROM: Final = frozenset(
    {"WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "SELECT", ")"}
)


@record
class Cursor:
    """A place in a statement.

    ``before``: the tokens in front of the word at the cursor. ``behind``: those behind the cursor. ``word``: what is
    begun of a word or, with ``in_string``, of a string, without its quote; ``start``: where what replaces it begins.
    ``qualifiers``: names with dots in front of it.
    """

    before: tuple[Token, ...]
    behind: tuple[Token, ...]
    word: str
    start: int
    in_string: bool
    qualifiers: tuple[str, ...]

    def previous(self, count: int = 1) -> str:
        """The ``count``-th token in front of the word and its qualifiers, in capitals; empty where there is none."""
        return self.previous_text(count).upper()

    def previous_text(self, count: int = 1) -> str:
        """The same as it is written."""
        place = len(self.before) - 2 * len(self.qualifiers) - count
        return self.before[place].text if place >= 0 else ""


def cursor_at(text: str, position: int) -> Cursor:
    """The cursor before ``text[position]``."""
    tokens = unfinished(text[:position])
    word, start, in_string = "", position, False
    if tokens and tokens[-1].end == position:
        last = tokens[-1]
        if last.kind == BAD and last.text[:1] in "'`":
            in_string = last.text[0] == "'"
            word, start = last.text[1:], last.start + in_string
            tokens = tokens[:-1]
        elif last.text[:1].isalnum() or last.text[:1] in "_$`":
            word, start = last.text, last.start
            tokens = tokens[:-1]
    names = []
    place = len(tokens) - 1
    while not in_string and place >= 1 and tokens[place].text == "." and _is_name(tokens[place - 1]):
        names.append(unquoted(tokens[place - 1].text))
        place -= 2
    return Cursor(tuple(tokens), _behind(text, position), word, start, in_string, tuple(reversed(names)))


def unquoted(name: str) -> str:
    """A name without its back-ticks."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


@record
class NamedTable:
    """A table that a statement reads or writes. ``alias``: how columns of it may be qualified."""

    path: tuple[str, ...]
    alias: str


def tables_of(cursor: Cursor) -> list[NamedTable]:
    """The tables in FROM, JOIN, INTO and UPDATE of the statement, in front of the cursor and behind it."""
    tokens = [*cursor.before, *cursor.behind]
    found = []
    place = 0
    in_from = False
    while place < len(tokens):
        word = tokens[place].text.upper()
        if word in ("FROM", "JOIN", "INTO", "UPDATE", "TABLE") or (word == "," and in_from):
            in_from = word in ("FROM", "JOIN", ",")
            made = _named(tokens, place + 1)
            if made is not None:
                table, place = made
                found.append(table)
                continue
        elif word in _BEHIND_FROM:
            in_from = False
        place += 1
    return found


def _named(tokens: list[Token], place: int) -> tuple[NamedTable, int] | None:
    """The table whose name begins at a place, and the place behind its alias."""
    path = []
    while place < len(tokens) and _is_name(tokens[place]):
        path.append(unquoted(tokens[place].text))
        place += 1
        if place >= len(tokens) or tokens[place].text != ".":
            break
        place += 1
    if not path:
        return None
    alias = path[-1]
    if place < len(tokens) and tokens[place].text.upper() == "AS":
        place += 1
    if place < len(tokens) and _is_name(tokens[place]) and tokens[place].kind in (kinds().ident, kinds().quoted):
        alias = unquoted(tokens[place].text)
        place += 1
    return NamedTable(tuple(path), alias), place


def _is_name(token: Token) -> bool:
    known = kinds()
    return token.kind in (known.ident, known.quoted) or token.kind in known.soft


def _behind(text: str, position: int) -> tuple[Token, ...]:
    """The tokens behind the cursor up to the end of the statement."""
    found: list[Token] = []
    for token in tokenize(Source(text), position)[:-1]:
        if token.kind == kinds().semicolon:
            break
        found.append(token)
    return tuple(found)
