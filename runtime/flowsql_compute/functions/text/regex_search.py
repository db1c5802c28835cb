"""All matches of Java regular expressions: counting, places, pieces, and text cut into maps. Neighbour: ``regex``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.columns import all_ascii, spread
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.java.regex import Finder, JavaPattern, translate_pattern
from flowsql_compute.eval.text.columns import KERNEL_ROWS, byte_class, class_matches, count_class
from flowsql_compute.eval.text.maps import maps_of_pairs
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_compute.functions.text.digest import java_hash_order
from flowsql_compute.functions.text.regex import by_pattern, by_re2, extract_group, is_plain, limit_of, re2_of_all
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


#: What a function makes of the texts of one pattern.
OfPattern = Callable[[pa.Array, JavaPattern], pa.Array]


def _mapped(call: Invocation, text: Any, pattern: Any, type_: pa.DataType, of_pattern: OfPattern) -> pa.Array:
    """``of_pattern`` of texts and their pattern; NULL for a malformed one."""

    def of_text(part: pa.Array, java: str) -> pa.Array:
        found = translate_pattern(java)
        return pa.nulls(len(part), type_) if found is None else of_pattern(part, found)

    if isinstance(pattern, pa.Scalar):
        return of_text(_column(text, call.n), pattern.as_py()) if pattern.is_valid else pa.nulls(call.n, type_)
    return by_pattern(call, text, pattern, type_, of_text)


@scalar("REGEXP_COUNT(STRING, STRING) -> INT", nulls=NULLABLE, costly=True, spark=None)
def regexp_count(call: Invocation, text: Any, pattern: Any) -> Any:
    """The number of matches, empty ones too; NULL for a malformed pattern."""

    def counted(part: pa.Array, found: JavaPattern) -> pa.Array:
        members = byte_class(found.java) if len(part) >= KERNEL_ROWS else None
        if members is not None:
            return count_class(part, *members)
        re2 = re2_of_all(found, part)
        if re2 is not None and (made := by_re2(pc.count_substring_regex, part, re2)) is not None:
            return made
        every = found.finder(limit_of(call)).every
        return map_distinct(part, lambda word: sum(1 for _ in every(word)), pa.int32())

    return _mapped(call, text, pattern, pa.int32(), counted)


@scalar("REGEXP_INSTR(STRING, STRING) -> INT", nulls=NULLABLE, costly=True, spark=None)
def regexp_instr(call: Invocation, text: Any, pattern: Any) -> Any:
    """Where the first match begins, counted in UTF-16 units from 1; 0 without one, NULL for a malformed pattern."""

    def placed(part: pa.Array, found: JavaPattern) -> pa.Array:
        if (found.re2 is not None or found.plain_re2 is not None) and all_ascii(part):
            re2 = found.re2 if found.re2 is not None or not is_plain(part) else found.plain_re2
            if re2 is not None and (made := by_re2(pc.find_substring_regex, part, re2)) is not None:
                return pc.add(made, pa.scalar(1, pa.int32()))
        first = found.finder(limit_of(call)).first

        def one(word: str) -> int:
            match = first(word)
            return 0 if match is None else len(word[: match.start()].encode("utf-16-le", "surrogatepass")) // 2 + 1

        return map_distinct(part, one, pa.int32())

    return _mapped(call, text, pattern, pa.int32(), placed)


@scalar("REGEXP_SUBSTR(STRING, STRING) -> STRING", nulls=NULLABLE, costly=True, spark=None)
def regexp_substr(call: Invocation, text: Any, pattern: Any) -> Any:
    """The first match; NULL without one or for a malformed pattern."""
    return _mapped(call, text, pattern, pa.string(), lambda part, found: extract_group(call, part, found.java, 0))


@scalar("REGEXP_EXTRACT_ALL(STRING, STRING, [INTEGER]) -> ARRAY<STRING>", nulls=NULLABLE, costly=True, spark=None)
def regexp_extract_all(call: Invocation, text: Any, pattern: Any, group: Any = None) -> Any:
    """Group ``group`` (1 if not given, 0: all) of each match; NULL for a malformed pattern or a group it lacks."""
    type_ = pa.list_(pa.string())
    number = pa.scalar(1, pa.int32()) if group is None else group
    if isinstance(number, pa.Scalar):
        if not number.is_valid:
            return pa.nulls(call.n, type_)
        index = number.as_py()
        return _mapped(call, text, pattern, type_, lambda part, found: _all_groups(call, part, found, index))

    def of_groups(part: pa.Array, java: str, groups: pa.Array) -> pa.Array:
        found = translate_pattern(java)
        if found is None:
            return pa.nulls(len(part), type_)
        every = found.finder(limit_of(call)).every

        def one(word: str, wanted: int) -> list[str | None] | None:
            return [match[wanted] for match in every(word)] if 0 <= wanted <= found.groups else None

        return map_rows([part, groups], one, type_)

    return by_pattern(call, text, _column(pattern, call.n), type_, of_groups, (number,))


#: ``([0-9]+)``: one group around all of a match.
_WHOLE_GROUP = re.compile(r"\(([^()?][^()]*)\)")


def _all_groups(call: Invocation, text: pa.Array, pattern: JavaPattern, group: int) -> pa.Array:
    """A group of all matches of one pattern."""
    if not 0 <= group <= pattern.groups:
        return pa.nulls(len(text), pa.list_(pa.string()))
    finder = pattern.finder(limit_of(call))
    # Matches that are not empty and have the group, and no other one, need no objects of their own.
    if pattern.may_be_empty or group != pattern.groups or group > 1 or group in pattern.optional:
        every = finder.every
        return map_distinct(text, lambda word: [match[group] for match in every(word)], pa.list_(pa.string()))
    whole = _WHOLE_GROUP.fullmatch(pattern.java)
    members = byte_class(pattern.java if whole is None else whole[1]) if len(text) >= KERNEL_ROWS else None
    if members is not None:
        return class_matches(text, *members)
    encoded = pc.dictionary_encode(text)
    found: list[str] = []
    sizes = [0]
    # Of one distinct text after another, all into one list.
    for word in encoded.dictionary.to_pylist():
        found += finder.all_texts(word)
        sizes.append(len(found))
    return pc.take(pa.ListArray.from_arrays(pa.array(sizes, pa.int32()), pa.array(found, pa.string())), encoded.indices)


# Maps


@scalar(
    "STR_TO_MAP(STRING) -> MAP<STRING, STRING>",
    "STR_TO_MAP(STRING, STRING, STRING) -> MAP<STRING, STRING>",
    nulls=NULLABLE,
    raises=True,
    spark=None,
)
def str_to_map(call: Invocation, text: Any, pairs: Any = None, between: Any = None) -> Any:
    """Pairs between ``pairs`` (``,``), key and value between ``between`` (``=``), both Java patterns; the last wins."""
    type_ = pa.map_(pa.string(), pa.string())
    marks = ("," if pairs is None else _plain_mark(pairs), "=" if between is None else _plain_mark(between))
    if marks[0] is not None and marks[1] is not None and isinstance(text, pa.Array) and len(text) >= KERNEL_ROWS:
        return maps_of_pairs(text, marks[0], marks[1], type_)
    limit_s = limit_of(call)
    if pairs is None:
        return map_distinct(text, lambda word: _to_map(word, ",", "=", limit_s), type_)
    columns = [_column(text, call.n), pairs, between]
    return map_rows(columns, lambda word, outer, inner: _to_map(word, outer, inner, limit_s), type_)


def _plain_mark(pattern: Any) -> str | None:
    """The text that a constant pattern stands for, if it stands for nothing else."""
    plain = isinstance(pattern, pa.Scalar) and pattern.is_valid and _PLAIN_MARK.fullmatch(pattern.as_py()) is not None
    return pattern.as_py() if plain else None


_PLAIN_MARK = re.compile(r"[A-Za-z0-9 ,;:=/_&#@!%~'\"<>-]+")


def _to_map(word: str, pairs: str, between: str, limit_s: float) -> list[tuple[str, str | None]]:
    made: dict[str, str | None] = {}
    outer, inner = translate_pattern(pairs), translate_pattern(between)
    if outer is None or inner is None:
        raise ExecutionError("bad-pattern", f"Malformed pattern '{pairs if outer is None else between}'")
    pieces = java_split(word, outer.finder(limit_s), 0) if word else []
    of_pair = inner.finder(limit_s)
    for pair in pieces:
        key, *value = java_split(pair, of_pair, 2)
        made[key] = value[0] if value else None
    return [(key, made[key]) for key in java_hash_order(list(made), len(pieces))]


def java_split(text: str, pattern: Finder, limit: int) -> list[str]:
    """Java's ``String.split``: at most ``limit`` pieces; with 0 any number, without empty ones at the end.

    >>> comma = translate_pattern(",")
    >>> java_split("a,b,,", comma.finder(1.0), 0)
    ['a', 'b']
    """
    made: list[str] = []
    place = 0
    for match in pattern.every(text):
        if limit and len(made) == limit - 1:
            break
        if match.end() == 0:
            continue
        made.append(text[place : match.start()])
        place = match.end()
    made.append(text[place:])
    while not limit and len(made) > 1 and not made[-1]:
        made.pop()
    return made if limit or len(made) > 1 or made[0] or not text else []
