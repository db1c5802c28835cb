"""Names and strings as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from flowsql_grammar import ast
from flowsql_grammar.lexer import kinds
from flowsql_grammar.reserved import FUNCTION_WORDS, RESERVED

_PLAIN = re.compile(r"[^\W\d]\w*")


def name(node: ast.Name) -> str:
    """A name, between back-ticks unless it is a plain word that is no keyword."""
    upper = node.text.upper()
    if _PLAIN.fullmatch(node.text) and upper not in RESERVED and upper not in kinds().words:
        return node.text
    return quoted(node.text)


def quoted(text: str) -> str:
    """A name between back-ticks."""
    return "`" + text.replace("`", "``") + "`"


def path(node: ast.Identifier) -> str:
    """A dotted path, or the name of a file."""
    if isinstance(node, ast.FileName):
        return string(node.last.text)
    return ".".join(name(part) for part in node.parts)


def function(node: ast.Identifier) -> str:
    """The name of a function: keywords stay bare, as ``` `IF` ``` would be another function than ``IF``."""
    if len(node.parts) == 1 and not node.last.quoted:
        upper = node.last.text.upper()
        if _PLAIN.fullmatch(node.last.text) and (upper not in RESERVED or upper in FUNCTION_WORDS | _SPECIAL):
            return node.last.text
    return path(node)


_SPECIAL = frozenset({"ARRAY", "MAP", "CEIL", "CONVERT", "TRANSLATE"})


def names(nodes: Iterable[ast.Name]) -> str:
    """Names with commas between, in brackets."""
    return "(" + ", ".join(name(node) for node in nodes) + ")"


def string(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def words(*parts: str | None) -> str:
    """The parts that are there, with blanks between."""
    return " ".join(part for part in parts if part)
