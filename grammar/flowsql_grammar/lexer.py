"""SQL text to tokens: one regular expression, then words are looked up. The shell uses the same tokens.

A token's kind is the number of a terminal. A word that is no keyword is an IDENT; a word that the grammar uses has the
kind of its keyword, and the parser turns it back into an IDENT where the keyword cannot stand and the word is not
reserved. A reserved word that the grammar has no use for is of kind ``RESERVED_UNUSED``, which fits nowhere.
"""

from __future__ import annotations

import re
from functools import cache

from flowsql_core.errors import ParseError
from flowsql_core.span import Source, Span
from flowsql_grammar.reserved import RESERVED
from flowsql_grammar.tables import tables

RESERVED_UNUSED = -1
BAD = -2
#: A string behind a string on one line: pieces of one text stand on lines of their own.
CONTINUED = -3

_PATTERN = re.compile(
    r"""(?P<space>(?:\s+|--[^\r\n]*|//[^\r\n]*|/\*(?!\+)(?s:.)*?\*/)+)
    |(?P<word>(?:[^\W\d]|\$)[\w$]*)
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<symbol><>|<=|>=|=>|\|\||/\*\+|\*/|\{-|-\}|(?!/\*)[-+*/%=<>()\[\]{},.;:?|^])
    |(?P<string>'[^']*(?:''[^']*)*')
    |(?P<quoted>`(?:[^`]|``)+`)""",
    re.VERBOSE,
)

# Strings with something in front. Few texts have one, so this is compiled when it is first asked for.
_PREFIXED = (
    r"(?P<charset>_[A-Za-z0-9][A-Za-z0-9\-_.:]*'[^']*(?:''[^']*)*')|(?P<national>[nN]'[^']*(?:''[^']*)*')"
    r"|(?P<unicode>[uU]&'[^']*(?:''[^']*)*')|(?P<escaped>[eE]'[^'\\]*(?:(?:''|\\(?s:.))[^'\\]*)*')"
    r"|(?P<binary>[xX]'[^']*(?:''[^']*)*')"
)

# Two words that act as one where both stand together: the first alone would need two tokens of look-ahead.
_JOINED = {
    "IGNORE": ("NULLS", "IGNORE_NULLS"),
    "RESPECT": ("NULLS", "RESPECT_NULLS"),
    "FORMAT": ("JSON", "FORMAT_JSON"),
}


_DECLARED = {
    "IDENT",
    "QUOTED_IDENT",
    "QUOTED_STRING",
    "CHARSET_STRING",
    "UNICODE_STRING",
    "BINARY_STRING",
    "WHOLE_NUMBER",
    "DECIMAL_NUMBER",
    "APPROXIMATE_NUMBER",
    "IF_EXISTS",
    "IF_NOT_EXISTS",
    "IGNORE_NULLS",
    "RESPECT_NULLS",
    "FORMAT_JSON",
    "FINAL_CALL",
    "ESCAPE_FN",
    "ESCAPE_DATE",
    "ESCAPE_TIME",
    "ESCAPE_TIMESTAMP",
}


class Token:
    """A piece of text. ``text`` is as written; ``kind`` is the number of a terminal; 0 is the end."""

    __slots__ = ("end", "kind", "start", "text")

    def __init__(self, kind: int, text: str, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.end = end

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.start, self.end)


class Kinds:
    """Numbers of terminals that the lexer and the parser ask for."""

    def __init__(self) -> None:
        """The numbers that the shipped tables give."""
        found = tables()
        self.ids = ids = found.terminal_ids
        self.words: dict[str, int] = {}
        self.symbols: dict[str, int] = {}
        for number, (name, text) in enumerate(zip(found.terminals, found.display, strict=True)):
            if number and name not in _DECLARED:
                (self.words if text[0].isalpha() else self.symbols)[text] = number
        self.ident = ids["IDENT"]
        self.quoted = ids["QUOTED_IDENT"]
        self.string = ids["QUOTED_STRING"]
        self.charset_string = ids["CHARSET_STRING"]
        self.unicode_string = ids["UNICODE_STRING"]
        self.binary_string = ids["BINARY_STRING"]
        self.strings = frozenset((self.string, self.charset_string, self.unicode_string))
        self.integer = ids["WHOLE_NUMBER"]
        self.decimal = ids["DECIMAL_NUMBER"]
        self.approximate = ids["APPROXIMATE_NUMBER"]
        self.semicolon = self.symbols[";"]
        # Keywords that may be names.
        self.soft = frozenset(number for word, number in self.words.items() if word not in RESERVED)


@cache
def kinds() -> Kinds:
    """The numbers of the shipped tables, found once."""
    return Kinds()


def tokenize(source: Source, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of ``source.text[start:end]``, the last of kind 0 with an empty text at the end.

    Positions count from the start of the whole text. A character that begins no token is a token of kind ``BAD``, so
    that the parser reports the first fault of the text and not the first odd character.
    """
    text = source.text
    stop = len(text) if end is None else end
    known = kinds()
    words, symbols = known.words, known.symbols
    tokens: list[Token] = []
    add = tokens.append
    match = _PATTERN.match
    position = start
    while position < stop:
        found = match(text, position, stop)
        if found is None:
            position = _bad(text, position, stop, tokens)
            continue
        group, piece, at, position = (found.lastgroup, found.group(), position, found.end())
        if group == "space":
            continue
        if group == "word":
            following = text[position : position + 1]
            if following in _OPENING and (following in "'&" or piece[0] == "_"):
                after = _prefixed(text, at, stop, tokens)
                if after:
                    position = after
                    continue
            if piece.startswith("$$") and _is_body(tokens, words):
                after = text.find("$$", at + 2, stop)
                if after >= 0:
                    # FlowSQL's own: a text without escapes, the same string to everyone behind the lexer.
                    body, position = text[at + 2 : after].replace("'", "''"), after + 2
                    add(Token(known.string, f"'{body}'", at, position))
                    continue
            upper = piece.upper()
            kind = words.get(upper)
            if kind is None:
                kind = known.ident if upper not in RESERVED else RESERVED_UNUSED
                if piece == "$":
                    kind = symbols["$"]
            add(Token(kind, piece, at, position))
        elif group == "symbol":
            add(Token(symbols.get(piece, BAD), piece, at, position))
        elif group == "number":
            if piece.isdigit():
                kind = known.integer
            else:
                kind = known.approximate if "e" in piece or "E" in piece else known.decimal
            add(Token(kind, piece, at, position))
        elif group == "quoted":
            add(Token(known.quoted, piece, at, position))
        else:
            beside = bool(tokens) and tokens[-1].text[-1] == "'" and "\n" not in text[tokens[-1].end : at]
            add(Token(CONTINUED if beside and tokens[-1].kind in known.strings else known.string, piece, at, position))
    _join(tokens, known.ids)
    add(Token(0, "", stop, stop))
    return tokens


def _is_body(tokens: list[Token], words: dict[str, int]) -> bool:
    """Whether the body of a function comes next: CREATE or ALTER ... FUNCTION f AS. Elsewhere ``$$x`` is a name."""
    if not tokens or tokens[-1].kind != words["AS"]:
        return False
    semicolon = kinds().semicolon
    statement: list[int] = []
    for token in reversed(tokens):
        if token.kind == semicolon:
            break
        statement.append(token.kind)
    return statement[-1] in (words["CREATE"], words["ALTER"]) and words["FUNCTION"] in statement[-6:]


# What may follow the first letters of a string's prefix; ``-``, ``.`` and ``:`` where it names a character set.
_OPENING = frozenset("'&-.:")


def _prefixed(text: str, at: int, stop: int, tokens: list[Token]) -> int:
    """Note the string that starts with a prefix here, and tell where it ends; 0 where none does."""
    found = re.compile(_PREFIXED).match(text, at, stop)
    if found is None:
        return 0
    known = kinds()
    kind = {"binary": known.binary_string, "unicode": known.unicode_string}.get(found.lastgroup or "")
    tokens.append(Token(kind or known.charset_string, found.group(), at, found.end()))
    return found.end()


def _bad(text: str, position: int, stop: int, tokens: list[Token]) -> int:
    """Note what no token begins with; an opened quote or comment takes the rest of the text with it."""
    opened = text[position] in "'`" or text.startswith("/*", position)
    after = stop if opened else position + 1
    tokens.append(Token(BAD, text[position:after], position, after))
    return after


_ESCAPES = {"FN": "ESCAPE_FN", "D": "ESCAPE_DATE", "T": "ESCAPE_TIME", "TS": "ESCAPE_TIMESTAMP"}


def _join(tokens: list[Token], ids: dict[str, int]) -> None:
    """Replace IF NOT EXISTS and the like by one token each, and mark FINAL before a call."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        upper = token.text.upper() if len(token.text) <= 7 else ""
        if upper == "IF":
            following = [t.text.upper() for t in tokens[index + 1 : index + 3]]
            if following[:1] == ["EXISTS"]:
                _merge(tokens, index, 2, ids["IF_EXISTS"])
            elif following == ["NOT", "EXISTS"]:
                _merge(tokens, index, 3, ids["IF_NOT_EXISTS"])
        elif upper in _JOINED:
            second, name = _JOINED[upper]
            if index + 1 < len(tokens) and tokens[index + 1].text.upper() == second:
                _merge(tokens, index, 2, ids[name])
        elif upper == "{":
            escape = _ESCAPES.get(tokens[index + 1].text.upper()) if index + 1 < len(tokens) else None
            if escape:
                _merge(tokens, index, 2, ids[escape])
        elif (
            upper == "FINAL"
            and index + 2 < len(tokens)
            and tokens[index + 2].text == "("
            and tokens[index + 1].text[0].isalpha()
        ):
            token.kind = ids["FINAL_CALL"]
        index += 1


def _merge(tokens: list[Token], index: int, count: int, kind: int) -> None:
    last = tokens[index + count - 1]
    text = " ".join(token.text for token in tokens[index : index + count])
    tokens[index : index + count] = [Token(kind, text, tokens[index].start, last.end)]


def check_lexical(token: Token) -> None:
    """Raise the clear message where a token of kind ``BAD`` is an unterminated string, name or comment, and for
    ``CONTINUED``.

    Raises:
        ParseError: always for these; returns for any other token.
    """
    if token.kind == CONTINUED:
        raise ParseError(
            "string-continued",
            "SQL parse failed. String literal continued on same line",
            token.span,
            "write it on a line of its own, or || between",
        )
    what = {"'": "string", "`": "quoted name"}.get(token.text[:1])
    if token.text.startswith("/*") and not token.text.startswith("/*+"):
        what = "comment"
    closing = {"string": "'", "quoted name": "`", "comment": "*/"}
    if what is not None and token.kind == BAD:
        place = Span(token.start, token.start + (2 if what == "comment" else 1))
        raise ParseError(
            f"unterminated-{what.replace(' ', '-')}",
            f"SQL parse failed. Unterminated {what}: the closing {closing[what]} is missing.",
            place,
            "it starts here",
        )
