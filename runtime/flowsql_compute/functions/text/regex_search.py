"""All matches of Java regular expressions: counting, places, pieces, and text cut into maps. Neighbour: ``regex``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.columns import all_ascii, spread
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.java.regex import translate_pattern
from flowsql_compute.eval.text.columns import KERNEL_ROWS, byte_class, class_matches, count_class
from flowsql_compute.eval.text.maps import maps_of_pairs
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_compute.functions.text.digest import java_hash_order
from flowsql_compute.functions.text.regex import extract_group, re2_of_all
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


def _mapped(call: Invocation, text: Any, pattern: Any, one: Callable[[str, str], Any], type_: pa.DataType) -> pa.Array:
    column = _column(text, call.n)
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid or translate_pattern(pattern.as_py()) is None:
            return pa.nulls(call.n, type_)
        java = pattern.as_py()
        return map_distinct(column, lambda word: one(word, java), type_)
    return map_rows([column, pattern], one, type_)


@scalar("REGEXP_COUNT(STRING, STRING) -> INT", nulls=NULLABLE, costly=True, spark=None)
def regexp_count(call: Invocation, text: Any, pattern: Any) -> Any:
    """The number of matches, empty ones too; NULL for a malformed pattern."""
    if isinstance(pattern, pa.Scalar) and pattern.is_valid and isinstance(text, pa.Array):
        java = pattern.as_py()
        members = byte_class(java) if len(text) >= KERNEL_ROWS else None
        if members is not None:
            return count_class(text, *members)
        re2 = re2_of_all(java)
        if re2 is not None:
            return pc.count_substring_regex(text, re2)
    return _mapped(call, text, pattern, _count, pa.int32())


def _count(word: str, java: str) -> int | None:
    translated = translate_pattern(java)
    return None if translated is None else sum(1 for _ in translated.python.finditer(word))


@scalar("REGEXP_INSTR(STRING, STRING) -> INT", nulls=NULLABLE, costly=True, spark=None)
def regexp_instr(call: Invocation, text: Any, pattern: Any) -> Any:
    """Where the first match begins, counted in UTF-16 units from 1; 0 without one, NULL for a malformed pattern."""
    if isinstance(pattern, pa.Scalar) and pattern.is_valid and isinstance(text, pa.Array):
        translated = translate_pattern(pattern.as_py())
        whole = translated is not None and all_ascii(text)
        if whole and translated is not None and translated.re2 is not None:
            return pc.add(pc.find_substring_regex(text, translated.re2), pa.scalar(1, pa.int32()))
    return _mapped(call, text, pattern, _instr, pa.int32())


def _instr(word: str, java: str) -> int | None:
    translated = translate_pattern(java)
    if translated is None:
        return None
    found = translated.python.search(word)
    return 0 if found is None else sum(1 + (letter > "\uffff") for letter in word[: found.start()]) + 1


@scalar("REGEXP_SUBSTR(STRING, STRING) -> STRING", nulls=NULLABLE, costly=True, spark=None)
def regexp_substr(call: Invocation, text: Any, pattern: Any) -> Any:
    """The first match; NULL without one or for a malformed pattern."""
    if isinstance(pattern, pa.Scalar) and pattern.is_valid:
        return extract_group(_column(text, call.n), pattern.as_py(), 0)
    return _mapped(call, text, pattern, _substr, pa.string())


def _substr(word: str, java: str) -> str | None:
    translated = translate_pattern(java)
    return None if translated is None else translated.group_of(word, 0)


@scalar("REGEXP_EXTRACT_ALL(STRING, STRING, [INTEGER]) -> ARRAY<STRING>", nulls=NULLABLE, costly=True, spark=None)
def regexp_extract_all(call: Invocation, text: Any, pattern: Any, group: Any = None) -> Any:
    """Group ``group`` (1 if not given, 0: all) of each match; NULL for a malformed pattern or a group it lacks."""
    type_ = pa.list_(pa.string())
    number = pa.scalar(1, pa.int32()) if group is None else group
    if isinstance(number, pa.Scalar):
        if not number.is_valid:
            return pa.nulls(call.n, type_)
        index = number.as_py()
        if isinstance(pattern, pa.Scalar) and pattern.is_valid and isinstance(text, pa.Array):
            made = _all_of_constant(text, pattern.as_py(), index)
            if made is not None:
                return made
        return _mapped(call, text, pattern, lambda word, java: _extract_all(word, java, index), type_)
    return map_rows([_column(text, call.n), pattern, number], _extract_all, type_)


#: ``([0-9]+)``: one group around all of a match.
_WHOLE_GROUP = re.compile(r"\(([^()?][^()]*)\)")


def _all_of_constant(text: pa.Array, java: str, group: int) -> pa.Array | None:
    """The matches of a pattern whose every match has the group, and which has no other one; None for other patterns."""
    translated = translate_pattern(java)
    if translated is None or group != translated.python.groups or group > 1 or group in translated.optional_groups:
        return None
    whole = _WHOLE_GROUP.fullmatch(java)
    members = byte_class(java if whole is None else whole[1]) if len(text) >= KERNEL_ROWS else None
    if members is not None:
        return class_matches(text, *members)
    encoded = pc.dictionary_encode(text)
    found: list[str] = []
    sizes = [0]
    # Of one distinct text after another, all into one list.
    for word in encoded.dictionary.to_pylist():
        found += translated.python.findall(word)
        sizes.append(len(found))
    return pc.take(pa.ListArray.from_arrays(pa.array(sizes, pa.int32()), pa.array(found, pa.string())), encoded.indices)


def _extract_all(word: str, java: str, group: int) -> list[str | None] | None:
    translated = translate_pattern(java)
    if translated is None or not 0 <= group <= translated.python.groups:
        return None
    return [match[group] for match in translated.python.finditer(word)]


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
    if pairs is None:
        return map_distinct(text, lambda word: _to_map(word, ",", "="), type_)
    return map_rows([_column(text, call.n), pairs, between], _to_map, type_)


def _plain_mark(pattern: Any) -> str | None:
    """The text that a constant pattern stands for, if it stands for nothing else."""
    plain = isinstance(pattern, pa.Scalar) and pattern.is_valid and _PLAIN_MARK.fullmatch(pattern.as_py()) is not None
    return pattern.as_py() if plain else None


_PLAIN_MARK = re.compile(r"[A-Za-z0-9 ,;:=/_&#@!%~'\"<>-]+")


def _to_map(word: str, pairs: str, between: str) -> list[tuple[str, str | None]]:
    made: dict[str, str | None] = {}
    outer, inner = translate_pattern(pairs), translate_pattern(between)
    if outer is None or inner is None:
        raise ExecutionError("bad-pattern", f"Malformed pattern '{pairs if outer is None else between}'")
    pieces = java_split(word, outer.python, 0) if word else []
    for pair in pieces:
        key, *value = java_split(pair, inner.python, 2)
        made[key] = value[0] if value else None
    return [(key, made[key]) for key in java_hash_order(list(made), len(pieces))]


def java_split(text: str, pattern: re.Pattern[str], limit: int) -> list[str]:
    """Java's ``String.split``: at most ``limit`` pieces; with 0 any number, without empty ones at the end.

    >>> java_split("a,b,,", re.compile(","), 0)
    ['a', 'b']
    """
    made: list[str] = []
    place = 0
    for match in pattern.finditer(text):
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
