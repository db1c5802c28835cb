"""VARIANT: PARSE_JSON, TRY_PARSE_JSON, access to parts by key and by place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.json import plain_documents as json_kernels
from flowsql_compute.eval.json.variant import names_of, parse_variant, plain_parts, plain_variants, stored, value_of
from flowsql_compute.eval.nested.lists import column_of
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Expr
from flowsql_core.types import logical as t


def _variant(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return t.VARIANT


def _parsed(call: Invocation, text: Any, duplicates: Any, parse: Callable[[str, bool], str | None]) -> Any:
    column = column_of(text, call.n)
    if isinstance(duplicates, pa.Scalar) and not duplicates.is_valid:
        return pa.nulls(call.n, pa.string())
    if duplicates is None or isinstance(duplicates, pa.Scalar):
        allowed = duplicates is not None and bool(duplicates.as_py())

        def parsed(rows: Any) -> Any:
            return map_distinct(rows, lambda word: parse(word, allowed), pa.string())

        if not json_kernels.is_large(column):
            return parsed(column)
        made, left = plain_variants(column)
        return json_kernels.with_left(column, made, left, parsed)
    return map_rows([column, duplicates], parse, pa.string())


@scalar("PARSE_JSON(STRING, [BOOLEAN]) -> BOOLEAN", returns=_variant, raises=True, costly=True, spark=None)
def parse_json(call: Invocation, text: Any, duplicates: Any = None) -> Any:
    """A JSON text as VARIANT. Fails on a wrong text, and on a key given twice unless the second argument is TRUE."""

    def parse(word: str, allowed: bool) -> str:
        try:
            return parse_variant(word, allowed)
        except ValueError as error:
            raise ExecutionError("bad-json", f"Failed to parse json string: {word}, {error}") from None

    return _parsed(call, text, duplicates, parse)


@scalar("TRY_PARSE_JSON(STRING, [BOOLEAN]) -> BOOLEAN", nulls=NULLABLE, returns=_variant, costly=True, spark=None)
def try_parse_json(call: Invocation, text: Any, duplicates: Any = None) -> Any:
    """A JSON text as VARIANT; NULL where PARSE_JSON fails."""

    def parse(word: str, allowed: bool) -> str | None:
        try:
            return parse_variant(word, allowed)
        except ValueError:
            return None

    return _parsed(call, text, duplicates, parse)


def _part_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return t.VARIANT if isinstance(args[1].type, t.IntegerType | t.CharacterType) else None


@scalar("ITEM(VARIANT, ANY) -> BOOLEAN", nulls=NULLABLE, returns=_part_type, raises=True, costly=True, spark=None)
def item(call: Invocation, holder: Any, index: Any) -> Any:
    """A part of a VARIANT: of an object by key, of an array by place from 1; NULL where there is none.

    Fails on a key of what is no object and on a place of what is no array.
    """
    column = column_of(holder, call.n)
    part = _member if isinstance(call.arg_types[1], t.CharacterType) else _element
    if isinstance(index, pa.Scalar) and index.is_valid and json_kernels.is_large(column):
        made, left = plain_parts(column, index.as_py())
        return json_kernels.with_left(column, made, left, lambda rows: map_rows([rows, index], part, pa.string()))
    return map_rows([column, index], part, pa.string())


def _member(text: str, key: str) -> str | None:
    value = value_of(text)
    if not isinstance(value, dict):
        raise ExecutionError(
            "variant-access",
            "String key access on variant requires an object variant, but a non-object variant was provided.",
        )
    return stored(value[key], names_of(text, value)) if key in value else None


def _element(text: str, place: int) -> str | None:
    value = value_of(text)
    if not isinstance(value, list):
        raise ExecutionError(
            "variant-access",
            "Integer index access on variant requires an array variant, but a non-array variant was provided.",
        )
    return stored(value[place - 1], names_of(text, value)) if 1 <= place <= len(value) else None
