"""The front door: scripts to pieces, pieces to statements, texts to expressions and types."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flowsql_core.errors import ParseError
from flowsql_core.span import Source, Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import BAD, Token, kinds, tokenize
from flowsql_grammar.parser import parse_tokens

# Flink's client takes these bare forms by pattern, before its grammar.
_BARE_SET = re.compile(r"(?is)set\s+(?P<key>[^'\s]+)\s*=\s*(?P<value>'[^']*'|[^;\s]+)")
_BARE_RESET = re.compile(r"(?is)reset\s+(?P<key>[^'\s]+)")
_COMMANDS = {
    "QUIT": ast.ClientCommandKind.QUIT,
    "EXIT": ast.ClientCommandKind.QUIT,
    "CLEAR": ast.ClientCommandKind.CLEAR,
    "HELP": ast.ClientCommandKind.HELP,
}


def split_statements(source: Source | str) -> tuple[Span, ...]:
    """Where each statement of a script stands, without its ``;``, blanks and comments around it.

    Never fails: what is broken is a piece too, and parsing it tells what is wrong. Statement sets stay whole.

    >>> [str(span.start) for span in split_statements("SELECT ';' ; SELECT 2")]
    ['0', '13']
    """
    text = _source(source)
    return tuple(Span(piece[0].start, piece[-1].end) for piece in _pieces(tokenize(text)))


def is_complete(source: Source | str) -> bool:
    """Whether a text typed so far ends with the ``;`` of a statement: the shell asks before it submits.

    An opened string, comment or statement set is not complete.
    """
    return all(ended for _, ended in _cut(tokenize(_source(source))))


def first_statement(source: Source, start: int) -> Span:
    """Where the first statement behind a place stands, without its ``;``; empty where there is none."""
    for piece, _ in _cut(tokenize(source, start)):
        return Span(piece[0].start, piece[-1].end)
    return Span(start, start)


def unfinished(text: str) -> list[Token]:
    """The tokens of the last statement of a text, if no ``;`` ends it."""
    last: list[Token] = []
    for piece, ended in _cut(tokenize(Source(text))):
        last = [] if ended else piece
    return last


def parse_script(source: Source | str) -> tuple[ast.Statement, ...]:
    """All statements of a script.

    Raises:
        ParseError: at the first one that is not Flink SQL.
    """
    text = _source(source)
    return tuple(_statement(text, piece) for piece in _pieces(tokenize(text)))


def parse_statement(source: Source | str, within: Span | None = None) -> ast.Statement:
    """The one statement of a text, or of the part ``within`` (as :func:`split_statements` gives it).

    A ``;`` may end it. Spans count from the start of the whole text.

    Raises:
        ParseError: no statement, more than one, or not Flink SQL.
    """
    text = _source(source)
    place = within or Span(0, len(text.text))
    pieces = list(_pieces(tokenize(text, place.start, place.end)))
    if not pieces:
        raise ParseError("empty", "SQL parse failed. There is no statement.", place).within(text)
    if len(pieces) > 1:
        raise ParseError(
            "several-statements",
            "SQL parse failed. Only one statement is expected here.",
            Span(pieces[1][0].start, pieces[1][-1].end),
        ).within(text)
    return _statement(text, pieces[0])


def parse_expression(source: Source | str) -> ast.Expression:
    """An expression on its own.

    Raises:
        ParseError: not a Flink SQL expression.
    """
    text = _source(source)
    tokens = tokenize(text)
    tree: ast.Expression = parse_tokens(tokens, text, "expr")
    _check_defaults(tree, tokens, text)
    return tree


def parse_type(source: Source | str) -> ast.TypeSpec:
    """A data type on its own, NULL and NOT NULL allowed.

    Raises:
        ParseError: not a Flink SQL data type.
    """
    text = _source(source)
    tree: ast.TypeSpec = parse_tokens(tokenize(text), text, "null_type")
    return tree


def _source(source: Source | str) -> Source:
    return Source(source) if isinstance(source, str) else source


def _pieces(tokens: list[Token]) -> Iterator[list[Token]]:
    return (piece for piece, _ in _cut(tokens))


def _cut(tokens: list[Token]) -> Iterator[tuple[list[Token], bool]]:
    """Runs of tokens between the ``;`` that end statements, and whether one did; empty ones are left out."""
    return ((piece, ended) for piece, _, ended in cut(tokens) if piece)


def cut(tokens: list[Token]) -> Iterator[tuple[list[Token], Token | None, bool]]:
    """Runs of tokens between the ``;`` that end statements, the ``;`` behind each, and whether it is complete.

    A ``;`` with nothing before it ends an empty run.
    """
    semicolon = kinds().semicolon
    piece: list[Token] = []
    in_set = False
    for token in tokens[:-1]:
        if token.kind == semicolon:
            if in_set and not (len(piece) > 1 and piece[-1].text.upper() == "END" and piece[-2].kind == semicolon):
                piece.append(token)
                continue
            yield piece, token, True
            piece, in_set = [], False
            continue
        piece.append(token)
        if not in_set and len(piece) >= 3 and token.text.upper() in ("SET", "BEGIN"):
            last = [t.text.upper() for t in piece[-3:]]
            in_set = last == ["STATEMENT", "SET", "BEGIN"] or (
                len(piece) == 3 and last == ["BEGIN", "STATEMENT", "SET"]
            )
    if piece:
        behind: list[Token] = []
        while piece[-1].kind == semicolon:
            behind.insert(0, piece.pop())
        yield piece, behind[0] if behind else None, False
        for token in behind[1:]:
            yield [], token, True


def _statement(source: Source, piece: list[Token]) -> ast.Statement:
    first, last = piece[0], piece[-1]
    span = Span(first.start, last.end)
    word = first.text.upper()
    if word in _COMMANDS and len(piece) == 1:
        return ast.ClientCommand(_COMMANDS[word], span=span)
    bare = bare_words(source, piece)
    if bare is not None:
        if word == "RESET":
            return ast.Reset(bare[1], span=span)
        quoted = re.fullmatch(r"'([^']*)'", bare[3])
        return ast.Set(bare[1], quoted[1] if quoted else bare[3], span=span)
    tokens = [*piece, Token(0, "", last.end, last.end)]
    tree: ast.Statement = parse_tokens(tokens, source, "statement")
    _check_defaults(tree, tokens, source)
    return tree


def bare_words(source: Source, piece: list[Token]) -> tuple[str, ...] | None:
    """The words of a SET or RESET without quotes around the key, which Flink's client takes before its grammar does."""
    first, last = piece[0], piece[-1]
    word = first.text.upper()
    if word not in ("SET", "RESET") or len(piece) == 1 or piece[1].kind == kinds().string:
        return None
    text = source.text[first.start : last.end]
    if found := _BARE_SET.fullmatch(text):
        return word, found["key"], "=", found["value"]
    if found := _BARE_RESET.fullmatch(text):
        return word, found["key"]
    return None


def _check_defaults(tree: ast.Node, tokens: list[Token], source: Source) -> None:
    """DEFAULT stands for an argument or a value of a row, and nowhere inside an expression."""
    default = kinds().words["DEFAULT"]
    if not any(token.kind == default for token in tokens):
        return
    allowed: set[int] = set()
    for node in tree.walk():
        match node:
            case ast.FunctionCall(args=args):
                allowed.update(id(arg) for arg in args)
            case ast.NamedArgument(value=value):
                allowed.add(id(value))
            case ast.Values(rows=rows):
                allowed.update(id(value) for row in rows for value in row)
            case ast.MergeInsert(values=values):
                allowed.update(id(value) for value in values)
            case ast.DefaultValue() if id(node) not in allowed:
                word = source.text[node.span.start : node.span.end]
                raise ParseError(
                    "misplaced-default",
                    "SQL parse failed. DEFAULT stands only for an argument of a function or a value of VALUES.",
                    node.span,
                    f"DEFAULT is a reserved word: as a name it is written `{word}`",
                ).within(source)


def highlight(text: str) -> list[tuple[str, Span]]:
    """The tokens of a text with their classes, for shells: keyword, name, string, number, operator, error."""
    known = kinds()
    strings = {known.string, known.charset_string, known.unicode_string, known.binary_string}
    numbers = {known.integer, known.decimal, known.approximate}
    words = set(known.words.values())
    found: list[tuple[str, Span]] = []
    for token in tokenize(Source(text))[:-1]:
        if token.kind in words or (" " in token.text[:12] and token.text[:1].isalpha() and token.kind not in strings):
            label = "keyword"
        elif token.kind in strings:
            label = "string"
        elif token.kind in numbers:
            label = "number"
        elif token.kind in (known.ident, known.quoted):
            label = "name"
        elif token.kind == BAD:
            label = "error"
        else:
            label = "operator"
        found.append((label, token.span))
    return found
