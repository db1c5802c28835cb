"""Python objects by key: what the row-wise state of user functions stands on.

A slot is a key token (``flowsql_core.stream.keys``), or the pair of token and namespace (a window). A snapshot holds
one row a key group: the canonical bytes of one of its keys, which name the group, and all entries of the group pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import pyarrow as pa

from flowsql_compute.keys import key_groups
from flowsql_core.errors import ExecutionError
from flowsql_core.interpreter.object_bytes import object_bytes
from flowsql_core.stream.keys import token_bytes, token_type

_KEY: Final = "k0"
_ENTRIES: Final = "entries"
#: What an entry is taken for where somebody counts bytes: nobody measures Python objects row by row.
ENTRY_BYTES: Final = 200


class Expiry(Protocol):
    """What a store knows of objects that expire."""

    #: Objects outside memory that are removed with one reading of the clock; 0: as many as the backend's options say;
    #: None: they stay until they are touched.
    piece: int | None
    #: Files on disk older than this are written anew, without what was removed; 0: they are not; None: as the backend's
    #: options say.
    compaction_ms: int | None

    def now_ms(self) -> int:
        """The clock."""
        ...

    def expires_ms(self, value: Any) -> int:
        """When the first part of an object expires: from that moment on it is gone."""
        ...

    def cleaned(self, value: Any) -> Any:
        """What lives of an object; None for nothing."""
        ...


class ObjectStore:
    """Slot -> object; ``entries`` is open to the handles that read and write it.

    Args:
        name: for messages.
        max_parallelism: number of key groups.
        namespaced: slots are pairs.
        expiry: of objects that expire; snapshots hold what lives of them.
    """

    def __init__(
        self,
        name: str,
        max_parallelism: int,
        namespaced: bool = False,
        expiry: Expiry | None = None,
    ) -> None:
        self.name = name
        self.entries: dict[Any, Any] = {}
        self._max_parallelism = max_parallelism
        self.namespaced = namespaced
        self.expiry = expiry

    @property
    def nbytes(self) -> int:
        """An estimate."""
        return ENTRY_BYTES * len(self.entries)

    def save(self) -> Any:
        """A table of one row a key group."""
        items: Iterable[tuple[Any, Any]] = self.entries.items()
        if self.expiry is not None:
            cleaned = self.expiry.cleaned
            kept = ((slot, cleaned(value)) for slot, value in items)
            items = [(slot, value) for slot, value in kept if value is not None]
        if self.namespaced:
            return packed(self.name, ((item[0][0], item) for item in items), self._max_parallelism)
        return packed(self.name, ((item[0], item) for item in items), self._max_parallelism)

    def load(self, table: Any) -> None:
        """Insert what saved tables hold."""
        self.entries.update(unpacked(table))


def packed(name: str, items: Iterable[tuple[Any, Any]], max_parallelism: int) -> Any:
    """A table of (key token, anything) pairs, one row a key group; the anythings keep their order.

    Raises:
        ExecutionError: an object cannot be pickled.
    """
    pairs = list(items)
    keys = pa.array([token_bytes(token) for token, _ in pairs], pa.binary())
    by_group: dict[int, tuple[int, list[Any]]] = {}
    for row, (group, (_, item)) in enumerate(zip(key_groups([keys], max_parallelism).tolist(), pairs, strict=True)):
        by_group.setdefault(group, (row, []))[1].append(item)
    return pa.table(
        {
            _KEY: keys.take(pa.array([row for row, _ in by_group.values()], pa.int64())),
            _ENTRIES: pa.array([pickled(name, found) for _, found in by_group.values()], pa.large_binary()),
        }
    )


def unpacked(table: Any) -> Iterator[Any]:
    """The anythings of saved tables."""
    for blob in table.column(_ENTRIES):
        yield from pickle.loads(blob.as_buffer())


def pickled(name: str, items: list[Any]) -> bytes:
    """Items as bytes: entries (slot, object), or other things whose first part is a key token.

    Raises:
        ExecutionError: one cannot be pickled; it is named.
    """
    try:
        return object_bytes(items)
    except Exception as error:  # pickle raises many kinds
        culprit = next((item for item in items if not _can_be_pickled(item)), None)
        raise ExecutionError(
            "state-not-serializable",
            f"the state '{name}' cannot be saved: {_about(culprit)}{type(error).__name__}: {error}",
            hint="keep plain values in state",
        ) from error


def _can_be_pickled(item: Any) -> bool:
    try:
        object_bytes(item)
    except Exception:
        return False
    return True


def _about(item: Any) -> str:
    """Which value under which key, as far as an item says so."""
    match item:
        case ((token, _), value) | (token, value) if isinstance(token, str | int | bytes):
            return f"a value of type {type(value).__qualname__} under a key of type {token_type(token)}: "
    return ""
