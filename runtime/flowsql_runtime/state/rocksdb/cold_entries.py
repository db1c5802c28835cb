"""Objects by slot, of which only those used lately are in memory."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from typing import Any, Final

from flowsql_core.stream.keys import token_bytes
from flowsql_runtime.state.object_store import ENTRY_BYTES, ObjectStore, pickled
from flowsql_runtime.state.rocksdb.database import Database, after

_PIECE: Final = 1024


class ColdEntries(dict[Any, Any]):
    """The entries of an ``ObjectStore``: a dictionary that looks into the database for what it lacks.

    What is in memory counts; the database may hold an older state of it. An entry that leaves and has expired is
    dropped.
    """

    def __init__(self, store: ObjectStore, number: int, database: Database) -> None:
        super().__init__()
        self._name = store.name
        self._namespaced = store.namespaced
        self._cleaned = store.cleaned
        self._prefix = number.to_bytes(2, "big")
        self._database = database
        #: Whether anything ever left memory.
        self._left = False
        #: Bytes that an entry takes on average, as far as known.
        self.entry_bytes = ENTRY_BYTES

    def _key(self, slot: Any) -> bytes:
        if not self._namespaced:
            return self._prefix + token_bytes(slot)
        token, namespace = slot
        plain = token_bytes(token)
        out = io.BytesIO()
        # Without a memo equal namespaces give equal bytes.
        pickler = pickle.Pickler(out, 5)
        pickler.fast = True
        pickler.dump(namespace)
        return self._prefix + len(plain).to_bytes(4, "big") + plain + out.getvalue()

    def _bring(self, slot: Any) -> bool:
        """Look for a slot that is not in memory; whether it is there now."""
        if not self._left or not _is_slot(slot):
            return False
        found = self._database.get_many([self._key(slot)])[0]
        if found is None:
            return False
        super().__setitem__(slot, pickle.loads(found)[0][1])
        return True

    def __contains__(self, slot: object) -> bool:
        return super().__contains__(slot) or self._bring(slot)

    def __missing__(self, slot: Any) -> Any:
        if self._bring(slot):
            return super().__getitem__(slot)
        raise KeyError(slot)

    def get(self, slot: Any, default: Any = None) -> Any:
        """The object of a slot."""
        return super().__getitem__(slot) if slot in self else default

    def setdefault(self, slot: Any, default: Any = None) -> Any:
        """The object of a slot, which is put there if there is none."""
        if slot not in self:
            super().__setitem__(slot, default)
        return super().__getitem__(slot)

    def pop(self, slot: Any, *default: Any) -> Any:
        """Take an object out."""
        if slot not in self and default:
            return default[0]
        found = self[slot]
        del self[slot]
        return found

    def __delitem__(self, slot: Any) -> None:
        if slot not in self:
            raise KeyError(slot)
        super().__delitem__(slot)
        if self._left:
            self._database.write((), (), [self._key(slot)])

    def evict(self, keep: int) -> None:
        """Those that came first leave, until ``keep`` are left."""
        slots = [slot for slot in list(super().__iter__())[: max(0, len(self) - keep)] if _is_slot(slot)]
        keys: list[bytes] = []
        values: list[bytes] = []
        expired: list[bytes] = []
        for slot in slots:
            value = super().__getitem__(slot)
            if self._cleaned is not None:
                value = self._cleaned(value)
            if value is None:
                expired.append(self._key(slot))
            else:
                keys.append(self._key(slot))
                values.append(pickled(self._name, [(slot, value)]))
        if not slots:
            return
        self._database.write(keys, values, expired)
        for slot in slots:
            super().__delitem__(slot)
        self._left = True
        if values:
            self.entry_bytes = max(ENTRY_BYTES, 2 * sum(map(len, values)) // len(values))

    def every(self) -> Iterator[tuple[Any, Any]]:
        """All slots with their objects; those outside memory stay there."""
        yield from list(super().items())
        if self._left:
            for _, values in self._database.scan(self._prefix, after(self._prefix), _PIECE):
                for value in values:
                    slot, found = pickle.loads(value)[0]
                    if not super().__contains__(slot):
                        yield slot, found

    def items(self) -> Any:
        """All slots with their objects."""
        return self.every()


def _is_slot(slot: object) -> bool:
    """Whether it is a key, and not what stands where there is none."""
    return type(slot) in (tuple, bytes, str, int)
