"""Java regular expressions as Python ``re`` patterns, and as RE2 patterns where RE2 means the same.

Differences kept: ``.`` stops at all of Java's line ends, ``\\d \\w \\s \\b`` are ASCII, ``$`` also stands before a
final line end, POSIX classes ``\\p{Alpha}``, possessive quantifiers. A pattern that Java would refuse gives None.
"""

from __future__ import annotations

import re
from functools import lru_cache

from flowsql_core.record import record

_POSIX = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~", "Space": r" \t\n\x0b\f\r", "XDigit": "0-9a-fA-F",
    "Blank": r" \t", "Cntrl": r"\x00-\x1f\x7f",
    "Graph": "!-~", "Print": " -~", "ASCII": r"\x00-\x7f", "IsDigit": "0-9", "IsAlphabetic": "a-zA-Z",
}  # fmt: skip
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
    except (re.error, ValueError, OverflowError, IndexError):
        return None
    return TranslatedPattern(compiled, re2, _optional_groups(python))


class _Translator:
    def __init__(self, java: str) -> None:
        self.java = java
        self.place = 0
        self.python: list[str] = []
        self.re2: list[str] = []
        self.re2_fits = True
        self.dot_all = False

    def run(self) -> tuple[str, str | None]:
        while self.place < len(self.java):
            self._one()
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
                self._put("(?s:.)" if self.dot_all else _DOT_PYTHON, "(?s:.)" if self.dot_all else _DOT_RE2)
            case "$":
                self._put(_END_PYTHON, None)
            case "(":
                self._group()
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
        if not rest.startswith("(?"):
            self._put("(", "(")
            self.place += 1
            return
        if rest.startswith("(?:"):
            self._put("(?:", "(?:")
            self.place += 3
            return
        named = re.match(r"\(\?<([A-Za-z][A-Za-z0-9]*)>", rest)
        if named is not None:
            self._put(f"(?P<{named[1]}>", f"(?P<{named[1]}>")
            self.place += named.end()
            return
        flags = re.match(r"\(\?([imsx]*)(-[imsx]+)?([:)])", rest)
        if flags is not None:
            self._flags(flags)
            return
        look = re.match(r"\(\?(?:[=!]|<[=!]|>)", rest)
        if look is None:
            raise ValueError("unknown group")
        self._put(look[0], None)
        self.place += look.end()

    def _flags(self, flags: re.Match[str]) -> None:
        if "x" in flags[1]:
            raise ValueError("comments mode")
        if flags[3] == ":":
            self._put(flags[0], flags[0] if "m" not in flags[1] else None)
            if "s" in flags[1]:
                raise ValueError("dotall in a group")
        else:
            if self.python:
                raise ValueError("flags inside of a pattern")
            self.dot_all = "s" in flags[1]
            kept = flags[1].replace("s", "")
            if kept:
                self._put(f"(?{kept})", f"(?{kept})" if kept == "i" else None)
        self.place += flags.end()

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

    def _named_class(self) -> str:
        named = re.match(r"\{(\w+)\}|(\w)", self.java[self.place :])
        if named is None or (named[1] or named[2]) not in _POSIX:
            raise ValueError("unknown property")
        self.place += named.end()
        return _POSIX[named[1] or named[2]]

    def _property(self, negated: bool) -> None:
        inside = self._named_class()
        made = f"[{'^' if negated else ''}{inside}]"
        self._put(made, made)

    def _code(self, kind: str) -> None:
        digits = re.match(
            r"[0-9a-fA-F]{4}" if kind == "u" else r"[0-9a-fA-F]{2}|\{[0-9a-fA-F]+\}", self.java[self.place :]
        )
        if digits is None:
            raise ValueError("bad code")
        self.place += digits.end()
        number = int(digits[0].strip("{}"), 16)
        self._put(re.escape(chr(number)), f"\\x{{{number:x}}}")

    def _class(self) -> None:
        """A bracket expression; unions are flattened, intersections refused."""
        start = self.place
        self.place += 1
        parts: list[str] = ["["]
        if self.java[self.place] == "^":
            parts.append("^")
            self.place += 1
        first = True
        while self.java[self.place] != "]" or first:
            character = self.java[self.place]
            if character == "[" or self.java.startswith("&&", self.place):
                raise ValueError(f"nested class at {start}")
            if character == "\\":
                parts.append(self._class_escape())
            else:
                parts.append("\\" + character if character in "[]" else character)
                self.place += 1
            first = False
        self.place += 1
        text = "".join(parts) + "]"
        self._put(text, text)

    def _class_escape(self) -> str:
        following = self.java[self.place + 1]
        self.place += 2
        match following:
            case "p":
                return self._named_class()
            case "s":
                return r" \t\n\x0b\f\r"
            case "d" | "D" | "w" | "W" | "n" | "t" | "r" | "f":
                return f"\\{following}"
            case "S":
                raise ValueError("negated class inside of a class")
            case "u" | "x":
                digits = re.match(r"[0-9a-fA-F]{4}" if following == "u" else r"[0-9a-fA-F]{2}", self.java[self.place :])
                if digits is None:
                    raise ValueError("bad code")
                self.place += digits.end()
                return re.escape(chr(int(digits[0], 16)))
            case _ if following.isalnum():
                raise ValueError("unknown escape")
        return "\\" + following


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
