"""``-- flowsql: ignore[rule, ...]``: comments that switch rules off, for a line, a statement or a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from flowsql_core.errors import did_you_mean
from flowsql_core.record import record
from flowsql_core.span import Source, Span
from flowsql_grammar import split_statements
from flowsql_grammar.lexer import tokenize
from flowsql_planner.lint.model import Finding

_COMMENT: Final = re.compile(r"--[^\n]*")
_SWITCH: Final = re.compile(r"--\s*flowsql:\s*(?P<word>[\w-]+)\s*(?:\[(?P<names>[^\]\n]*)\])?")
#: The rule that the linter itself finds.
UNKNOWN_RULE: Final = "unknown-rule"
_REASON: Final = "a comment that switches off what does not exist switches nothing off"


@record
class Switch:
    """Rules (``names``; none: all) that are off for findings that begin in ``[start, end)``."""

    names: frozenset[str]
    start: int
    end: int

    def covers(self, finding: Finding) -> bool:
        """Whether the finding is switched off."""
        inside = self.start <= finding.span.start < self.end
        return inside and (not self.names or finding.rule in self.names)


def switches(source: Source, known: Sequence[str]) -> tuple[list[Switch], list[Finding]]:
    """The switches of a script, and what is wrong with their words."""
    found: list[Switch] = []
    wrong: list[Finding] = []
    statements = split_statements(source)
    for comment in _comments(source):
        match = _SWITCH.match(source.text, comment.start, comment.end)
        if match is None:
            continue
        if match["word"] not in ("ignore", "ignore-file"):
            place, hint = Span(*match.span("word")), "write ignore[rule] or ignore-file[rule]"
            message = f"'flowsql: {match['word']}' is no switch of the linter."
            wrong.append(Finding(UNKNOWN_RULE, place, message, _REASON, hint, source))
            continue
        names = []
        for name, place in _names(match):
            if name in known:
                names.append(name)
                continue
            hint = did_you_mean(name, known) or "'flowsql lint --rules' lists them"
            wrong.append(Finding(UNKNOWN_RULE, place, f"There is no rule '{name}'.", _REASON, hint, source))
        if match["names"] is None or names:
            whole = match["word"] == "ignore-file"
            start, end = (0, len(source.text) + 1) if whole else _reach(source, comment, statements)
            found.append(Switch(frozenset(names), start, end))
    return found, wrong


def _names(match: re.Match[str]) -> Iterator[tuple[str, Span]]:
    if match["names"] is None:
        return
    start = match.start("names")
    for word in re.finditer(r"[^\s,]+", match["names"]):
        yield word[0], Span(start + word.start(), start + word.end())


def _comments(source: Source) -> Iterator[Span]:
    """Comments from ``--`` to the end of their lines; those in ``/* */`` are none."""
    end = 0
    for token in tokenize(source):
        between = re.sub(r"(?s)/\*.*?\*/", lambda block: " " * len(block[0]), source.text[end : token.start])
        for found in _COMMENT.finditer(between):
            yield Span(end + found.start(), end + found.end())
        end = token.end


def _reach(source: Source, comment: Span, statements: Sequence[Span]) -> tuple[int, int]:
    """The line of the comment; if nothing else stands there, the statement behind it, or in a statement its next line.

    Several comments may stand one below the other.
    """
    text = source.text
    line = text.rfind("\n", 0, comment.start) + 1
    if text[line : comment.start].strip():
        return line, comment.end
    within = next((each for each in statements if each.start <= comment.start < each.end), None)
    if within is None:
        behind = next((each for each in statements if each.start >= comment.end), None)
        return (behind.start, behind.end) if behind is not None else (comment.start, comment.end)
    position = comment.end + 1
    while text[position:].lstrip(" \t").startswith("--"):
        position = text.find("\n", position) + 1 or len(text)
    end = text.find("\n", position)
    return position, len(text) if end < 0 else end
