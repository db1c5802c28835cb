"""Colours of statements: tokens of the grammar, and Flink's nine schemes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

#: By the name of the scheme: colours of keywords, strings, quoted names, numbers, comments and hints.
SCHEMES: Final[dict[str, tuple[str, str, str, str, str, str] | None]] = {
    "DEFAULT": None,
    "DARK": ("bold ansibrightblue", "ansigreen", "ansicyan", "ansimagenta", "italic ansibrightblack", "ansiyellow"),
    "LIGHT": ("bold ansired", "ansigreen", "ansicyan", "ansimagenta", "italic ansibrightblack", "ansiyellow"),
    "CHESTER": ("bold #2a5db0", "#db8b0b", "#1d6b9e", "#a31515", "italic #7a8a99", "bold #3f9e4d"),
    "DRACULA": ("bold #ff79c6", "#f1fa8c", "#8be9fd", "#bd93f9", "italic #6272a4", "#50fa7b"),
    "SOLARIZED": ("bold #859900", "#2aa198", "#268bd2", "#d33682", "italic #93a1a1", "#cb4b16"),
    "VS2010": ("bold #569cd6", "#d69d85", "#4ec9b0", "#b5cea8", "italic #57a64a", "#c8c8c8"),
    "OBSIDIAN": ("bold #93c763", "#ec7600", "#678cb1", "#ffcd22", "italic #818e96", "#a082bd"),
    "GESHI": ("bold #993333", "#ff0000", "#008080", "#cc66cc", "italic #808080", "#0000ff"),
}

_COMMENT: Final = re.compile(r"--[^\r\n]*|//[^\r\n]*|/\*(?!\+)(?s:.*?)(?:\*/|$)")


@cache
def style_of(scheme: str) -> Style:
    """The colours of a scheme."""
    colors = SCHEMES[scheme]
    rules = {"continuation": "ansibrightblack"}
    if colors is not None:
        keyword, string, name, number, comment, hint = colors
        rules |= {
            "sql.keyword": keyword, "sql.string": string, "sql.quoted": name, "sql.number": number,
            "sql.comment": comment, "sql.hint": hint, "sql.error": "ansired",
        }  # fmt: skip
    return Style.from_dict(rules)


def classified(text: str) -> Iterator[tuple[str, int, int]]:
    """Class, start and end of each token and comment of a text, in order; blanks are left out."""
    from flowsql_grammar.script import highlight

    position, in_hint = 0, False
    for label, span in highlight(text):
        for comment in _COMMENT.finditer(text, position, span.start):
            yield "comment", comment.start(), comment.end()
        piece = text[span.start : span.end]
        if piece == "/*+":
            in_hint = True
        if in_hint:
            label = "hint"
        elif label == "error" and piece.startswith("/*"):
            label = "comment"
        elif label == "error" and piece.startswith("'"):
            label = "string"
        elif label == "name" and piece.startswith("`"):
            label = "quoted"
        if piece == "*/":
            in_hint = False
        yield label, span.start, span.end
        position = span.end
    for comment in _COMMENT.finditer(text, position):
        yield "comment", comment.start(), comment.end()


class SqlLexer(Lexer):
    """Colours what is typed. ``is_ready``: whether the grammar is loaded; before, nothing is coloured."""

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self._is_ready = is_ready

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The pieces of each line."""
        lines = document.lines
        if not self._is_ready() or document.text.lstrip().startswith("\\"):
            return lambda number: [("", lines[number])]
        colored = _lines(document.text)
        return lambda number: colored[number] if number < len(colored) else []


def _lines(text: str) -> list[StyleAndTextTuples]:
    """The text in lines, each in pieces of one class."""
    pieces: StyleAndTextTuples = []
    position = 0
    for label, start, end in classified(text):
        if start > position:
            pieces.append(("", text[position:start]))
        pieces.append((f"class:sql.{label}", text[start:end]))
        position = end
    pieces.append(("", text[position:]))
    lines: list[StyleAndTextTuples] = [[]]
    for style, piece, *_ in pieces:
        first, *rest = piece.split("\n")
        lines[-1].append((style, first))
        lines += [[(style, line)] for line in rest]
    return lines
