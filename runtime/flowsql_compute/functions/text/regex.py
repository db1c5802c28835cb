"""Pattern functions: LIKE, SIMILAR TO and Java regular expressions.

A pattern is translated once: to RE2, which Arrow runs over whole columns, where RE2 gives the same answers as Java;
to Python's ``re`` over the distinct values where not (look-around, back references, groups that may be unset).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.columns import spread
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.java.regex import translate_pattern
from flowsql_compute.eval.text.columns import KERNEL_ROWS, contains, extract_run, literal_run
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
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
    """Whether the whole text fits a pattern of ``%`` (any characters) and ``_`` (one character)."""
    if isinstance(pattern, pa.Scalar) and (escape is None or isinstance(escape, pa.Scalar)):
        if not pattern.is_valid or (escape is not None and not escape.is_valid) or _is_null(text, call.n):
            return pa.nulls(call.n, pa.bool_())
        return _like_constant(text, pattern.as_py(), None if escape is None else escape.as_py())
    columns = [_column(datum, call.n) for datum in (text, pattern) + (() if escape is None else (escape,))]
    return map_rows(columns, lambda word, *rest: bool(_like_regex(*rest).fullmatch(word)), pa.bool_())


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
    return pc.match_substring_regex(text, _regex_of(tokens, re2=True))


def _regex_of(tokens: tuple[Any, ...], re2: bool) -> str:
    parts = [".*" if token is _ANY else "." if token is _ONE else _quoted(token) for token in tokens]
    return f"(?s)^{''.join(parts)}{'$' if re2 else chr(92) + 'Z'}"


def _quoted(character: str) -> str:
    return "\\" + character if character in r".^$*+?()[]{}|\\" else character


@lru_cache(maxsize=1024)
def _like_regex(pattern: str, escape: str | None = None) -> re.Pattern[str]:
    return re.compile(_regex_of(like_tokens(pattern, escape), re2=False))


# SIMILAR TO


@scalar("SIMILAR TO(STRING, STRING) -> BOOLEAN", "SIMILAR TO(STRING, STRING, STRING) -> BOOLEAN",
        aliases=("SIMILAR",), raises=True, spark=None)  # fmt: skip
def similar_to(call: Invocation, text: Any, pattern: Any, escape: Any = None) -> Any:
    """Whether the whole text fits an SQL pattern: ``%``, ``_``, ``|``, ``*``, ``[a-c]``, ``[[:DIGIT:]]``."""
    if isinstance(pattern, pa.Scalar) and (escape is None or isinstance(escape, pa.Scalar)):
        if not pattern.is_valid or (escape is not None and not escape.is_valid) or _is_null(text, call.n):
            return pa.nulls(call.n, pa.bool_())
        java = similar_to_java(pattern.as_py(), None if escape is None else escape.as_py())
        return _matches(text, f"(?s)^(?:{java})\\z")
    columns = [_column(datum, call.n) for datum in (text, pattern) + (() if escape is None else (escape,))]

    def fits(word: str, sql: str, mark: str | None = None) -> bool:
        compiled = translate_pattern(f"(?s)^(?:{similar_to_java(sql, mark)})\\z")
        return compiled is not None and compiled.python.search(word) is not None

    return map_rows(columns, fits, pa.bool_())


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


#: Patterns without anchors, so that what follows a match can be searched on its own.
_FREE = re.compile(r"(?:[^\\^$]|\\[dwsDWS.])+")


def re2_of_all(java: str) -> str | None:
    """The RE2 pattern that has Java's matches all over a text, one behind another; None if there may be none such.

    Both go on alike behind a match that is not empty.
    """
    translated = translate_pattern(java)
    if translated is None or translated.re2 is None or _FREE.fullmatch(java) is None:
        return None
    return translated.re2 if translated.python.match("") is None else None


def _matches(text: pa.Array, java: str) -> pa.Array:
    translated = translate_pattern(java)
    if translated is None:
        return pc.if_else(pc.is_valid(text), False, None)
    if translated.re2 is not None:
        return pc.match_substring_regex(text, translated.re2)
    return map_distinct(text, lambda word: translated.python.search(word) is not None, pa.bool_())


@scalar("REGEXP(STRING, STRING) -> BOOLEAN", costly=True, spark=None)
def regexp(call: Invocation, text: Any, pattern: Any) -> Any:
    """Whether some part of the text fits; FALSE for an empty or malformed pattern."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pa.nulls(call.n, pa.bool_())
        java = pattern.as_py()
        return _matches(text, java) if java else pc.if_else(pc.is_valid(text), False, None)

    def fits(word: str, java: str) -> bool:
        translated = translate_pattern(java) if java else None
        return translated is not None and translated.python.search(word) is not None

    return map_rows([_column(text, call.n), pattern], fits, pa.bool_())


@scalar("REGEXP_EXTRACT(STRING, STRING, [INTEGER]) -> STRING", nulls=NULLABLE, costly=True, spark=None)
def regexp_extract(call: Invocation, text: Any, pattern: Any, group: Any = None) -> Any:
    """Group ``group`` (0 or none: all) of the first match; NULL when there is none or the pattern is malformed."""
    constant = isinstance(pattern, pa.Scalar) and (group is None or isinstance(group, pa.Scalar))
    if constant:
        if not pattern.is_valid or (group is not None and not group.is_valid):
            return pa.nulls(call.n, pa.string())
        return extract_group(text, pattern.as_py(), 0 if group is None else group.as_py())
    columns = [_column(datum, call.n) for datum in (text, pattern) + (() if group is None else (group,))]

    def one(word: str, java: str, number: int = 0) -> str | None:
        translated = translate_pattern(java)
        return None if translated is None else translated.group_of(word, number)

    return map_rows(columns, one, pa.string())


def extract_group(text: pa.Array, java: str, group: int) -> pa.Array:
    """A group of the first match of each row; NULL without one, for a malformed pattern or a group it lacks."""
    translated = translate_pattern(java)
    if translated is None or not 0 <= group <= translated.python.groups:
        return pa.nulls(len(text), pa.string())
    shape = literal_run(java) if len(text) >= KERNEL_ROWS else None
    if shape is not None and group == shape.group:
        return extract_run(text, shape)
    named = translated.extracting(group)
    if named is not None:
        found = pc.extract_regex(text, named)
        return pc.struct_field(found, "g")
    return map_distinct(text, lambda word: translated.group_of(word, group), pa.string())


@scalar("REGEXP_REPLACE(STRING, STRING, STRING) -> STRING", costly=True, spark=None)
def regexp_replace(call: Invocation, text: Any, pattern: Any, replacement: Any) -> Any:
    """Every match replaced by the text of ``replacement`` as it is; NULL for a malformed pattern."""
    columns = [_column(datum, call.n) for datum in (text, pattern, replacement)]
    if isinstance(pattern, pa.Scalar) and isinstance(replacement, pa.Scalar):
        if not pattern.is_valid or not replacement.is_valid:
            return pa.nulls(call.n, pa.string())
        java, new = pattern.as_py(), replacement.as_py()
        re2 = re2_of_all(java)
        if re2 is not None:
            return pc.replace_substring_regex(columns[0], re2, new.replace("\\", "\\\\"))
        return map_distinct(columns[0], lambda word: _replace_one(word, java, new), pa.string())
    return map_rows(columns, _replace_one, pa.string())


def _replace_one(word: str, java: str, new: str) -> str | None:
    translated = translate_pattern(java)
    return None if translated is None else translated.python.sub(lambda match: new, word)
