"""Java regular expressions as Python ``re`` patterns, and as RE2 patterns where RE2 means the same.

Differences kept: ``.`` stops at all of Java's line ends, ``\\d \\w \\s \\b`` are ASCII, ``$`` also stands before a
final line end, POSIX classes ``\\p{Alpha}``, possessive quantifiers. A pattern that Java would refuse gives None.
"""

from __future__ import annotations

import re
from functools import lru_cache

from flowsql_compute.eval.java.regex_class import ClassReader, property_class
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record

_DOT_PYTHON = "[^\n\r\u0085\u2028\u2029]"
_DOT_RE2 = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_END_PYTHON = "(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?\\Z)"


@record
class TranslatedPattern:
    """One pattern. ``re2`` is None where RE2 would answer otherwise; ``optional_groups`` may be unset in a match."""

    python: re.Pattern[str]
    re2: str | None
    optional_groups: frozenset[int]

    def group_of(self, text: str, group: int) -> str | None:
        """A group of the first match; None without a match or such a group."""
        if not 0 <= group <= self.python.groups:
            return None
        found = self.python.search(text)
        return None if found is None else found[group]

    def extracting(self, group: int) -> str | None:
        """An RE2 pattern whose group ``g`` is the wanted one, others not captured; None when RE2 can not say it."""
        if self.re2 is None or group in self.optional_groups:
            return None
        if group == 0:
            return f"(?P<g>{_uncaptured(self.re2, 0)})"
        return _uncaptured(self.re2, group)


@lru_cache(maxsize=1024)
def translate_pattern(java: str) -> TranslatedPattern | None:
    """The pattern in both dialects; None when it is malformed."""
    try:
        python, re2 = _Translator(java).run()
        compiled = re.compile(python, re.ASCII)
    except re.error as error:
        if "look-behind" in str(error):
            raise NotSupportedYetError("a look-behind of varying length in a regular expression") from error
        return None
    except (ValueError, OverflowError, IndexError):
        return None
    return TranslatedPattern(compiled, re2, _optional_groups(python))


class _Scope:
    """A group that is open: whether ``.`` matches line ends in it, and what flags inside of it have opened."""

    def __init__(self, dot_all: bool) -> None:
        self.dot_all = dot_all
        self.opened: list[str] = []


class _Translator:
    def __init__(self, java: str) -> None:
        self.java = java
        self.place = 0
        self.python: list[str] = []
        self.re2: list[str] = []
        self.re2_fits = True
        self.scopes = [_Scope(False)]

    def run(self) -> tuple[str, str | None]:
        while self.place < len(self.java):
            self._one()
        if len(self.scopes) > 1:
            raise ValueError("open group")
        closing = ")" * len(self.scopes[0].opened)
        self._put(closing, closing)
        return "".join(self.python), "".join(self.re2) if self.re2_fits else None

    def _put(self, python: str, re2: str | None) -> None:
        self.python.append(python)
        if re2 is None:
            self.re2_fits = False
        else:
            self.re2.append(re2)

    def _one(self) -> None:
        character = self.java[self.place]
        match character:
            case "\\":
                self._escape()
                return
            case "[":
                self._class()
                return
            case ".":
                whole = self.scopes[-1].dot_all
                self._put("(?s:.)" if whole else _DOT_PYTHON, "(?s:.)" if whole else _DOT_RE2)
            case "$":
                self._put(_END_PYTHON, None)
            case "(":
                self._group()
                return
            case ")":
                self._close()
                return
            case "|":
                self._branch()
                return
            case "*" | "+" | "?" | "}":
                # A possessive quantifier is an atomic group, which RE2 lacks.
                possessive = self.java[self.place + 1 : self.place + 2] == "+" and character != "}"
                self._put(character, None if possessive else character)
            case _:
                self._put(character, character)
        self.place += 1

    def _group(self) -> None:
        rest = self.java[self.place :]
        flags = re.match(r"\(\?([imsxdu]*)(-[imsxdu]+)?([:)])", rest)
        if flags is not None:
            self._flags(flags)
            return
        self.scopes.append(_Scope(self.scopes[-1].dot_all))
        named = re.match(r"\(\?<([A-Za-z][A-Za-z0-9]*)>", rest)
        if not rest.startswith("(?"):
            self._put("(", "(")
            self.place += 1
        elif named is not None:
            self._put(f"(?P<{named[1]}>", f"(?P<{named[1]}>")
            self.place += named.end()
        else:
            look = re.match(r"\(\?(?:[=!]|<[=!]|>)", rest)
            if look is None:
                raise ValueError("unknown group")
            self._put(look[0], None)
            self.place += look.end()

    def _flags(self, flags: re.Match[str]) -> None:
        """Flags for a group, or for what follows up to the end of the group around them."""
        on, off = flags[1], (flags[2] or "").lstrip("-")
        for flag in "xdu":
            if flag in on:
                raise NotSupportedYetError(f"(?{flag}) in a regular expression")
        off = off.replace("x", "").replace("d", "").replace("u", "")
        outer = self.scopes[-1].dot_all
        inner = "s" in on or (outer and "s" not in off)
        kept = on.replace("s", "") + ("-" + off.replace("s", "") if off.replace("s", "") else "")
        opening = f"(?{kept}:" if kept.strip("-") else "(?:"
        # RE2 reads (?m) otherwise, and (?i) knows fewer pairs of letters.
        self._put(opening, None if "m" in kept else opening)
        if flags[3] == ":":
            self.scopes.append(_Scope(inner))
        else:
            self.scopes[-1].dot_all = inner
            self.scopes[-1].opened.append(opening)
        self.place += flags.end()

    def _close(self) -> None:
        """The end of a group, and before it of what flags inside of it began."""
        if len(self.scopes) == 1:
            raise ValueError("unmatched bracket")
        closing = ")" * (1 + len(self.scopes.pop().opened))
        self._put(closing, closing)
        self.place += 1

    def _branch(self) -> None:
        """``|``: flags set before it hold behind it too."""
        opened = self.scopes[-1].opened
        text = f"{')' * len(opened)}|{''.join(opened)}"
        self._put(text, text)
        self.place += 1

    def _escape(self) -> None:
        following = self.java[self.place + 1]
        self.place += 2
        match following:
            case "d" | "D" | "w" | "W" | "n" | "t" | "r" | "f" | "a":
                self._put(f"\\{following}", f"\\{following}")
            case "s":
                self._put(r"[ \t\n\x0b\f\r]", r"[ \t\n\x0b\f\r]")
            case "S":
                self._put(r"[^ \t\n\x0b\f\r]", r"[^ \t\n\x0b\f\r]")
            case "h":
                self._put("[ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]", None)
            case "R":
                self._put("(?:\r\n|[\n\x0b\f\r\u0085\u2028\u2029])", None)
            case "b" | "B":
                self._put(f"\\{following}", f"\\{following}")
            case "A":
                self._put(r"\A", r"\A")
            case "z":
                self._put(r"\Z", r"\z")
            case "Z":
                self._put(_END_PYTHON, None)
            case "Q":
                end = self.java.find("\\E", self.place)
                end = len(self.java) if end < 0 else end
                for character in self.java[self.place : end]:
                    self._put(re.escape(character), re.escape(character))
                self.place = end + 2
            case "p" | "P":
                self._property(following == "P")
            case "x" | "u":
                self._code(following)
            case "k":
                named = re.match(r"<(\w+)>", self.java[self.place :])
                if named is None:
                    raise ValueError("bad group name")
                self._put(f"(?P={named[1]})", None)
                self.place += named.end()
            case _ if following.isdigit():
                self._put(f"\\{following}", None)
            case _ if following.isalpha():
                raise ValueError("unknown escape")
            case _:
                self._put(re.escape(following), re.escape(following))

    def _property(self, negated: bool) -> None:
        reader = ClassReader(self.java, self.place)
        made = property_class(reader.property_name(), negated)
        self._put(made.python, made.re2)
        self.place = reader.place

    def _code(self, kind: str) -> None:
        reader = ClassReader(self.java, self.place)
        character = reader.code(kind)
        self.place = reader.place
        self._put(re.escape(character), f"\\x{{{ord(character):x}}}")

    def _class(self) -> None:
        reader = ClassReader(self.java, self.place)
        made = reader.read()
        self._put(made.python, made.re2)
        self.place = reader.place


def _optional_groups(python: str) -> frozenset[int]:
    """Groups under an alternative or a quantifier that allows zero: unset in some matches, where RE2 says ''."""
    optional: set[int] = set()
    open_groups: list[tuple[int, bool, int]] = []
    count = 0
    place = 0
    branching: list[set[int]] = [set()]
    in_class = False
    alternatives = [False]
    while place < len(python):
        character = python[place]
        if character == "\\":
            place += 2
            continue
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            # A bracket right behind the opening one (or its ^) is a character.
            place += 1 + (python[place + 1 : place + 2] == "^")
            place += python[place : place + 1] == "]"
            continue
        elif character == "(":
            captures = not python.startswith("(?", place) or python.startswith("(?P<", place)
            count += captures
            open_groups.append((count if captures else 0, captures, place))
            branching.append(set())
            alternatives.append(False)
        elif character == "|":
            alternatives[-1] = True
        elif character == ")":
            number, captures, _ = open_groups.pop()
            inner = branching.pop()
            if alternatives.pop():
                optional |= inner
            following = python[place + 1 : place + 3]
            mine = inner | ({number} if captures else set())
            if following[:1] in ("?", "*") or following[:2] in ("{0", "{,"):
                optional |= mine
            branching[-1] |= mine
        place += 1
    if alternatives[0]:
        optional |= branching[0]
    return frozenset(optional)


def _uncaptured(re2: str, keep: int) -> str:
    """The pattern with only group ``keep`` captured, under the name ``g``."""
    made: list[str] = []
    count = place = 0
    in_class = False
    while place < len(re2):
        character = re2[place]
        if character == "\\":
            made.append(re2[place : place + 2])
            place += 2
            continue
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            lead = 1 + (re2[place + 1 : place + 2] == "^")
            lead += re2[place + lead : place + lead + 1] == "]"
            made.append(re2[place : place + lead])
            place += lead
            continue
        elif character == "(":
            named = re.match(r"\(\?P<\w+>", re2[place:])
            if named is not None or not re2.startswith("(?", place):
                count += 1
                made.append("(?P<g>" if count == keep else "(?:")
                place += named.end() if named is not None else 1
                continue
        made.append(character)
        place += 1
    return "".join(made)
