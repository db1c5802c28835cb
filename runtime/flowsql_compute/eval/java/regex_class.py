"""Character classes of Java's regular expressions, as sets of code points: properties, ranges, unions and the like."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from flowsql_compute.eval.java.code_points import (
    MOST,
    CodePoints,
    all_cases,
    ascii_cases,
    of_codes,
    of_ranges,
    of_text,
    same_letter,
)
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record

DIGIT: Final = of_text("0-9")
WORD: Final = of_text("0-9A-Z_a-z")
SPACE: Final = of_text(" \t-\r")
HORIZONTAL: Final = of_text(" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000")
VERTICAL: Final = of_text("\n-\r\x85\u2028\u2029")
LINE_ENDS: Final = of_text("\n\r\x85\u2028\u2029")
EVERY: Final = of_ranges((0, MOST))

_POSIX: Final = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "Punct": "!-/:-@[-`{-~",
    "Space": " \t-\r", "XDigit": "0-9a-fA-F", "Blank": " \t", "Cntrl": "\0-\x1f\x7f", "Graph": "!-~", "Print": " -~",
    "ASCII": "\0-\x7f", "L1": "\0-\xff",
}  # fmt: skip
#: POSIX classes with ``(?U)``, by the properties that they are then.
_POSIX_OF_UNICODE: Final = {
    "Lower": "Lowercase", "Upper": "Uppercase", "Alpha": "Alphabetic", "Digit": "Nd", "Alnum": "Alphabetic Nd",
    "Punct": "P", "Space": "White_Space",
}  # fmt: skip
#: General categories by their first letters.
_CATEGORIES: Final = {"C": "cfnos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
#: Binary properties that Java 17 has, by how ``regex`` names them.
_BINARY: Final = {
    "ALPHABETIC": "Alphabetic", "LETTER": "L", "IDEOGRAPHIC": "Ideographic", "LOWERCASE": "Lowercase",
    "UPPERCASE": "Uppercase", "TITLECASE": "Lt", "WHITE_SPACE": "White_Space", "WHITESPACE": "White_Space",
    "CONTROL": "Cc", "PUNCTUATION": "P", "HEX_DIGIT": "Hex_Digit", "HEXDIGIT": "Hex_Digit",
    "NONCHARACTER_CODE_POINT": "Noncharacter_Code_Point", "NONCHARACTERCODEPOINT": "Noncharacter_Code_Point",
    "DIGIT": "Nd", "ALNUM": "Alphabetic Nd", "BLANK": "Zs", "JOIN_CONTROL": "Join_Control",
    "JOINCONTROL": "Join_Control",
}  # fmt: skip
#: Methods of ``Character`` by general categories.
_METHODS: Final = {
    "javaLowerCase": "Lowercase", "javaUpperCase": "Uppercase", "javaTitleCase": "Lt", "javaDigit": "Nd",
    "javaLetter": "L", "javaAlphabetic": "Alphabetic", "javaLetterOrDigit": "L Nd", "javaSpaceChar": "Z",
    "javaDefined": "Assigned", "javaIdeographic": "Ideographic", "javaISOControl": "Cc",
}  # fmt: skip
_CASED: Final = ("Lu", "Ll", "Lt")


@record
class Flags:
    """Flags at a place of a pattern: ``i``, ``u``, ``U``, ``d``, ``m``, ``s``, ``x``."""

    ignore_case: bool = False
    unicode_case: bool = False
    unicode: bool = False
    unix_lines: bool = False
    multiline: bool = False
    dot_all: bool = False
    comments: bool = False


@lru_cache(maxsize=4096)
def single(code: int, flags: Flags) -> CodePoints:
    """What a character of a pattern matches."""
    if not flags.ignore_case:
        return of_codes([code])
    return same_letter(code) if flags.unicode_case else ascii_cases(of_codes([code]))


def shorthand(letter: str, flags: Flags) -> CodePoints:
    """``\\d``, ``\\w``, ``\\s``, ``\\h``, ``\\v`` and their opposites."""
    small = letter.lower()
    if flags.unicode and small in "dws":
        names = {"d": "Nd", "w": "Alphabetic M Nd Pc Join_Control", "s": "White_Space"}[small]
        found = properties(names)
    else:
        found = {"d": DIGIT, "w": WORD, "s": SPACE, "h": HORIZONTAL, "v": VERTICAL}[small]
    return found if letter == small else ~found


def word_letters(flags: Flags) -> CodePoints:
    """What ``\\b`` takes for a letter of a word."""
    return shorthand("w", flags) if flags.unicode else properties("L Nd") | of_text("_")


def property_set(name: str, flags: Flags) -> CodePoints:
    """``\\p{name}``.

    Raises:
        ValueError: Java knows no such property.
    """
    key, equals, value = name.partition("=")
    if equals:
        key = key.lower()
        if key in ("sc", "script"):
            return _known(f"Script={value}")
        if key in ("blk", "block"):
            return _known(f"Block={value}")
        if key in ("gc", "general_category"):
            return _category(value, flags)
        raise ValueError("unknown property")
    if name.startswith("In"):
        return _known(f"Block={name[2:]}")
    if name.startswith("Is"):
        rest = name[2:]
        binary = _BINARY.get(rest.upper())
        if binary is not None:
            if flags.ignore_case and binary in ("Lowercase", "Uppercase", "Lt"):
                return properties("Lowercase Uppercase Lt")
            return ~properties("Cn") if rest.upper() == "ASSIGNED" else properties(binary)
        if rest.upper() == "ASSIGNED":
            return ~properties("Cn")
        if _is_category(rest):
            return _category(rest, flags)
        return _known(f"Script={rest}")
    if name in _POSIX:
        if flags.unicode:
            if name not in _POSIX_OF_UNICODE:
                raise NotSupportedYetError(f"\\p{{{name}}} with (?U) in a regular expression")
            return properties(_POSIX_OF_UNICODE[name])
        if flags.ignore_case and name in ("Lower", "Upper"):
            return of_text(_POSIX["Alpha"])
        return of_text(_POSIX[name])
    if name in _METHODS:
        if flags.ignore_case and name in ("javaLowerCase", "javaUpperCase", "javaTitleCase"):
            return properties("Lowercase Uppercase Lt")
        return ~properties("Cn") if name == "javaDefined" else properties(_METHODS[name])
    if name == "javaWhitespace":
        return (properties("Z") & ~of_text("\xa0\u2007\u202f")) | of_text("\t-\r\x1c-\x1f")
    if name == "javaMirrored":
        return of_codes(code for code in range(MOST + 1) if unicodedata.mirrored(chr(code)))
    if name.startswith("java"):
        raise NotSupportedYetError(f"the property {name} in a regular expression")
    if name in ("ALL", "all"):
        return EVERY
    return _category(name, flags)


def _is_category(name: str) -> bool:
    return name in ("LC", "LD") or (name[1:] in _CATEGORIES.get(name[:1], "-") and len(name) <= 2)


def _category(name: str, flags: Flags) -> CodePoints:
    if not _is_category(name):
        raise ValueError("unknown property")
    if name == "LC" or (flags.ignore_case and name in _CASED):
        return properties("Lu Ll Lt")
    if name == "LD":
        return properties("L Nd")
    found = properties(name)
    return CodePoints(found.ranges, f"p{{{name}}}") if name not in ("C", "Cn", "Cs", "Co") else found


@lru_cache(maxsize=128)
def properties(names: str) -> CodePoints:
    """The union of general categories and of properties by their Unicode names, divided by blanks."""
    made = CodePoints(())
    for name in names.split():
        made |= _known(name)
    return made


@lru_cache(maxsize=256)
def _known(name: str) -> CodePoints:
    """A property that the package ``regex`` has a table of."""
    import regex

    if re.fullmatch(r"[\w=]+|Block=[\w -]+", name) is None:
        raise ValueError("unknown property")
    try:
        runs = regex.compile(f"\\p{{{name}}}+")
    except regex.error as error:
        raise ValueError("unknown property") from error
    return of_ranges(*((found.start(), found.end() - 1) for found in runs.finditer(_every_text())))


@lru_cache(maxsize=1)
def _every_text() -> str:
    """All code points, each at its own place."""
    return "".join(map(chr, range(MOST + 1)))


class Escapes:
    """A pattern and a place in it; reads the escapes that stand for one character, inside of classes and outside.

    Raises (from all methods):
        ValueError, IndexError: Java refuses the pattern.
    """

    def __init__(self, java: str, place: int = 0) -> None:
        self.java = java
        self.place = place

    def peek(self, ahead: int = 0) -> str:
        """The character at the place; empty at the end."""
        return self.java[self.place + ahead : self.place + ahead + 1]

    def code(self, letter: str) -> int | None:
        """The code point of the escape whose letter was just read; None: it is none of a single character."""
        match letter:
            case "n" | "t" | "r" | "f" | "a" | "e":
                return ord({"n": "\n", "t": "\t", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}[letter])
            case "0":
                return self._octal()
            case "x":
                return self._hexadecimal()
            case "u":
                return self._unit()
            case "c":
                self.place += 1
                return ord(self.java[self.place - 1]) ^ 64
            case "N":
                return self._named()
            case _ if not (letter.isascii() and letter.isalnum()):
                return ord(letter)
        return None

    def property_name(self) -> str:
        """The name behind ``\\p``: in braces, or one letter."""
        if self.peek() != "{":
            self.place += 1
            return self.java[self.place - 1]
        end = self.java.index("}", self.place)
        name = self.java[self.place + 1 : end]
        self.place = end + 1
        if not name:
            raise ValueError("empty property")
        return name

    def _octal(self) -> int:
        found = re.match(r"[0-3][0-7]{2}|[0-7]{1,2}", self.java[self.place : self.place + 3])
        if found is None:
            raise ValueError("illegal octal escape")
        self.place += found.end()
        return int(found[0], 8)

    def _hexadecimal(self) -> int:
        found = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})").match(self.java, self.place)
        if found is None:
            raise ValueError("illegal hexadecimal escape")
        self.place = found.end()
        code = int(found[1] or found[2], 16)
        if code > MOST:
            raise ValueError("no code point")
        return code

    def _unit(self) -> int:
        first = self._hex4()
        if 0xD800 <= first < 0xDC00 and self.java.startswith("\\u", self.place):
            place = self.place
            self.place += 2
            second = self._hex4()
            if 0xDC00 <= second < 0xE000:
                return 0x10000 + ((first - 0xD800) << 10) + second - 0xDC00
            self.place = place
        return first

    def _hex4(self) -> int:
        found = re.compile(r"[0-9A-Fa-f]{4}").match(self.java, self.place)
        if found is None:
            raise ValueError("illegal Unicode escape")
        self.place = found.end()
        return int(found[0], 16)

    def _named(self) -> int:
        found = re.compile(r"\{([^}]+)\}").match(self.java, self.place)
        if found is None:
            raise ValueError("illegal name of a character")
        self.place = found.end()
        try:
            return ord(unicodedata.lookup(found[1]))
        except KeyError as error:
            raise ValueError("unknown name of a character") from error


class ClassReader(Escapes):
    """Reads bracket expressions; ``place`` is behind the opening bracket at first, behind the closing one at last."""

    def __init__(self, java: str, place: int, flags: Flags) -> None:
        super().__init__(java, place)
        self.flags = flags

    def read(self, closes: bool = True) -> CodePoints:
        """The set of a class. ``closes``: its closing bracket belongs to it (not: it is the right side of ``&&``)."""
        negated = closes and self.peek() == "^"
        self.place += negated
        whole: CodePoints | None = None
        #: What stands alone so far, which Java adds at ``&&`` and at the end.
        loose: CodePoints | None = None
        last: CodePoints | None = None
        while True:
            self._pass_comments()
            following = self.java[self.place]
            if following == "[":
                self.place += 1
                last = self.read()
                whole = last if whole is None else whole | last
            elif self.java.startswith("&&", self.place):
                self.place += 2
                right = self._right()
                if loose is not None:
                    whole = last = loose if whole is None else whole | loose
                    loose = None
                last = right if right is not None else last
                if whole is None:
                    if right is None:
                        raise ValueError("bad class")
                    whole = right
                else:
                    assert last is not None
                    whole = whole & last
            elif following == "]" and (whole is not None or loose is not None):
                self.place += closes
                made = loose if whole is None else whole if loose is None else whole | loose
                assert made is not None
                return ~made if negated else made
            else:
                found, is_loose = self._member()
                if is_loose:
                    loose = found if loose is None else loose | found
                else:
                    last = found
                    whole = found if whole is None else whole | found

    def _right(self) -> CodePoints | None:
        """The right side of ``&&``."""
        right: CodePoints | None = None
        while self.java[self.place] not in "]&":
            if self.peek() == "[":
                self.place += 1
                found = self.read()
                right = found if right is None else right | found
            else:
                right = self.read(closes=False)
        return right

    def _member(self) -> tuple[CodePoints, bool]:
        """A character, a range or an escape, and whether it is a single character."""
        first = self._character(in_range=False)
        if isinstance(first, CodePoints):
            return first, False
        if self.peek() == "-" and self.peek(1) not in ("", "[", "]"):
            self.place += 1
            last = self._character(in_range=True)
            if isinstance(last, CodePoints) or last < first:
                raise ValueError("illegal range")
            made = of_ranges((first, last))
            if self.flags.ignore_case:
                made = all_cases(made) if self.flags.unicode_case else ascii_cases(made)
            return made, False
        return single(first, self.flags), True

    def _character(self, in_range: bool) -> int | CodePoints:
        letter = self.java[self.place]
        self.place += 1
        if letter != "\\":
            return ord(letter)
        letter = self.java[self.place]
        self.place += 1
        match letter:
            case "Q" | "E":
                raise ValueError("illegal escape")
            case "p" | "P":
                found = property_set(self.property_name(), self.flags)
                return found if letter == "p" else ~found
            case "v" if in_range or self.peek() == "-":
                return 0x0B
            case "d" | "D" | "w" | "W" | "s" | "S" | "h" | "H" | "v" | "V":
                return shorthand(letter, self.flags)
        code = self.code(letter)
        if code is None:
            raise ValueError("illegal escape")
        return code

    def _pass_comments(self) -> None:
        if self.flags.comments:
            found = re.compile(r"(?:[ \t-\r]|#[^\n]*(?:\n|$))*").match(self.java, self.place)
            assert found is not None
            self.place = found.end()
