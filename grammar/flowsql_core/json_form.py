"""Records as JSON and back: plans and catalog objects in files that outlive the process.

A record is an object with its class name under ``$`` and the fields that differ from their defaults; positions in SQL
texts are left out. Types are their text wherever that says all. Only the classes of the modules named here are read,
so a file cannot make anything else.
"""

from __future__ import annotations

import enum
import importlib
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from flowsql_core.errors import BindError, InternalError
from flowsql_core.types.logical import LogicalType
from flowsql_core.types.text import parse_type

_MODULES = (
    "flowsql_core.catalog",
    "flowsql_core.graph.expectation",
    "flowsql_core.expr",
    "flowsql_core.graph.constraints",
    "flowsql_core.graph.job",
    "flowsql_core.graph.lineage",
    "flowsql_core.graph.python_specs",
    "flowsql_core.graph.specs",
    "flowsql_core.python_call",
    "flowsql_core.row",
    "flowsql_core.types.logical",
)


def to_json(value: Any) -> Any:
    """What ``json.dumps`` takes for a record or a plain value.

    Raises:
        InternalError: the value is of a class that has no JSON form.
    """
    match value:
        case None | bool() | str():
            return value
        case enum.Enum():
            return {"$enum": f"{_known(type(value))}.{value.name}"}
        case int():
            return int(value)
        case float():
            return value if math.isfinite(value) else {"$float": str(value)}
        case Decimal():
            return {"$decimal": str(value)}
        case bytes():
            return {"$bytes": value.hex()}
        case tuple():
            return [to_json(item) for item in value]
        case frozenset():
            return {"$set": sorted((to_json(item) for item in value), key=str)}
        case Mapping():
            return {"$map": [[to_json(key), to_json(item)] for key, item in value.items()]}
        case LogicalType() if _says_all(value):
            return {"$type": str(value)}
    if not is_dataclass(value) or isinstance(value, type):
        raise InternalError(f"{type(value).__name__} has no JSON form")
    form: dict[str, Any] = {"$": _known(type(value))}
    for field in fields(value):
        item = getattr(value, field.name)
        if field.compare and not _is_default(field, item):
            form[field.name] = to_json(item)
    return form


def from_json(form: Any) -> Any:
    """The value that :func:`to_json` wrote.

    Raises:
        BindError: the form names a class or field that this version does not know.
    """
    if isinstance(form, list):
        return tuple(from_json(item) for item in form)
    if not isinstance(form, dict):
        return form
    match form:
        case {"$enum": str(name)}:
            class_name, _, member = name.partition(".")
            return _made(class_name, lambda cls: cls[member])
        case {"$float": str(text)}:
            return float(text)
        case {"$decimal": str(text)}:
            return Decimal(text)
        case {"$bytes": str(text)}:
            return bytes.fromhex(text)
        case {"$set": list(items)}:
            return frozenset(from_json(item) for item in items)
        case {"$map": list(items)}:
            return {from_json(key): from_json(value) for key, value in items}
        case {"$type": str(text)}:
            return parse_type(text)
        case {"$": str(name)}:
            values = {key: from_json(value) for key, value in form.items() if key != "$"}
            return _made(name, lambda cls: cls(**values))
    raise BindError("bad-json-form", f"The stored form has no class: {', '.join(map(repr, form))}")


def _made(name: str, make: Any) -> Any:
    cls = _classes().get(name)
    try:
        if cls is not None:
            return make(cls)
    except (KeyError, TypeError) as error:
        raise BindError(
            "bad-json-form", f"This version of FlowSQL does not know the stored form of {name}: {error}"
        ) from None
    raise BindError("bad-json-form", f"This version of FlowSQL does not know '{name}' of the stored form.")


def _known(cls: type) -> str:
    name: str = cls.__name__
    if _classes().get(name) is not cls:
        raise InternalError(f"{name} has no JSON form")
    return name


@cache
def _classes() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _MODULES:
        module = importlib.import_module(name)
        for item in vars(module).values():
            if (
                isinstance(item, type)
                and item.__module__ == name
                and (is_dataclass(item) or issubclass(item, enum.Enum))
            ):
                found[item.__name__] = item
    return found


def _is_default(field: Any, value: Any) -> bool:
    if field.default is not MISSING:
        return type(value) is type(field.default) and bool(value == field.default)
    return field.default_factory is not MISSING and bool(value == field.default_factory())


def _says_all(type_: LogicalType) -> bool:
    """Whether the text of a type reads back as the same type."""
    try:
        return parse_type(str(type_)) == type_
    except BindError:
        return False
