"""Pattern functions: LIKE, SIMILAR TO and Java regular expressions.

LIKE takes a time that grows with the text. A regular expression is translated once: to RE2, which Arrow runs over whole
columns, where RE2 gives the same answers as Java; where not (look-around, back references, groups that may be unset),
distinct texts are searched one by one, each within ``flowsql.regex.timeout``. Rows with a pattern of their own are put
together by pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import (
    all_ascii,
    make_array,
    spread,
    string_buffers,
    validity,
    values_and_validity,
)
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.java.regex import JavaPattern, extracting, translate_pattern
from flowsql_compute.eval.java.regex_limit import DEFAULT_LIMIT_S
from flowsql_compute.eval.text.columns import KERNEL_ROWS, contains, extract_run, literal_run
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.expr import Expr, Literal
from flowsql_core.span import Span


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


def _is_null(text: Any, n: int) -> bool:
    """Whether there is no text at all: a malformed pattern fails only where it is asked."""
    return not text.is_valid if isinstance(text, pa.Scalar) else text.null_count == n


# LIKE


def _check_like(args: Sequence[Expr], span: Span | None) -> None:
    """A constant pattern with a bad escape fails when it is bound, as in Flink."""
    literals = [arg.value for arg in args[1:] if isinstance(arg, Literal)]
    if len(args) == 3 and isinstance(args[2], Literal) and isinstance(args[2].value, str) and len(args[2].value) > 1:
        raise BindError("bad-escape", f"Invalid escape character '{args[2].value}'", span)
    if len(literals) == len(args) - 1 and all(isinstance(value, str) for value in literals):
        try:
            like_tokens(literals[0], literals[1] if len(literals) > 1 else None)
        except ExecutionError as error:
            raise BindError(error.code, error.message, span) from error


@scalar("LIKE(STRING, STRING) -> BOOLEAN", "LIKE(STRING, STRING, STRING) -> BOOLEAN", check=_check_like,
        spark=None)  # fmt: skip
def like(call: Invocation, text: Any, pattern: Any, escape: Any = None) -> Any:
    """Whether the whole text fits a pattern of ``%`` (any characters) and ``_`` (one character, no end of a line)."""
    if isinstance(pattern, pa.Scalar) and (escape is None or isinstance(escape, pa.Scalar)):
        if not pattern.is_valid or (escape is not None and not escape.is_valid) or _is_null(text, call.n):
            return pa.nulls(call.n, pa.bool_())
        return _like_constant(text, pattern.as_py(), None if escape is None else escape.as_py())
    rest = [_column(datum, call.n) for datum in (pattern,) + (() if escape is None else (escape,))]
    return _like_rows(_column(text, call.n), rest)


_ANY, _ONE = object(), object()


def like_tokens(pattern: str, escape: str | None) -> tuple[Any, ...]:
    """Characters, ``_ANY`` and ``_ONE`` of a LIKE pattern.

    Raises:
        ExecutionError: the escape character stands before something that needs no escape.
    """
    tokens: list[Any] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if escape and character == escape[0]:
            following = pattern[place + 1 : place + 2]
            if following not in ("%", "_", escape[0]) or not following:
                raise ExecutionError("bad-escape", f"Invalid escape sequence '{pattern}', {place}")
            tokens.append(following)
            place += 1
        else:
            tokens.append(_ANY if character == "%" else _ONE if character == "_" else character)
        place += 1
    return tuple(tokens)


def _like_constant(text: pa.Array, pattern: str, escape: str | None) -> pa.Array:
    tokens = like_tokens(pattern, escape)
    inner = [token for token in tokens if token is not _ANY]
    if _ONE not in inner and "".join(inner) != "" and inner:
        word = "".join(inner)
        count = len(tokens) - len(inner)
        starts, ends = tokens[0] is _ANY, tokens[-1] is _ANY
        if count == 0:
            return pc.equal(text, word)
        if count == 1 and ends:
            return pc.starts_with(text, word)
        if count == 1 and starts:
            return pc.ends_with(text, word)
        if count == 2 and starts and ends:
            return contains(text, word) if len(text) >= KERNEL_ROWS else pc.match_substring(text, word)
    if len(tokens) < _MOST_RE2_TOKENS:
        return pc.match_substring_regex(text, _regex_of(tokens))
    return _like_by_kernel(text, np.zeros(len(text), np.int32), [tokens], validity(text))


def _like_rows(text: pa.Array, patterns: Sequence[pa.Array]) -> pa.Array:
    """LIKE where the pattern, or its escape character, is another one in each row."""
    valid = pc.is_valid(text)
    for column in patterns:
        valid = pc.and_(valid, pc.is_valid(column))
    pairs = patterns[0] if len(patterns) == 1 else pa.StructArray.from_arrays(list(patterns), ["pattern", "escape"])
    places = np.flatnonzero(values_and_validity(valid)[0])
    needed = pc.take(pairs, pa.array(places))
    if len(patterns) == 1:
        encoded = pc.dictionary_encode(needed)
        distinct = [(pattern, None) for pattern in encoded.dictionary.to_pylist()]
        numbers = values_and_validity(encoded.indices)[0]
    else:
        # Of two columns Arrow makes no dictionary.
        first, second = (pc.dictionary_encode(needed.field(place)) for place in range(2))
        known = len(second.dictionary) or 1
        codes = values_and_validity(first.indices)[0].astype(np.int64) * known + values_and_validity(second.indices)[0]
        found, numbers = np.unique(codes, return_inverse=True)
        texts, marks = first.dictionary.to_pylist(), second.dictionary.to_pylist()
        distinct = [(texts[code // known], marks[code % known]) for code in found.tolist()]
    tokens = [like_tokens(pattern, escape) for pattern, escape in distinct]
    of_row = np.zeros(len(text), np.int32)
    of_row[places] = numbers
    return _like_by_kernel(text, of_row, tokens or [()], values_and_validity(valid)[0])


def _like_by_kernel(text: pa.Array, of_row: Any, patterns: Sequence[tuple[Any, ...]], valid: Any) -> pa.Array:
    """LIKE by patterns as tokens; ``of_row``: which of them a row has."""
    from flowsql_compute.kernels.search import ANY, ONE, like_rows

    ends = np.cumsum([0, *map(len, patterns)]).astype(np.int32)
    codes = {_ANY: ANY, _ONE: ONE}
    flat = np.fromiter(
        (codes[token] if token in codes else ord(token) for tokens in patterns for token in tokens), np.int32, ends[-1]
    )
    offsets, data = string_buffers(text)
    fits = np.zeros(len(text), np.bool_)
    like_rows(for_kernel(offsets), for_kernel(data), of_row, ends, flat, fits)
    return make_array(fits, valid, pa.bool_())


#: Longer patterns may be too large for RE2.
_MOST_RE2_TOKENS = 1000


#: As in Flink ``_`` stands for no end of a line, ``%`` for any characters.
_NO_LINE_END = r"[^\n\r\x{85}\x{2028}\x{2029}]"


def _regex_of(tokens: tuple[Any, ...]) -> str:
    parts = [".*" if token is _ANY else _NO_LINE_END if token is _ONE else _quoted(token) for token in tokens]
    return f"(?s)^{''.join(parts)}$"


def _quoted(character: str) -> str:
    return "\\" + character if character in r".^$*+?()[]{}|\\" else character


# SIMILAR TO


@scalar("SIMILAR TO(STRING, STRING) -> BOOLEAN", "SIMILAR TO(STRING, STRING, STRING) -> BOOLEAN",
        aliases=("SIMILAR",), raises=True, spark=None)  # fmt: skip
def similar_to(call: Invocation, text: Any, pattern: Any, escape: Any = None) -> Any:
    """Whether the whole text fits an SQL pattern: ``%``, ``_``, ``|``, ``*``, ``[a-c]``, ``[[:DIGIT:]]``."""
    if isinstance(pattern, pa.Scalar) and (escape is None or isinstance(escape, pa.Scalar)):
        if not pattern.is_valid or (escape is not None and not escape.is_valid) or _is_null(text, call.n):
            return pa.nulls(call.n, pa.bool_())
        java = similar_to_java(pattern.as_py(), None if escape is None else escape.as_py())
        return _matches(call, text, _whole(java))
    # Each distinct pattern becomes one of Java, and rows go by that.
    columns = [pattern] if escape is None else [_column(datum, call.n) for datum in (pattern, escape)]
    javas = map_rows(columns, lambda sql, mark=None: _whole(similar_to_java(sql, mark)), pa.string())
    return by_pattern(call, _column(text, call.n), javas, pa.bool_(), lambda part, java: _matches(call, part, java))


def _whole(java: str) -> str:
    """The pattern of whole texts."""
    return f"(?s)^(?:{java})\\z"


#: What may be escaped in an SQL pattern.
_SIMILAR_SPECIALS = "[]()|^-+*_%?{}"
_CLASSES = {
    "[:ALPHA:]": r"\p{Alpha}", "[:UPPER:]": r"\p{Upper}", "[:LOWER:]": r"\p{Lower}", "[:DIGIT:]": r"\d",
    "[:SPACE:]": " ", "[:WHITESPACE:]": r"\s", "[:ALNUM:]": r"\p{Alnum}",
    "[:alpha:]": r"\p{Alpha}", "[:upper:]": r"\p{Upper}", "[:lower:]": r"\p{Lower}", "[:digit:]": r"\d",
    "[:space:]": " ", "[:whitespace:]": r"\s", "[:alnum:]": r"\p{Alnum}",
}  # fmt: skip


@lru_cache(maxsize=1024)
def similar_to_java(pattern: str, escape: str | None) -> str:
    """The Java regular expression of an SQL one.

    Raises:
        ExecutionError: a bad escape or an open bracket.
    """
    made: list[str] = []
    place, inside = 0, False
    while place < len(pattern):
        character = pattern[place]
        if escape and character == escape[0]:
            following = pattern[place + 1 : place + 2]
            if not following or following not in _SIMILAR_SPECIALS + escape[0]:
                raise ExecutionError("bad-escape", f"Invalid escape sequence '{pattern}', {place}")
            made.append(_quoted(following))
            place += 2
            continue
        named = next((name for name in _CLASSES if inside and pattern.startswith(name, place)), None)
        if named is not None:
            made.append(_CLASSES[named])
            place += len(named)
            continue
        if inside:
            inside = character != "]"
            made.append("\\[" if character == "[" else character)
        elif character == "[":
            inside = True
            made.append("[")
        else:
            made.append({"%": ".*", "_": "."}.get(character, "\\" + character if character in "$\\" else character))
        place += 1
    if inside:
        raise ExecutionError("bad-pattern", f"Invalid regular expression '{pattern}'")
    return "".join(made)


# Java regular expressions


def limit_of(call: Invocation) -> float:
    """How long a regular expression may look at one text, seconds."""
    return DEFAULT_LIMIT_S if call.context is None else call.context.regex_limit_s


def by_pattern(
    call: Invocation,
    text: pa.Array,
    patterns: pa.Array,
    type_: pa.DataType,
    function: Callable[..., pa.Array],
    others: Sequence[Any] = (),
) -> pa.Array:
    """``function`` of each distinct pattern's texts, the pattern, and those rows of ``others``; NULL where one is."""
    columns = [text, patterns, *others]
    columns = [_column(column, call.n) for column in columns]
    valid = pc.is_valid(columns[0])
    for column in columns[1:]:
        valid = pc.and_(valid, pc.is_valid(column))
    places = np.flatnonzero(values_and_validity(valid)[0])
    if not len(places):
        return pa.nulls(call.n, type_)
    encoded = pc.dictionary_encode(pc.take(columns[1], pa.array(places)))
    numbers = values_and_validity(encoded.indices)[0]
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(encoded.dictionary) + 1))
    rows = pa.array(places[order])
    sorted_text, sorted_others = pc.take(columns[0], rows), [pc.take(column, rows) for column in columns[2:]]
    made = []
    # One pass a distinct pattern.
    for number, java in enumerate(encoded.dictionary.to_pylist()):
        start, size = int(ends[number]), int(ends[number + 1] - ends[number])
        part = function(sorted_text.slice(start, size), java, *(one.slice(start, size) for one in sorted_others))
        made.append(part.cast(type_))
    whole = pa.concat_arrays(made)
    back = np.zeros(call.n, np.int64)
    back[places[order]] = np.arange(len(places))
    return pc.take(whole, pa.array(back, mask=~values_and_validity(valid)[0]))


def is_plain(text: Any) -> bool:
    """True if all texts are ASCII and have no ends of lines; the bytes of NULL may count."""
    if not all_ascii(text):
        return False
    offsets, data = string_buffers(text)
    used = data[int(offsets[0]) : int(offsets[-1])] if len(text) else data[:0]
    # Most texts have no control characters at all.
    return not len(used) or int(used.min()) > 13 or not bool(((used == 10) | (used == 13)).any())


def re2_of_all(pattern: JavaPattern, text: pa.Array) -> str | None:
    """The RE2 pattern that has Java's matches all over the texts, one behind another; None if there may be none such.

    Both go on alike behind a match that is not empty.
    """
    if not pattern.is_free:
        return None
    return (
        pattern.re2 if pattern.re2 is not None or pattern.plain_re2 is None or not is_plain(text) else pattern.plain_re2
    )


def _matches(call: Invocation, text: pa.Array, java: str) -> pa.Array:
    if _LITERAL.fullmatch(java) is not None:
        return pc.match_substring(text, java)
    pattern = translate_pattern(java)
    if pattern is None:
        return pc.if_else(pc.is_valid(text), False, None)
    re2 = pattern.fits_re2
    if re2 is None and pattern.plain_fits_re2 is not None and is_plain(text):
        re2 = pattern.plain_fits_re2
    if re2 is not None and (found := by_re2(pc.match_substring_regex, text, re2)) is not None:
        return found
    return map_distinct(text, pattern.finder(limit_of(call)).fits, pa.bool_())


#: A pattern that means itself.
_LITERAL = re.compile(r"[^\\^$.|?*+()\[\]{}]+")


def by_re2(function: Callable[..., Any], *args: Any) -> Any:
    """What Arrow makes of an RE2 pattern; None where the pattern is too large for it, or repeats too often."""
    try:
        return function(*args)
    except pa.ArrowInvalid as error:
        if "Invalid regular expression" not in str(error):
            raise
        return None


@scalar("REGEXP(STRING, STRING) -> BOOLEAN", costly=True, spark=None)
def regexp(call: Invocation, text: Any, pattern: Any) -> Any:
    """Whether some part of the text fits; FALSE for an empty or malformed pattern."""

    def fits(part: pa.Array, java: str) -> pa.Array:
        return _matches(call, part, java) if java else pc.if_else(pc.is_valid(part), False, None)

    if isinstance(pattern, pa.Scalar):
        return fits(text, pattern.as_py()) if pattern.is_valid else pa.nulls(call.n, pa.bool_())
    return by_pattern(call, text, pattern, pa.bool_(), fits)


@scalar("REGEXP_EXTRACT(STRING, STRING, [INTEGER]) -> STRING", nulls=NULLABLE, costly=True, spark=None)
def regexp_extract(call: Invocation, text: Any, pattern: Any, group: Any = None) -> Any:
    """Group ``group`` (0 or none: all) of the first match; NULL when there is none or the pattern is malformed."""
    if group is None:
        group = pa.scalar(0, pa.int32())
    if isinstance(group, pa.Scalar):
        if not group.is_valid:
            return pa.nulls(call.n, pa.string())
        number = group.as_py()
        if isinstance(pattern, pa.Scalar):
            return (
                extract_group(call, text, pattern.as_py(), number)
                if pattern.is_valid
                else pa.nulls(call.n, pa.string())
            )
        return by_pattern(call, text, pattern, pa.string(), lambda part, java: extract_group(call, part, java, number))

    def of_groups(part: pa.Array, java: str, groups: pa.Array) -> pa.Array:
        found = translate_pattern(java)
        if found is None:
            return pa.nulls(len(part), pa.string())
        first = found.finder(limit_of(call)).first

        def one(word: str, number: int) -> str | None:
            match = first(word) if 0 <= number <= found.groups else None
            return None if match is None else match[number]

        return map_rows([part, groups], one, pa.string())

    return by_pattern(call, text, _column(pattern, call.n), pa.string(), of_groups, (group,))


def extract_group(call: Invocation, text: pa.Array, java: str, group: int) -> pa.Array:
    """A group of the first match of each row; NULL without one, for a malformed pattern or a group it lacks."""
    pattern = translate_pattern(java)
    if pattern is None or not 0 <= group <= pattern.groups:
        return pa.nulls(len(text), pa.string())
    shape = literal_run(java) if len(text) >= KERNEL_ROWS else None
    if shape is not None and group == shape.group:
        return extract_run(text, shape)
    named = extracting(pattern, group, plain=False)
    if named is None:
        named = extracting(pattern, group, plain=True)
        if named is not None and not is_plain(text):
            named = None
    if named is not None and (found := by_re2(pc.extract_regex, text, named)) is not None:
        return pc.struct_field(found, "g")
    first = pattern.finder(limit_of(call)).first

    def one(word: str) -> str | None:
        match = first(word)
        return None if match is None else match[group]

    return map_distinct(text, one, pa.string())


@scalar("REGEXP_REPLACE(STRING, STRING, STRING) -> STRING", costly=True, spark=None)
def regexp_replace(call: Invocation, text: Any, pattern: Any, replacement: Any) -> Any:
    """Every match replaced by the text of ``replacement`` as it is; NULL for a malformed pattern."""

    def replaced(part: pa.Array, java: str, new: Any) -> pa.Array:
        found = translate_pattern(java)
        if found is None:
            return pa.nulls(len(part), pa.string())
        if isinstance(new, pa.Scalar):
            text_of_new = new.as_py()
            re2 = re2_of_all(found, part)
            if re2 is not None:
                made = by_re2(pc.replace_substring_regex, part, re2, text_of_new.replace("\\", "\\\\"))
                if made is not None:
                    return made
            finder = found.finder(limit_of(call))
            return map_distinct(part, lambda word: finder.replaced(word, text_of_new), pa.string())
        return map_rows([part, new], found.finder(limit_of(call)).replaced, pa.string())

    if isinstance(replacement, pa.Scalar):
        if not replacement.is_valid:
            return pa.nulls(call.n, pa.string())
        if isinstance(pattern, pa.Scalar):
            if not pattern.is_valid:
                return pa.nulls(call.n, pa.string())
            return replaced(_column(text, call.n), pattern.as_py(), replacement)
        return by_pattern(call, text, pattern, pa.string(), lambda part, java: replaced(part, java, replacement))
    return by_pattern(call, text, pattern, pa.string(), replaced, (replacement,))
