"""Java's regular expressions: over whole columns by RE2 where it answers as Java, else text by text within a time.

RE2, which Arrow has, takes a time that grows with the text alone. It has no look-around, no references to groups, no
possessive quantifiers, and reads some patterns otherwise than Java; those are left to the package ``regex``, which goes
back and forth as Java does, and may need a time that doubles with each character. It releases Python's lock while it
matches, and gives up after ``flowsql.regex.timeout``. Short texts of patterns that cannot take long are searched by
Python's own engine, which is quicker.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, Final

from flowsql_compute.eval.java.regex_emit import (
    check,
    has_same_extent,
    is_free,
    longest_text,
    optional_groups,
    to_ascii_python,
    to_re2,
    to_regex,
)
from flowsql_compute.eval.java.regex_parse import may_be_empty, parse_pattern
from flowsql_core.errors import ExecutionError, NotSupportedYetError

#: Characters of a text or a pattern that an error shows.
_SHOWN: Final = 60


#: Steps that a pattern may need for a text and be searched by Python's own engine, which nothing stops: milliseconds.
_MOST_STEPS: Final = 1_000_000


class JavaPattern:
    """One pattern. What engines need of it is made when it is asked for.

    ``groups``: how many groups it has. ``may_be_empty``: whether a match may be.
    """

    def __init__(self, java: str) -> None:
        parsed = parse_pattern(java)
        check(parsed.node)
        self.java = java
        self.groups = parsed.groups
        self.may_be_empty = may_be_empty(parsed.node)
        self._node = parsed.node

    @cached_property
    def optional(self) -> frozenset[int]:
        """Groups that may be unset in a match."""
        return optional_groups(self._node)

    @cached_property
    def is_free(self) -> bool:
        """True if further matches are found by searching what follows a match."""
        return is_free(self._node)

    @cached_property
    def _same_extent(self) -> bool:
        return has_same_extent(self._node)

    @cached_property
    def fits_re2(self) -> str | None:
        """The pattern of RE2 that has a match in a text exactly if Java's has one."""
        return to_re2(self._node, plain=False, existence=True)

    @cached_property
    def plain_fits_re2(self) -> str | None:
        """The same for ASCII texts without ends of lines."""
        return to_re2(self._node, plain=True, existence=True)

    @cached_property
    def re2(self) -> str | None:
        """The pattern of RE2 that finds Java's first match."""
        return to_re2(self._node, plain=False, existence=False) if self._same_extent else None

    @cached_property
    def plain_re2(self) -> str | None:
        """The same for ASCII texts without ends of lines."""
        return to_re2(self._node, plain=True, existence=False) if self._same_extent else None

    @cached_property
    def _quick(self) -> tuple[int, Any]:
        """Python's own pattern, and how long ASCII texts it may search; -1: none."""
        if not self._same_extent:
            return -1, None
        longest = longest_text(self._node, _MOST_STEPS)
        pattern = to_ascii_python(self._node) if longest else None
        return (-1, None) if pattern is None else (longest, re.compile(pattern, re.ASCII))

    @cached_property
    def _compiled(self) -> Any:
        import regex

        try:
            return regex.compile(to_regex(self._node), regex.VERSION0)
        except (regex.error, OverflowError, RecursionError) as error:
            raise NotSupportedYetError(f"the regular expression '{_shown(self.java)}': {error}") from error

    def finder(self, limit_s: float) -> Finder:
        """What searches texts one by one, each within a time."""
        return Finder(self, limit_s)

    def engine(self, text: str) -> tuple[Any, dict[str, Any]]:
        """What searches this text, and whether it must be told to stop."""
        longest, quick = self._quick
        if len(text) <= longest and text.isascii():
            return quick, {}
        return self._compiled, {"concurrent": True}


class Finder:
    """Searches texts; a text that takes too long is an error.

    Raises (from all methods):
        ExecutionError: a text took longer than the limit.
        NotSupportedYetError: the package ``regex`` does not know the pattern.
    """

    def __init__(self, pattern: JavaPattern, limit_s: float) -> None:
        self.pattern = pattern
        self._limit_s = limit_s

    def first(self, text: str) -> Any:
        """The first match; None without one."""
        engine, options = self.pattern.engine(text)
        if not options:
            return engine.search(text)
        try:
            return engine.search(text, timeout=self._limit_s, **options)
        except TimeoutError:
            raise self._too_slow(text) from None

    def fits(self, text: str) -> bool:
        """True if there is a match."""
        return self.first(text) is not None

    def every(self, text: str) -> Iterator[Any]:
        """All matches, one behind another: after an empty one, as in Java, the search goes on one character later."""
        engine, options = self.pattern.engine(text)
        if options:
            return self._every_within(text, engine, options)
        return _every(text, engine) if self.pattern.may_be_empty else iter(engine.finditer(text))

    def _every_within(self, text: str, engine: Any, options: dict[str, Any]) -> Iterator[Any]:
        place, end = 0, len(text)
        deadline = time.process_time() + self._limit_s
        left = self._limit_s
        try:
            if not self.pattern.may_be_empty:
                yield from engine.finditer(text, timeout=left, **options)
                return
            while place <= end and (found := engine.search(text, place, timeout=left, **options)) is not None:
                yield found
                start, place = found.span()
                place += start == place
                left = deadline - time.process_time()
                if left <= 0:
                    raise self._too_slow(text)
        except TimeoutError:
            raise self._too_slow(text) from None

    def all_texts(self, text: str) -> list[str]:
        """The texts of all matches, or of the one group of each, for patterns whose matches are not empty."""
        engine, options = self.pattern.engine(text)
        made: list[str]
        if not options:
            made = engine.findall(text)
            return made
        try:
            made = engine.findall(text, timeout=self._limit_s, **options)
        except TimeoutError:
            raise self._too_slow(text) from None
        return made

    def replaced(self, text: str, new: str) -> str:
        """The text with ``new`` in place of each match."""
        made: list[str] = []
        place = 0
        for found in self.every(text):
            start, end = found.span()
            made += (text[place:start], new)
            place = end
        return text if not made else "".join([*made, text[place:]])

    def _too_slow(self, text: str) -> ExecutionError:
        return ExecutionError(
            "regex-timeout",
            f"The regular expression '{_shown(self.pattern.java)}' took longer than {self._limit_s:g} s for one text "
            f"of {len(text):,} characters: '{_shown(text)}'.",
            hint="repeat what leaves no choice (a++ or (?>a+) for a+, no repetition inside of another one), leave out "
            "look-arounds and \\1, or SET 'flowsql.regex.timeout'",
        )


def _every(text: str, engine: Any) -> Iterator[Any]:
    place, end = 0, len(text)
    while place <= end and (found := engine.search(text, place)) is not None:
        yield found
        start, place = found.span()
        place += start == place


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@lru_cache(maxsize=1024)
def translate_pattern(java: str) -> JavaPattern | None:
    """Return the pattern; None where Java refuses it.

    Raises:
        NotSupportedYetError: it has what is not known here.
    """
    try:
        return JavaPattern(java)
    except (ValueError, OverflowError, IndexError):
        return None
    except RecursionError:
        raise NotSupportedYetError("a regular expression that is nested so deep") from None


def extracting(pattern: JavaPattern, group: int, plain: bool) -> str | None:
    """Return a pattern of RE2 whose group ``g`` is the wanted one, others not captured; None where it cannot say it."""
    re2 = pattern.plain_re2 if plain else pattern.re2
    if re2 is None or group in pattern.optional:
        return None
    return f"(?P<g>{_uncaptured(re2, 0)})" if group == 0 else _uncaptured(re2, group)


def _uncaptured(re2: str, keep: int) -> str:
    """The pattern with only group ``keep`` captured, under the name ``g``."""
    made: list[str] = []
    count = place = 0
    while place < len(re2):
        character = re2[place]
        if character == "\\":
            # What is emitted writes brackets that are text as codes.
            made.append(re2[place : place + 2])
            place += 2
            continue
        if character == "(" and not re2.startswith("(?", place):
            count += 1
            character = "(?P<g>" if count == keep else "(?:"
        made.append(character)
        place += 1
    return "".join(made)
