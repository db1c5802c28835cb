"""Sets of code points: their algebra, how ``regex`` and RE2 write them, and upper and lower case as Java pairs them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from flowsql_core.record import record

#: Sorted ranges that neither touch nor overlap, both ends included.
Ranges = tuple[tuple[int, int], ...]

MOST: Final = sys.maxunicode
_SURROGATES: Final = ((0xD800, 0xDFFF),)


@record
class CodePoints:
    """A set of code points; ``native``: a property by which both engines know it (``p{Lu}``), else empty."""

    ranges: Ranges
    native: str = ""

    def __or__(self, other: CodePoints) -> CodePoints:
        """The union."""
        return CodePoints(_merged([*self.ranges, *other.ranges]))

    def __and__(self, other: CodePoints) -> CodePoints:
        """The intersection."""
        return ~(~self | ~other)

    def __invert__(self) -> CodePoints:
        """All other code points."""
        made = []
        first = 0
        for low, high in self.ranges:
            if first < low:
                made.append((first, low - 1))
            first = high + 1
        if first <= MOST:
            made.append((first, MOST))
        native = "" if not self.native else ("P" if self.native[0] == "p" else "p") + self.native[1:]
        return CodePoints(tuple(made), native)

    def __contains__(self, code: int) -> bool:
        return any(low <= code <= high for low, high in self.ranges)

    def __iter__(self) -> Iterator[int]:
        return (code for low, high in self.ranges for code in range(low, high + 1))


def of_ranges(*ranges: tuple[int, int]) -> CodePoints:
    """The set of ranges."""
    return CodePoints(_merged(ranges))


def of_codes(codes: Iterable[int]) -> CodePoints:
    """The set of single code points."""
    return CodePoints(_merged((code, code) for code in codes))


def of_text(members: str) -> CodePoints:
    """The set of a class without its brackets: single characters and ranges.

    >>> of_text("a-c_").ranges
    ((95, 95), (97, 99))
    """
    made = []
    place = 0
    while place < len(members):
        last = place + 2 if members[place + 1 : place + 2] == "-" and place + 2 < len(members) else place
        made.append((ord(members[place]), ord(members[last])))
        place = last + 1
    return CodePoints(_merged(made))


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    made: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if made and low <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(made[-1][1], high))
        else:
            made.append((low, high))
    return tuple(made)


# How engines write sets


@lru_cache(maxsize=4096)
def for_regex(members: CodePoints) -> str:
    """A pattern of the package ``regex`` that matches one code point of the set."""
    if members.native:
        return "\\" + members.native
    return _written(members, _regex_code)


@lru_cache(maxsize=4096)
def for_re2(members: CodePoints) -> str | None:
    """A pattern of RE2; None where it cannot say it."""
    if members.native:
        return "\\" + members.native
    # Texts that Arrow holds have no surrogates, and RE2 knows none.
    known = members if 0xD800 not in members and 0xDFFF not in members else members & ~CodePoints(_SURROGATES)
    return _written(known, _re2_code) if known.ranges else None


def _written(members: CodePoints, code: object) -> str:
    write = code
    assert callable(write)
    if len(members.ranges) == 1 and members.ranges[0][0] == members.ranges[0][1]:
        return str(write(members.ranges[0][0]))
    inverse = ~members
    if not inverse.ranges:
        return "(?s:.)"
    hat, ranges = ("", members.ranges) if len(members.ranges) <= len(inverse.ranges) else ("^", inverse.ranges)
    inside = "".join(write(low) if low == high else f"{write(low)}-{write(high)}" for low, high in ranges)
    return f"[{hat}{inside}]"


def _regex_code(code: int) -> str:
    if chr(code).isalnum() and code < 128:
        return chr(code)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def _re2_code(code: int) -> str:
    return chr(code) if code < 128 and chr(code).isalnum() else f"\\x{{{code:x}}}"


# Upper and lower case


def upper(code: int) -> int:
    """``Character.toUpperCase``: no letter becomes two."""
    made = chr(code).upper()
    return ord(made) if len(made) == 1 else code


def lower(code: int) -> int:
    """``Character.toLowerCase``."""
    if code == 0x130:
        return ord("i")
    made = chr(code).lower()
    return ord(made) if len(made) == 1 else code


def ascii_cases(members: CodePoints) -> CodePoints:
    """The set with the other case of each of its ASCII letters, as ``(?i)`` has it."""
    found = [code for code in range(128) if code in members]
    return members | of_codes([ord(chr(code).swapcase()) for code in found if chr(code).isalpha()])


def all_cases(members: CodePoints) -> CodePoints:
    """The set with what has the same upper or lower case, as ``(?iu)`` has it."""
    cased = _cased()
    more = [code for code, (high, low) in cased.items() if high in members or low in members]
    return members | of_codes(more)


def same_letter(code: int) -> CodePoints:
    """All code points that ``(?iu)`` takes for this one."""
    small = lower(upper(code))
    return of_codes({code, small} | {other for other, (_, low) in _cased().items() if low == small})


@lru_cache(maxsize=1)
def _cased() -> dict[int, tuple[int, int]]:
    """Each code point that has another case: its upper case, and the lower case of that."""
    made = {}
    every = "".join(map(chr, range(MOST + 1)))
    # Few letters have another case: look for them a thousand at once.
    for start in range(0, MOST + 1, 1024):
        part = every[start : start + 1024]
        if part.lower() != part or part.upper() != part:
            for code, letter in enumerate(part, start):
                if letter.lower() != letter or letter.upper() != letter:
                    made[code] = (upper(code), lower(upper(code)))
    return made
