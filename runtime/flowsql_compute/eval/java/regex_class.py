"""Character classes of Java's regular expressions: properties, unions, intersections, ranges.

A class becomes what matches one character in Python's ``re`` and, where RE2 has the same, in RE2. Unions and
intersections, which both lack, become alternatives and look-aheads. Unicode properties are native in RE2; for Python
they are spelled out as ranges, once for each property.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record

_POSIX = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~", "Space": r" \t\n\x0b\f\r", "XDigit": "0-9a-fA-F",
    "Blank": r" \t", "Cntrl": r"\x00-\x1f\x7f",
    "Graph": "!-~", "Print": " -~", "ASCII": r"\x00-\x7f", "L1": r"\x00-\xff",
}  # fmt: skip
#: General categories by their first letters.
_CATEGORIES = {"C": "cfnos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
#: Binary properties and methods of ``Character`` by the general categories that they are made of.
_BINARY = {
    "Alphabetic": ("L", "Nl"), "Letter": ("L",), "Digit": ("Nd",), "Uppercase": ("Lu",), "Lowercase": ("Ll",),
    "Titlecase": ("Lt",), "Punctuation": ("P",), "Control": ("Cc",), "White_Space": ("Z",), "WhiteSpace": ("Z",),
}  # fmt: skip
_METHODS = {
    "javaLowerCase": ("Ll",), "javaUpperCase": ("Lu",), "javaTitleCase": ("Lt",), "javaDigit": ("Nd",),
    "javaLetter": ("L",), "javaAlphabetic": ("L", "Nl"), "javaLetterOrDigit": ("L", "Nd"), "javaSpaceChar": ("Z",),
}  # fmt: skip
_WHITE = r"\t-\r\x85"
#: Scripts by the ranges that hold nearly all of their letters.
_SCRIPTS = {
    "LATIN": "A-Za-z\xaa\xba\xc0-\xd6\xd8-\xf6\xf8-\u02b8\u1d00-\u1d25\u1e00-\u1eff\u2c60-\u2c7f"
             "\ua722-\ua787\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "GREEK": "\u0370-\u0373\u0375-\u0377\u037a-\u037d\u037f\u0384\u0386\u0388-\u03e1\u03f0-\u03ff\u1f00-\u1ffe",
    "CYRILLIC": "\u0400-\u0484\u0487-\u052f\u1c80-\u1c88\u1d2b\u2de0-\u2dff\ua640-\ua69f",
    "ARMENIAN": "\u0531-\u0556\u0559-\u058a", "HEBREW": "\u0591-\u05f4\ufb1d-\ufb4f",
    "ARABIC": "\u0600-\u0604\u0606-\u060b\u060d-\u061a\u061c-\u061e\u0620-\u063f\u0641-\u064a\u0656-\u066f"
              "\u0671-\u06dc\u06de-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc",
    "DEVANAGARI": "\u0900-\u0950\u0955-\u0963\u0966-\u097f", "THAI": "\u0e01-\u0e3a\u0e40-\u0e5b",
    "GEORGIAN": "\u10a0-\u10fa\u10fc-\u10ff", "HANGUL": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "HIRAGANA": "\u3041-\u3096\u309d-\u309f", "KATAKANA": "\u30a1-\u30fa\u30fd-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "HAN": "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9"
           "\U00020000-\U0003134a",
}  # fmt: skip


@record
class CharacterClass:
    """What matches one character: a Python pattern, and the RE2 pattern that means the same (None without one)."""

    python: str
    re2: str | None


def property_class(name: str, negated: bool) -> CharacterClass:
    """``\\p{name}``, or ``\\P{name}`` where negated.

    Raises:
        ValueError: Java knows no such property.
    """
    inside, native = _property(name)
    hat = "^" if negated else ""
    re2 = f"\\{'P' if negated else 'p'}{{{native}}}" if native else None
    return CharacterClass(f"[{hat}{inside}]", re2 if native else f"[{hat}{inside}]" if name in _POSIX else None)


def _property(name: str) -> tuple[str, str | None]:
    """What stands between the brackets of a Python class, and RE2's own name of the property if it has one."""
    if name in _POSIX:
        return _POSIX[name], None
    if name in _METHODS:
        return _ranges(_METHODS[name]), None
    assigned = re.fullmatch(r"(?:gc|general_category)=(\w+)", name)
    category = assigned[1] if assigned else name.removeprefix("Is")
    if category[1:] in _CATEGORIES.get(category[:1], "") and len(category) <= 2:
        return _ranges((category,)), None if category == "Cn" else category
    if category == "LC":
        return _ranges(("Lu", "Ll", "Lt")), None
    if category == "LD":
        return _ranges(("L", "Nd")), None
    if name.startswith("Is") and name[2:] in _BINARY:
        extra = _WHITE if name[2:] in ("White_Space", "WhiteSpace") else ""
        return extra + _ranges(_BINARY[name[2:]]), None
    script = re.fullmatch(r"(?:Is|(?:sc|script)=)(\w+)", name)
    if script is not None:
        if script[1].upper() in _SCRIPTS:
            return _SCRIPTS[script[1].upper()], None
        raise NotSupportedYetError(f"the property {name} in a regular expression")
    if re.match(r"(?:In|blk=|block=|java)[A-Z]", name):
        raise NotSupportedYetError(f"the property {name} in a regular expression")
    raise ValueError("unknown property")


@lru_cache(maxsize=64)
def _ranges(categories: tuple[str, ...]) -> str:
    """All characters of general categories (or of their first letters) as ranges."""
    made: list[str] = []
    first: int | None = None
    for code in range(sys.maxunicode + 2):
        category = unicodedata.category(chr(code)) if code <= sys.maxunicode else ""
        if category and (category in categories or category[0] in categories):
            first = code if first is None else first
        elif first is not None:
            made.append(f"\\U{first:08x}-\\U{code - 1:08x}")
            first = None
    return "".join(made)


class ClassReader:
    """Reads one bracket expression of a Java pattern from ``place`` on; ``place`` ends behind it.

    Raises (from ``read``):
        ValueError, IndexError: Java refuses the class.
    """

    def __init__(self, java: str, place: int) -> None:
        self.java = java
        self.place = place

    def read(self) -> CharacterClass:
        """The class whose opening bracket stands at ``place``."""
        self.place += 1
        negated = self.java[self.place] == "^"
        self.place += negated
        operands = [self._union()]
        while self.java.startswith("&&", self.place):
            self.place += 2
            operands.append(self._union())
        if self.java[self.place] != "]":
            raise ValueError("open class")
        self.place += 1
        plain = [simple for simple, nested in operands if not nested]
        if len(operands) == len(plain) == 1 and plain[0]:
            text = f"[{'^' if negated else ''}{plain[0]}]"
            return CharacterClass(text, None if "\\U" in text else text)
        parts = [_either(simple, nested) for simple, nested in operands if simple or nested]
        if not parts:
            raise ValueError("empty class")
        looks = "".join(f"(?={part})" for part in parts[:-1]) + parts[-1]
        return CharacterClass(f"(?:(?!{looks})(?s:.))" if negated else f"(?:{looks})", None)

    def _union(self) -> tuple[str, list[str]]:
        """Plain members as the inside of a class, and what is nested as patterns of one character."""
        simple: list[str] = []
        nested: list[str] = []
        first = True
        while (character := self.java[self.place]) != "]" or (first and not simple and not nested):
            first = False
            if self.java.startswith("&&", self.place):
                break
            if character == "[":
                inner = ClassReader(self.java, self.place)
                nested.append(inner.read().python)
                self.place = inner.place
            elif character == "\\":
                self._escape(simple, nested)
            else:
                simple.append(_literal(character) if character != "-" else "-")
                self.place += 1
        return "".join(simple), nested

    def _escape(self, simple: list[str], nested: list[str]) -> None:
        following = self.java[self.place + 1]
        self.place += 2
        match following:
            case "p" | "P":
                made = property_class(self.property_name(), following == "P").python
                if following == "p":
                    simple.append(made[1:-1])
                else:
                    nested.append(made)
            case "s":
                simple.append(r" \t\n\x0b\f\r")
            case "S":
                nested.append(r"[^ \t\n\x0b\f\r]")
            case "h":
                simple.append(" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000")
            case "d" | "D" | "w" | "W" | "n" | "t" | "r" | "f" | "a":
                simple.append(f"\\{following}")
            case "e":
                simple.append(r"\x1b")
            case "u" | "x":
                simple.append(_literal(self.code(following)))
            case "Q":
                end = self.java.find("\\E", self.place)
                end = len(self.java) if end < 0 else end
                simple.extend(_literal(character) for character in self.java[self.place : end])
                self.place = end + 2
            case _ if following.isascii() and following.isalnum():
                raise ValueError("unknown escape")
            case _:
                simple.append(_literal(following))

    def property_name(self) -> str:
        """The name behind ``\\p``: one letter, or what stands in braces."""
        named = re.compile(r"\{([\w=]+)\}|(\w)").match(self.java, self.place)
        if named is None:
            raise ValueError("bad property")
        self.place = named.end()
        return named[1] or named[2]

    def code(self, kind: str) -> str:
        """The character of ``\\uXXXX``, ``\\xXX`` or ``\\x{X...}``."""
        digits = re.compile(
            r"[0-9a-fA-F]{4}" if kind == "u" else r"[0-9a-fA-F]{2}|\{[0-9a-fA-F]+\}",
        ).match(self.java, self.place)
        if digits is None:
            raise ValueError("bad code")
        self.place = digits.end()
        return chr(int(digits[0].strip("{}"), 16))


def _literal(character: str) -> str:
    return "\\" + character if character in r"[]\^-&~|" else character


def _either(simple: str, nested: list[str]) -> str:
    options = ([f"[{simple}]"] if simple else []) + nested
    return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"
