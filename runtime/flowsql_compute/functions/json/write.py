"""Functions that write JSON text: JSON_STRING, JSON_OBJECT, JSON_ARRAY, JSON_QUOTE, JSON.

Values become JSON columns (``eval.json_render``) that the constructors join. A constructor inside of another one, and
``JSON(...)``, stay JSON; any other text is a JSON string.

Source: Flink manual, "Built-in functions", JSON functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.json import plain_documents as json_kernels
from flowsql_compute.eval.json.document import Document, documents_of, json_string, json_text, well_formed
from flowsql_compute.eval.json.render import joined_objects, json_column
from flowsql_compute.eval.nested.lists import column_of
from flowsql_compute.functions.registry import CUSTOM, NULLABLE, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.expr import Call, Cast, Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t

#: Calls whose text is JSON already.
_RAW = frozenset({"JSON_OBJECT", "JSON_ARRAY", "JSON"})


def _is_raw(value: Expr) -> bool:
    while isinstance(value, Cast) and value.operand.type.same(value.type):
        value = value.operand
    return isinstance(value, Call) and value.function in _RAW


def _check_writable(type_: t.LogicalType, span: Span | None) -> None:
    """BindError for types that Flink does not write as JSON."""
    match type_:
        case t.ArrayType(element=inner) | t.MultisetType(element=inner):
            _check_writable(inner, span)
        case t.MapType(key=key, value=inner):
            if not isinstance(key, t.CharacterType):
                raise BindError(
                    "json-type",
                    f"Type '{key}' is not supported for JSON conversion. The key type must be a character string.",
                    span,
                )
            _check_writable(inner, span)
        case t.RowType(fields=fields):
            for field in fields:
                _check_writable(field.type, span)
        case (
            t.CharacterType() | t.BooleanType() | t.NumericType() | t.BinaryStringType() | t.TimestampType()
            | t.TimestampLtzType() | t.VariantType() | t.NullType()
        ):  # fmt: skip
            pass
        case _:
            raise BindError("json-type", f"Type '{type_}' is not scalar or cannot be converted into JSON.", span)


def _as_json(value: Expr) -> Expr:
    """The JSON text of a value."""
    if _is_raw(value):
        return value
    if isinstance(value, Literal) and value.value is None:
        return Literal(None, t.STRING, value.span)
    _check_writable(value.type, value.span)
    return Call("JSON_STRING", (value,), t.VarCharType(nullable=value.type.nullable), (), value.span)


@scalar("JSON_STRING(ANY) -> STRING", rewrite=lambda args, span: _as_json(args[0]), spark=None)
def json_string_(call: Invocation, value: Any) -> Any:
    """A value as JSON text; NULL stays NULL."""
    return json_column(column_of(value, call.n), call.arg_types[0], call.context)


def _refuse(args: Sequence[Expr], options: dict[str, Any]) -> None:
    if "format_json" in options:
        raise BindError(
            "function-not-found", "No match found for function signature FORMAT JSON", None, "write JSON(x)"
        )
    for arg in args:
        if isinstance(arg, Literal) and isinstance(arg.type, t.NullType):
            raise BindError("illegal-null", "Illegal use of 'NULL'", arg.span, "write CAST(NULL AS <type>)")


def _constructed(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    _refuse(args, options)
    return t.VarCharType(nullable=False)


def _object_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    _refuse(args, options)
    keys = args[::2]
    return t.VarCharType(nullable=False) if all(isinstance(key.type, t.CharacterType) for key in keys) else None


def _check_keys(args: Sequence[Expr], span: Span | None) -> None:
    for key in args[::2]:
        if isinstance(key.type, t.CharacterType) and key.type.nullable:
            raise BindError("json-key", "a key of JSON_OBJECT must not be NULL", key.span or span)


@scalar("JSON_OBJECT(ANY...) -> STRING", nulls=CUSTOM, returns=_object_type, check=_check_keys,
        coerce=lambda args, type_: tuple(_as_json(arg) if place % 2 else arg for place, arg in enumerate(args)),
        spark=None)  # fmt: skip
def json_object(call: Invocation, *parts: Any) -> Any:
    """A JSON object of keys and values, its keys sorted; NULLs are written unless ABSENT ON NULL."""
    absent = call.option("null_clause", "NULL ON NULL") == "ABSENT ON NULL"
    if not parts:
        return column_of(pa.scalar("{}"), call.n)
    keys = [column_of(key, call.n) for key in parts[::2]]
    if all(isinstance(key, pa.Scalar) for key in parts[::2]):
        # The last of equal keys counts.
        written = {key.as_py(): value for key, value in zip(parts[::2], parts[1::2], strict=True)}
        named = [(json_string(key), written[key]) for key in sorted(written)]
        entries = [pc.binary_join_element_wise(f"{key}:", column_of(value, call.n), "") for key, value in named]
        if not absent:
            entries = [
                pc.coalesce(entry, pa.scalar(f"{key}:null")) for entry, (key, _) in zip(entries, named, strict=True)
            ]
        return _joined(entries, "{", "}", call.n)
    # Keys that differ from row to row.
    owners = np.tile(np.arange(call.n), len(keys))
    values = pa.concat_arrays([column_of(value, call.n) for value in parts[1::2]])
    return joined_objects(owners, pa.concat_arrays(keys), values, call.n, absent)


@scalar("JSON_ARRAY(ANY...) -> STRING", nulls=CUSTOM, returns=_constructed,
        coerce=lambda args, type_: tuple(_as_json(arg) for arg in args), spark=None)  # fmt: skip
def json_array(call: Invocation, *parts: Any) -> Any:
    """A JSON array of values; NULLs are left out unless NULL ON NULL."""
    if not parts:
        return column_of(pa.scalar("[]"), call.n)
    entries = [column_of(value, call.n) for value in parts]
    if call.option("null_clause", "ABSENT ON NULL") == "NULL ON NULL":
        entries = [pc.fill_null(entry, "null") for entry in entries]
    return _joined(entries, "[", "]", call.n)


def _joined(entries: list[Any], opening: str, closing: str, n: int) -> Any:
    """The entries of each row with commas between, NULLs left out."""
    if not any(entry.null_count for entry in entries):
        return pc.binary_join_element_wise(opening, pc.binary_join_element_wise(*entries, ","), closing, "")
    # Arrow's own way to skip NULLs loses rows that have nothing else.
    led = [pc.fill_null(pc.binary_join_element_wise(",", entry, ""), "") for entry in entries]
    inner = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*led, ""), 1)
    return pc.binary_join_element_wise(opening, inner, closing, "")


@scalar("JSON(STRING) -> STRING", nulls=NULLABLE, raises=True, spark=None)
def json(call: Invocation, text: Any) -> Any:
    """A text that is JSON already, for JSON_OBJECT and JSON_ARRAY; NULL of a blank one. Fails where it is none."""

    def checked(document: Document) -> str | None:
        root = document.exact()
        if document.blank:
            return None
        if document.broken is not None:
            raise ExecutionError("bad-json", f"Invalid JSON string in JSON(value) function: {document.broken}")
        return json_text(root)

    def parsed(column: Any) -> Any:
        return documents_of(column).map(checked, pa.string())

    column = column_of(text, call.n)
    if not json_kernels.is_large(column):
        return parsed(column)
    data, low, high = json_kernels.whole(column)
    made = json_kernels.compact(data, low, high, ordered=True, trimmed=False)
    return json_kernels.with_left(column, made.text, (made.state == 0) & (low >= 0), parsed)


_UNSAFE = re.compile(r'["\\/\n\r\t\x08\f\x80-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


@scalar("JSON_QUOTE(STRING) -> STRING", spark=None)
def json_quote(call: Invocation, text: Any) -> Any:
    """A text as a JSON string literal of ASCII characters alone, slashes escaped."""
    column = column_of(text, call.n)
    made = json_kernels.quoted(column, _SHORT) if json_kernels.is_large(column) else None
    if made is not None:
        return made
    return map_distinct(column, lambda word: f'"{_UNSAFE.sub(_escaped, word)}"', pa.string())


def _escaped(found: re.Match[str]) -> str:
    short = _SHORT.get(found[0])
    if short is not None:
        return short
    code = ord(found[0])
    # Flink writes the whole code point where the first half of a surrogate pair belongs, then the second half.
    return f"\\u{code:04x}" if code < 0x10000 else f"\\u{code:x}\\u{0xDC00 + (code & 0x3FF):x}"


_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt])|(.?))', re.DOTALL)
_MEANT = {letter[1]: character for character, letter in _SHORT.items()}


@scalar("JSON_UNQUOTE(STRING) -> STRING", spark=None)
def json_unquote(call: Invocation, text: Any) -> Any:
    """What stands between quotes, escapes resolved; a text without quotes or with a wrong escape as it is."""
    column = column_of(text, call.n)
    if not json_kernels.is_large(column):
        return map_distinct(column, _unquoted, pa.string())
    made, left = json_kernels.unquoted(column, _MEANT)
    return json_kernels.with_left(column, made, left, lambda rows: map_distinct(rows, _unquoted, pa.string()))


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    if any(found[3] is not None for found in _ESCAPE.finditer(inner)):
        return text
    made = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _MEANT[found[2]], inner)
    # Escaped halves of a surrogate pair make one character.
    return well_formed(made.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"))
