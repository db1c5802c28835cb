"""Java's regular expressions as trees, read as ``java.util.regex.Pattern`` of Java 17 reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from flowsql_compute.eval.java.code_points import CodePoints, of_text
from flowsql_compute.eval.java.regex_class import (
    EVERY,
    LINE_ENDS,
    ClassReader,
    Escapes,
    Flags,
    property_set,
    shorthand,
    single,
)
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record

#: ``begin`` ``\\A``, ``end`` ``\\z``, ``last`` ``\\Z`` and ``$``, ``line`` and ``line_end`` ``^`` and ``$`` with
#: ``(?m)``, ``next`` ``\\G``, ``bound`` and ``inner`` ``\\b`` and ``\\B``.
PlaceKind = Literal["begin", "end", "last", "line", "line_end", "next", "bound", "inner"]


@record
class One:
    """One code point of a set."""

    members: CodePoints


@record
class Many:
    """One node after another."""

    nodes: tuple[Node, ...]


@record
class Either:
    """Alternatives, the first one that leads to a match."""

    nodes: tuple[Node, ...]


@record
class Repeat:
    """A node ``low`` to ``high`` times (None: without an end). ``kind``: empty, ``?`` or ``+`` as it is written."""

    node: Node
    low: int
    high: int | None
    kind: str


@record
class Group:
    """A group that captures, counted from 1."""

    number: int
    node: Node


@record
class Look:
    """What comes, or came before, and is not taken."""

    ahead: bool
    negated: bool
    node: Node


@record
class Atomic:
    """A node whose first way to match is its only one."""

    node: Node


@record
class Place:
    """A place between characters."""

    kind: PlaceKind
    flags: Flags


@record
class Same:
    """The text of a group once more; of a group that there is not, nothing matches."""

    number: int
    flags: Flags


@record
class Cluster:
    """``\\X``: what a reader takes for one character. ``\\R``: an end of a line."""

    letter: str


Node = One | Many | Either | Repeat | Group | Look | Atomic | Place | Same | Cluster

_MOST_TIMES: Final = 2**31 - 1
_FLAGS: Final = {
    "i": "ignore_case", "u": "unicode_case", "U": "unicode", "d": "unix_lines", "m": "multiline", "s": "dot_all",
    "x": "comments",
}  # fmt: skip
_SPACE: Final = re.compile(r"(?:[ \t-\r]|#[^\n\r\x85\u2028\u2029]*)*")


@record
class Parsed:
    """A pattern: its tree and how many groups it has."""

    node: Node
    groups: int


def parse_pattern(java: str) -> Parsed:
    """Return the tree of a pattern.

    Raises:
        ValueError, IndexError: Java refuses it.
        NotSupportedYetError: it has what is not known here.
    """
    parser = _Parser(_without_quotes(java))
    node = parser.alternatives()
    if parser.place < len(parser.java):
        raise ValueError("unmatched bracket")
    return Parsed(node, parser.groups)


def _without_quotes(java: str) -> str:
    """The pattern with each character between ``\\Q`` and ``\\E`` escaped on its own."""
    made: list[str] = []
    place = 0
    while (start := java.find("\\Q", place)) >= 0:
        # A backslash before it may be escaped itself.
        backslashes = len(java[place:start]) - len(java[place:start].rstrip("\\"))
        if backslashes % 2:
            made.append(java[place : start + 2])
            place = start + 2
            continue
        made.append(java[place:start])
        end = java.find("\\E", start + 2)
        quoted = java[start + 2 :] if end < 0 else java[start + 2 : end]
        made += [f"\\x{{{ord(letter):x}}}" if letter.isascii() else letter for letter in quoted]
        place = len(java) if end < 0 else end + 2
    return "".join(made) + java[place:]


class _Parser(Escapes):
    def __init__(self, java: str) -> None:
        super().__init__(java)
        self.flags = Flags()
        self.groups = 0
        self.names: dict[str, int] = {}

    def alternatives(self) -> Node:
        """Sequences between bars, up to a closing bracket."""
        found = [self._sequence()]
        while self._next() == "|":
            self.place += 1
            found.append(self._sequence())
        return found[0] if len(found) == 1 else Either(tuple(found))

    def _next(self) -> str:
        """The next character that counts."""
        if self.flags.comments:
            passed = _SPACE.match(self.java, self.place)
            assert passed is not None
            self.place = passed.end()
        return self.peek()

    def _sequence(self) -> Node:
        made: list[Node] = []
        while (letter := self._next()) not in ("", "|", ")"):
            if letter in "?*+":
                raise ValueError("dangling meta character")
            node = self._atom(letter)
            if node is not None:
                made.append(self._repeated(node))
        return made[0] if len(made) == 1 else Many(tuple(made))

    def _atom(self, letter: str) -> Node | None:
        """One node without what repeats it; None: flags for what follows."""
        if letter == "{":
            # Java repeats what is not there.
            return Many(())
        self.place += 1
        match letter:
            case "(":
                return self._group()
            case "[":
                reader = ClassReader(self.java, self.place, self.flags)
                members = reader.read()
                self.place = reader.place
                return One(members)
            case "\\":
                return self._escape()
            case "^":
                return Place("line" if self.flags.multiline else "begin", self.flags)
            case "$":
                return Place("line_end" if self.flags.multiline else "last", self.flags)
            case ".":
                if self.flags.dot_all:
                    return One(EVERY)
                return One(~(of_text("\n") if self.flags.unix_lines else LINE_ENDS))
        return One(single(ord(letter), self.flags))

    def _repeated(self, node: Node) -> Node:
        letter = self._next()
        if letter not in ("?", "*", "+", "{"):
            return node
        self.place += 1
        low, high = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(letter) or self._bounds()
        kind = self._next()
        if kind not in ("?", "+"):
            return Repeat(node, low, high, "")
        self.place += 1
        return Repeat(node, low, high, kind)

    def _bounds(self) -> tuple[int, int | None]:
        found = re.compile(r"([0-9]+)(,([0-9]*))?\}").match(self.java, self.place)
        if found is None:
            raise ValueError("illegal repetition")
        self.place = found.end()
        low = int(found[1])
        high = low if found[2] is None else int(found[3]) if found[3] else None
        if max(low, high or 0) > _MOST_TIMES or (high is not None and high < low):
            raise ValueError("illegal repetition range")
        return low, high

    def _group(self) -> Node | None:
        if self.peek() != "?":
            self.groups += 1
            return Group(self.groups, self._inside(self.flags))
        self.place += 1
        for opening, make in _OPENINGS:
            if self.java.startswith(opening, self.place):
                self.place += len(opening)
                inside = self._inside(self.flags)
                return inside if make is None else make(inside)
        if (named := re.compile(r"<([A-Za-z][A-Za-z0-9]*)>").match(self.java, self.place)) is not None:
            if named[1] in self.names:
                raise ValueError("a name twice")
            self.groups += 1
            self.names[named[1]] = number = self.groups
            self.place = named.end()
            return Group(number, self._inside(self.flags))
        flags = re.compile(r"([imsxduU]*)(?:-([imsxduU]*))?([:)])").match(self.java, self.place)
        if flags is None:
            raise ValueError("unknown group")
        self.place = flags.end()
        inner = replace(self.flags, **{_FLAGS[flag]: True for flag in flags[1]})
        if "U" in flags[1]:
            inner = replace(inner, unicode_case=True)
        off = {_FLAGS[flag]: False for flag in flags[2] or ""}
        if "U" in (flags[2] or ""):
            off["unicode_case"] = False
        inner = replace(inner, **off)
        if flags[3] == ":":
            return self._inside(inner)
        self.flags = inner
        return None

    def _inside(self, flags: Flags) -> Node:
        outer, self.flags = self.flags, flags
        node = self.alternatives()
        if self._next() != ")":
            raise ValueError("open group")
        self.place += 1
        self.flags = outer
        return node

    def _escape(self) -> Node:
        letter = self.java[self.place]
        self.place += 1
        match letter:
            case "d" | "D" | "w" | "W" | "s" | "S" | "h" | "H" | "v" | "V":
                return One(shorthand(letter, self.flags))
            case "p" | "P":
                found = property_set(self.property_name(), self.flags)
                return One(found if letter == "p" else ~found)
            case "A":
                return Place("begin", self.flags)
            case "z":
                return Place("end", self.flags)
            case "Z":
                return Place("last", self.flags)
            case "G":
                return Place("next", self.flags)
            case "b" if self.java.startswith("{g}", self.place):
                raise NotSupportedYetError("\\b{g} in a regular expression")
            case "b" | "B":
                return Place("bound" if letter == "b" else "inner", self.flags)
            case "R" | "X":
                return Cluster(letter)
            case "k":
                return self._named_group()
            case "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9":
                return self._numbered_group(int(letter))
        code = self.code(letter)
        if code is None:
            raise ValueError("illegal escape")
        return One(single(code, self.flags))

    def _named_group(self) -> Node:
        found = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>").match(self.java, self.place)
        if found is None or found[1] not in self.names:
            raise ValueError("unknown group")
        self.place = found.end()
        return Same(self.names[found[1]], self.flags)

    def _numbered_group(self, number: int) -> Node:
        while (digit := self.peek()).isascii() and digit.isdigit() and number * 10 + int(digit) <= self.groups:
            number = number * 10 + int(digit)
            self.place += 1
        return Same(number, self.flags)


_OPENINGS: Final = (
    (":", None),
    ("=", lambda node: Look(True, False, node)),
    ("!", lambda node: Look(True, True, node)),
    ("<=", lambda node: Look(False, False, node)),
    ("<!", lambda node: Look(False, True, node)),
    (">", Atomic),
)


# What trees say


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below."""
    match node:
        case Many(nodes=nodes) | Either(nodes=nodes):
            return nodes
        case Repeat(node=inner) | Group(node=inner) | Look(node=inner) | Atomic(node=inner):
            return (inner,)
    return ()


def all_nodes(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for inner in children(node):
        yield from all_nodes(inner)


def may_be_empty(node: Node) -> bool:
    """True if the node may match without taking a character."""
    match node:
        case One():
            return False
        case Many(nodes=nodes):
            return all(map(may_be_empty, nodes))
        case Either(nodes=nodes):
            return any(map(may_be_empty, nodes))
        case Repeat(node=inner, low=low):
            return low == 0 or may_be_empty(inner)
        case Group(node=inner) | Atomic(node=inner):
            return may_be_empty(inner)
        case Cluster():
            return False
    return True
