"""Kernels over JSON columns give what parsed documents give, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.json import plain_documents as json_kernels
from flowsql_compute.eval.json.variant import names_of, parse_variant, plain_parts, stored, value_of
from flowsql_compute.functions.registry import Options, resolve_call
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import InputRef, Literal
from flowsql_core.types import logical as t

Call = tuple[str, str | None, Options]

PATHS = ("$", "$.a", "lax $.a", "$.a.b", "lax $.a[1]", "$[0]", "$[1].a", "$['b'][0].é")


def _query(**options: Any) -> Options:
    return tuple(options.items())


ALONE = ("IS JSON", "IS JSON OBJECT", "IS JSON ARRAY", "IS JSON SCALAR", "IS NOT JSON", "TRY_PARSE_JSON",
         "JSON_UNQUOTE", "JSON_QUOTE")  # fmt: skip
BY_PATH: tuple[tuple[str, Options], ...] = (
    ("JSON_VALUE", ()),
    ("JSON_VALUE", _query(on_empty="DEFAULT")),
    ("JSON_VALUE", _query(on_error="DEFAULT")),
    ("JSON_QUERY", ()),
    ("JSON_QUERY", _query(on_empty="EMPTY ARRAY", on_error="EMPTY OBJECT")),
    ("JSON_QUERY", _query(wrapper="WITH CONDITIONAL ARRAY WRAPPER")),
    ("JSON_EXISTS", ()),
    ("JSON_EXISTS", _query(on_error="TRUE")),
    ("JSON_EXISTS", _query(on_error="UNKNOWN")),
)
FAILING: tuple[tuple[str, Options], ...] = (
    ("JSON_VALUE", _query(on_error="ERROR")),
    ("JSON_VALUE", _query(on_empty="ERROR")),
    ("JSON_VALUE", _query(returning=t.INT)),
    ("JSON_VALUE", _query(returning=t.DOUBLE)),
    ("JSON_VALUE", _query(returning=t.BOOLEAN)),
    ("JSON_QUERY", _query(on_error="ERROR")),
    ("JSON_QUERY", _query(on_empty="ERROR")),
    ("JSON_EXISTS", _query(on_error="ERROR")),
)

ODD = [
    "", " ", "nul", "null", "-", "-0", "-0.0", "0.0", "-0.5", "01", "1.", ".5", "1e5", "1E-3", "0.001", "0.0000001",
    "1.50", "100.00", "123456789012345678", "1234567890123456789", "12345678901234567890123", "3000000000", "true",
    "false x", "[1] x", "{}", "[]", "[,]", "[1,]", '{"a":1,}', '{"a"}', '{"a":}', "{,}", "[1 2]", '{"a":1 "b":2}',
    '{"a":1,"a":2}', '{"a":{"b":1},"a":{"c":2}}', '{"a":{"b":1},"a":3}', '{"b":1,"a":2,"b":3}', '{"\\u0061":1}',
    '{"a":"\\u0061"}', '{"a":"x\\/y"}', '{"a":"\\ud800"}', '{"a":"\\"q\\""}', '{"a":"tab\there"}', '"\\x"', '"', '"a',
    '"a"', '"a" ', '"a\\nb"', '"\\u00e9"', '"\\ud83d\\ude00"', '"x\\"',
    '"\\u12"', '"\\u00zz"', '"\\/\\b\\f\\r\\t"',
    "[[[[1]]]]", "[" * 62 + "]" * 62,
    "[" * 63 + "]" * 63, "[" * 70 + "]" * 70, "[}", "{]", "[1}", '{"a":[1,{"b":[2]}],"b":[{"é":"ü"}]}', "\ufeff1",
    '{"é":{"z":1,"b":[]},"a":{"z":1.50,"b":null}}', '{"ab":1,"a":2,"b":3,"":4}', "NaN",
    "\u20ac \U0001f600 \U0010ffff / \x01 \x7f",
]  # fmt: skip

_KEYS = st.sampled_from(["a", "b", "é", "ab", "", "z"])
_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.text("ab\"\\/\n\té\x01\U0001f600", max_size=4),
    st.decimals(-1000, 1000, places=3, allow_nan=False).map(float), st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=8
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A JSON text, spaced in one way or another; now and then with a character lost or put in."""
    spacing = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r")]))
    text = json.dumps(draw(_VALUES), separators=spacing, ensure_ascii=draw(st.booleans()))
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(["", *'"{}[],: 0.-e\\'])) + text[place + draw(st.integers(0, 1)) :]
    return text


def _value(column: pa.Array, name: str, path: str | None, options: Options, large: bool) -> list[Any]:
    args: list[Any] = [InputRef(0, t.STRING)]
    if path is not None:
        args.append(Literal(path, t.VarCharType(nullable=False)))
        if "DEFAULT" in dict(options).values():
            args.append(Literal("else", t.VarCharType(nullable=False)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_kernels, "KERNEL_ROWS", 1 if large else 10**9)
        made = compile_projections([resolve_call(name, tuple(args), options)], EvalContext())([column], len(column))
    found: list[Any] = made[0].to_pylist()
    return found


def _calls(failing: bool) -> Iterator[Call]:
    for name, options in FAILING if failing else BY_PATH:
        for path in PATHS:
            yield name, path, options
    for name in ("PARSE_JSON", "JSON") if failing else ALONE:
        yield name, None, ()


def _same(column: pa.Array) -> None:
    for name, path, options in _calls(failing=False):
        quick, slow = (_value(column, name, path, options, large) for large in (True, False))
        for text, one, other in zip(column.to_pylist(), quick, slow, strict=True):
            assert one == other, (name, path, options, text)


def _outcome(column: pa.Array, call: Call, large: bool) -> list[Any] | str:
    try:
        return _value(column, *call, large)
    except ExecutionError as error:
        return str(error)


def test_odd_documents() -> None:
    column = pa.array([*ODD, None])
    _same(column)
    _same(pa.concat_arrays([pa.array(["{}", None]), column])[1:])


@pytest.mark.parametrize("text", ODD)
def test_failures_of_odd_documents(text: str) -> None:
    column = pa.array(['{"a":{"b":1}}', text])[1:]
    for call in _calls(failing=True):
        assert _outcome(column, call, True) == _outcome(column, call, False), call


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.none() | texts(), min_size=1, max_size=12))
def test_documents(documents: list[str | None]) -> None:
    column = pa.array(documents, pa.string())
    _same(column)
    for text in documents[:2]:
        for call in _calls(failing=True):
            alone = pa.array([text], pa.string())
            assert _outcome(alone, call, True) == _outcome(alone, call, False), (call, text)


def test_many_members_are_put_in_order() -> None:
    shuffled = {f"k{(i * 37) % 101}": i for i in range(100)}
    _same(pa.array([json.dumps(shuffled), json.dumps(dict(list(shuffled.items())[:64])), json.dumps({"a": shuffled})]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"b": [1, 2.50, "x\\n"], "a": {"d": null, "c": true}}', '{"a":{"c":true,"d":null},"b":[1,2.5,"x\\n"]}'),
        ("[ ]", "[]"),
        ("1.0", "1"),
    ],
)
def test_plain_documents_are_not_left(text: str, shown: str) -> None:
    compact = json_kernels.compact(*json_kernels.whole(pa.array([text])), ordered=True, trimmed=True)
    assert compact.text.to_pylist() == [shown]
    assert json_kernels.find(pa.array([text]), ()).kind[0] != json_kernels.ODD


@given(st.lists(_VALUES, min_size=1, max_size=8), st.sampled_from(["a", "ab", 1, 2]), st.sampled_from(["b", "z", 1]))
def test_parts_of_variants_keep_the_names_of_their_document(
    values: list[Any], first: str | int, next: str | int
) -> None:
    column: pa.Array = pa.array([*(parse_variant(json.dumps(value), False) for value in values), None], pa.string())
    for step in (first, next):
        quick, left = plain_parts(column, step)
        slow = [None if text is None else _part(text, step) for text in column.to_pylist()]
        made = [one if take else two for take, one, two in zip(left, slow, quick.to_pylist(), strict=True)]
        assert made == slow
        column = pa.array(slow, pa.string())


def _part(text: str, step: str | int) -> str | None:
    value = value_of(text)
    if isinstance(step, str):
        return stored(value[step], names_of(text, value)) if isinstance(value, dict) and step in value else None
    return stored(value[step - 1], names_of(text, value)) if isinstance(value, list) and step <= len(value) else None
