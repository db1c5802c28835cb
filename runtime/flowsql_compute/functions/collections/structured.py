"""Structured types in SQL: OBJECT_OF makes an object of a named class, OBJECT_UPDATE changes fields of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.columns import validity
from flowsql_compute.eval.nested.lists import column_of
from flowsql_compute.functions.registry import CUSTOM, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, InternalError
from flowsql_core.expr import Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

_CLASS_NAME = re.compile(r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)*")


def _text_of(arg: Expr) -> str | None:
    return arg.value if isinstance(arg, Literal) and isinstance(arg.type, t.CharacterType) else None


def _pairs(args: Sequence[Expr]) -> list[tuple[str, Expr]]:
    """Names and values behind the first argument; names are literals once the call is checked."""
    return [(_text_of(name) or "", value) for name, value in zip(args[1::2], args[2::2], strict=True)]


def _check_names(args: Sequence[Expr], span: Span | None) -> None:
    seen: set[str] = set()
    for place, arg in enumerate(args[1::2]):
        position = 2 * place + 2
        name = _text_of(arg)
        if name is None:
            raise BindError(
                "object-field",
                f"The field key at position {position} must be a non-nullable character string, but was {arg.type}.",
                arg.span or span,
            )
        if name in seen:
            raise BindError("object-field", f"The field name '{name}' at position {position} is repeated.", span)
        seen.add(name)
    for arg in args[2::2]:
        if isinstance(arg.type, t.NullType):
            raise BindError("illegal-null", "Illegal use of 'NULL'", arg.span or span, "write CAST(NULL AS <type>)")


def _check_pairs(name: str, args: Sequence[Expr], span: Span | None) -> None:
    if len(args) % 2 == 0:
        raise BindError("argument-count", f"No match found for function signature {name}: a field has no value", span)
    _check_names(args, span)


def _check_object(args: Sequence[Expr], span: Span | None) -> None:
    name = _text_of(args[0])
    if name is None:
        raise BindError(
            "object-class",
            "The first argument must be a non-nullable character string literal representing the class name.",
            args[0].span or span,
        )
    if _CLASS_NAME.fullmatch(name) is None:
        raise BindError(
            "object-class",
            f"Invalid class name '{name}'. The class name must comply with JVM identifier rules.",
            args[0].span or span,
        )
    _check_pairs("OBJECT_OF", args, span)


def _object_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    fields = tuple(t.Field(name, value.type) for name, value in _pairs(args))
    return t.StructuredType(class_name=_text_of(args[0]) or "", fields=fields)


@scalar("OBJECT_OF(STRING, ANY...) -> ROW", nulls=CUSTOM, check=_check_object, returns=_object_type, spark=None)
def object_of(call: Invocation, class_name: Any, *parts: Any) -> Any:
    """An object of a class with named fields: ``OBJECT_OF('shop.Item', 'sku', 'A1', 'qty', 3)``."""
    type_ = to_arrow(call.type)
    columns = [column_of(value, call.n) for value in parts[1::2]]
    if not columns:
        return pa.StructArray.from_buffers(type_, call.n, [None], children=[])
    return pa.StructArray.from_arrays(columns, fields=list(type_))


def _check_update(args: Sequence[Expr], span: Span | None) -> None:
    whole = args[0].type
    if not isinstance(whole, t.StructuredType):
        raise BindError("object-type", f"The first argument must be a structured type, but was {whole}.", span)
    _check_pairs("OBJECT_UPDATE", args, span)
    known = [field.name for field in whole.fields]
    for place, (name, _) in enumerate(_pairs(args)):
        if name not in known:
            raise BindError(
                "object-field",
                f"The field name '{name}' at position {2 * place + 2} is not part of the structured type attributes. "
                f"Available attributes: [{', '.join(known)}].",
                span,
            )


def _updated_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    whole = args[0].type
    if not isinstance(whole, t.StructuredType):
        return None
    new = {name: value.type for name, value in _pairs(args)}
    fields = tuple(t.Field(field.name, new.get(field.name, field.type)) for field in whole.fields)
    return t.StructuredType(class_name=whole.class_name, fields=fields)


@scalar("OBJECT_UPDATE(ROW, ANY...) -> ROW", nulls=CUSTOM, check=_check_update, returns=_updated_type, spark=None)
def object_update(call: Invocation, whole: Any, *parts: Any) -> Any:
    """The object with other values in the named fields; NULL stays NULL."""
    if not isinstance(call.type, t.StructuredType):
        raise InternalError("OBJECT_UPDATE makes an object")
    column = column_of(whole, call.n)
    new = {
        column_of(name, 1)[0].as_py(): column_of(value, call.n)
        for name, value in zip(parts[::2], parts[1::2], strict=True)
    }
    columns = [
        new[field.name] if field.name in new else pc.struct_field(column, [place])
        for place, field in enumerate(call.type.fields)
    ]
    valid = validity(column)
    mask = None if valid is None else pa.array(~valid)
    return pa.StructArray.from_arrays(columns, fields=list(to_arrow(call.type)), mask=mask)
