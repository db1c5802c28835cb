"""How the stores of an operator were made, as JSON: equal calls in equal order make databases of equal layout.

Files of a database are taken over only by an operator that made the same calls; whoever else wants what is in them
makes the same stores once more and reads through those.
"""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from flowsql_core.errors import InternalError
from flowsql_runtime.state.stores import SortColumn, StoredColumn

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B", bound="RecordsCalls")

# Python fills its table for decoding with the first call and without a lock: of two tasks that restore at the same time
# one would read a table that is half filled (CPython 3.11, ``base64.b85decode``). Modules are imported by one thread.
base64.b85decode(b"")

#: Parameters that say nothing of what is stored.
_IGNORED: Final = frozenset({"self", "sharers"})


class RecordsCalls(Protocol):
    """A backend that remembers how its stores were made."""

    #: Names of methods with their arguments, in order.
    calls: list[list[Any]]

    def indexes(self) -> Sequence[Any]:
        """The indexes that it made, in order."""
        ...


def recorded(method: Callable[Concatenate[B, P], R]) -> Callable[Concatenate[B, P], R]:
    """A method of a backend that makes a store or an index, and notes the call."""
    signature = inspect.signature(method)

    @wraps(method)
    def call(self: B, /, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        indexes = self.indexes()
        given = {name: _plain(value, indexes) for name, value in bound.arguments.items() if name not in _IGNORED}
        made = method(self, *args, **kwargs)
        self.calls.append([method.__name__, given])
        return made

    return call


def replay(calls: Sequence[Sequence[Any]], backend: RecordsCalls) -> None:
    """Make the same stores in another backend."""
    for name, given in calls:
        arguments = {key: _revived(value, backend.indexes()) for key, value in given.items()}
        getattr(backend, name)(**arguments)


def _plain(value: Any, indexes: Sequence[Any]) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case np.integer():
            return int(value)
        case pa.DataType():
            return {"type": base64.b85encode(pa.schema([("", value)]).serialize().to_pybytes()).decode()}
        case StoredColumn(name=name, type=type_, nullable=nullable):
            return {"column": [name, _plain(type_, indexes), nullable]}
        case SortColumn(index=index, ascending=ascending, nulls_first=nulls_first):
            return {"sort": [index, ascending, nulls_first]}
        case list() | tuple():
            return [_plain(one, indexes) for one in value]
    for number, index in enumerate(indexes):
        if index is value:
            return {"index": number}
    raise InternalError(f"a store was made with {value!r}, which has no form in JSON")


def _revived(value: Any, indexes: Sequence[Any]) -> Any:
    match value:
        case {"type": text}:
            return pa.ipc.read_schema(pa.py_buffer(base64.b85decode(text))).field(0).type
        case {"column": [name, type_, nullable]}:
            return StoredColumn(name, _revived(type_, indexes), nullable)
        case {"sort": [index, ascending, nulls_first]}:
            return SortColumn(index, ascending, nulls_first)
        case {"index": number}:
            return indexes[number]
        case list():
            return [_revived(one, indexes) for one in value]
        case _:
            return value
