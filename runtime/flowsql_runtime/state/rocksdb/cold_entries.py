"""Objects by slot, of which only those used lately are in memory."""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.keys import key_groups
from flowsql_core.stream.keys import token_bytes
from flowsql_runtime.state.hashmap import KEY_GROUP
from flowsql_runtime.state.object_store import ENTRY_BYTES, ObjectStore, pickled
from flowsql_runtime.state.rocksdb.database import Database, after

_PIECE: Final = 1024
_VALUES: Final = b"\x00"
_TIMES: Final = b"\x01"
_SIGN: Final = 1 << 63
_NEVER: Final = _SIGN - 1


class ColdEntries(dict[Any, Any]):
    """The entries of an ``ObjectStore``: a dictionary that looks into the database for what it lacks.

    What is in memory counts; the database may hold an older state of it. Objects that expire stand there a second time
    by the moment when they do, so that they are removed without a look at those that live: :meth:`sweep`.

    Args:
        store: whose entries they are.
        number: of the store in the database.
        database: where objects go.
        piece: objects that a sweep removes at most, where the store does not say it.
    """

    def __init__(self, store: ObjectStore, number: int, database: Database, piece: int) -> None:
        super().__init__()
        self._name = store.name
        self.namespaced = store.namespaced
        expiry = store.expiry
        self._expiry = None if expiry is None or expiry.piece is None else expiry
        self._piece = expiry.piece or piece if expiry is not None else 0
        self.number = number
        base = number.to_bytes(2, "big")
        self._values = base + _VALUES
        self._times = base + _TIMES
        self._database = database
        #: Whether anything ever left memory.
        self.left = False
        #: Whether ``items`` are those in memory.
        self._alone = False
        #: By slot in memory: the moment under which an older state of it stands in the database.
        self._dated: dict[Any, int] = {}
        #: Nothing outside memory expires before.
        self._next_ms = _NEVER
        #: Bytes that an entry takes on average, as far as known.
        self.entry_bytes = ENTRY_BYTES

    def _key(self, slot: Any) -> bytes:
        """What tells a slot from others."""
        if not self.namespaced:
            return token_bytes(slot)
        token, namespace = slot
        plain = token_bytes(token)
        out = io.BytesIO()
        # Without a memo equal namespaces give equal bytes.
        pickler = pickle.Pickler(out, 5)
        pickler.fast = True
        pickler.dump(namespace)
        return len(plain).to_bytes(4, "big") + plain + out.getvalue()

    def _time(self, time_ms: int) -> bytes:
        """What stands before the keys that expire at a moment."""
        return self._times + (time_ms + _SIGN).to_bytes(8, "big")

    # -- what is in memory, or comes back

    def _bring(self, slot: Any) -> bool:
        """Look for a slot that is not in memory; whether it is there now."""
        if not self.left or not _is_slot(slot):
            return False
        found = self._database.get_many([self._values + self._key(slot)])[0]
        if found is None:
            return False
        value = pickle.loads(found)[0][1]
        super().__setitem__(slot, value)
        if self._expiry is not None:
            self._dated[slot] = self._expiry.expires_ms(value)
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
        if self.left:
            key = self._key(slot)
            dated = self._dated.pop(slot, None)
            gone = [] if dated is None else [self._time(dated) + key]
            self._database.write((), (), [self._values + key, *gone])

    # -- what leaves

    def evict(self, keep: int) -> None:
        """Those that came first leave, until ``keep`` are left; what has expired goes.

        Raises:
            ExecutionError: an object cannot be pickled.
        """
        slots = [slot for slot in list(super().__iter__())[: max(0, len(self) - keep)] if _is_slot(slot)]
        if not slots:
            return
        changes = _Changes()
        for slot in slots:
            value = super().__getitem__(slot)
            if self._expiry is not None:
                value = self._expiry.cleaned(value)
            self._put(changes, slot, value, self._dated.pop(slot, None))
        self._database.write(changes.keys, changes.values, changes.gone)
        for slot in slots:
            super().__delitem__(slot)
        self.left = True
        size = sum(map(len, changes.values))
        if size:
            self.entry_bytes = max(ENTRY_BYTES, 2 * size // len(slots))

    def _put(self, changes: _Changes, slot: Any, value: Any, dated: int | None) -> None:
        """An object of the database; None: it has none. ``dated``: the moment under which the slot stands there."""
        key = self._key(slot)
        if value is None:
            changes.gone.append(self._values + key)
        else:
            changes.put(self._values + key, pickled(self._name, [(slot, value)]))
            if self._expiry is not None:
                expires_ms = self._expiry.expires_ms(value)
                self._next_ms = min(self._next_ms, expires_ms)
                if expires_ms == dated:
                    return
                changes.put(self._time(expires_ms) + key, b"")
        if dated is not None:
            changes.gone.append(self._time(dated) + key)

    def sweep(self) -> None:
        """Remove some of what has expired outside memory, the oldest first."""
        if self._expiry is None:
            return
        now = self._expiry.now_ms()
        if now < self._next_ms:
            return
        # From the first that is there: the database goes slowly over what was deleted before it.
        start, end = self._time(self._next_ms), self._time(now + 1)
        dated = next(iter(self._database.scan(start, end, self._piece)), ([], []))[0]
        more = len(dated) == self._piece
        self._next_ms = self._time_of(dated[-1]) if more else self._first_from(end)
        skip = len(end)
        keys = [entry[skip:] for entry in dated]
        changes = _Changes()
        for value in self._database.get_many([self._values + key for key in keys]):
            if value is None:
                continue
            slot, found = pickle.loads(value)[0]
            if super().__contains__(slot):
                # An older state of what is in memory stays until that leaves.
                self._dated.pop(slot, None)
            elif self._expiry.expires_ms(found) <= now:
                self._put(changes, slot, self._expiry.cleaned(found), None)
        # A clock that was set back in between lets a slot stand where it stood.
        put = set(changes.keys)
        changes.gone += [entry for entry in dated if entry not in put]
        self._database.write(changes.keys, changes.values, changes.gone)

    def _first_from(self, start: bytes) -> int:
        for found, _ in self._database.scan(start, after(self._times), 1):
            return self._time_of(found[0])
        return _NEVER

    def _time_of(self, entry: bytes) -> int:
        at = len(self._times)
        return int.from_bytes(entry[at : at + 8], "big") - _SIGN

    # -- all of them

    def every(self) -> Iterator[tuple[Any, Any]]:
        """All slots with their objects; those outside memory stay there."""
        yield from list(super().items())
        if self.left:
            for _, values in self._database.scan(self._values, after(self._values), _PIECE):
                for value in values:
                    slot, found = pickle.loads(value)[0]
                    if not super().__contains__(slot):
                        yield slot, found

    def items(self) -> Any:
        """All slots with their objects."""
        return list(super().items()) if self._alone else self.every()

    # -- snapshots whose cold part stays in the database

    @contextlib.contextmanager
    def in_memory_alone(self) -> Iterator[None]:
        """Within it ``items`` are those in memory."""
        self._alone = True
        try:
            yield
        finally:
            self._alone = False

    @property
    def expires(self) -> bool:
        """Whether objects outside memory stand there by the moment when they expire, too."""
        return self._expiry is not None

    def taken_over(self) -> None:
        """The database was opened on files that have entries of the store."""
        self.left = True
        if self._expiry is not None:
            self._next_ms = self._first_from(self._times)

    def stale_keys(self) -> list[bytes]:
        """Under which keys the database may have an old state of what is in memory, as of now."""
        if not self.left:
            return []
        found = [self._values + self._key(slot) for slot in super().__iter__() if _is_slot(slot)]
        return found + [self._time(dated) + self._key(slot) for slot, dated in self._dated.items()]


def cold_object_tables(database: Database, number: int, namespaced: bool, max_parallelism: int) -> Iterator[Any]:
    """Tables as of ``ObjectStore.save``, with an entry a row, of what stands in the database; nothing is unpickled."""
    prefix = number.to_bytes(2, "big") + _VALUES
    for found, values in database.scan(prefix, after(prefix), _PIECE):
        tokens = [_token_of(key[len(prefix) :], namespaced) for key in found]
        columns = {"k0": pa.array(tokens, pa.binary()), "entries": pa.array(values, pa.large_binary())}
        groups = key_groups([columns["k0"]], max_parallelism)
        yield pa.table({KEY_GROUP: pa.array(groups), **columns})


def forget_objects(database: Database, number: int) -> None:
    """Remove what stands in the database of one store."""
    database.delete_prefix(number.to_bytes(2, "big"))


def _token_of(key: bytes, namespaced: bool) -> bytes:
    """The canonical bytes of the key token in what ``ColdEntries`` tells a slot by."""
    if not namespaced:
        return key
    length = int.from_bytes(key[:4], "big")
    return key[4 : 4 + length]


class _Changes:
    """What is written in one go."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        self.gone: list[bytes] = []

    def put(self, key: bytes, value: bytes) -> None:
        """One more entry."""
        self.keys.append(key)
        self.values.append(value)


def _is_slot(slot: object) -> bool:
    """Whether it is a key, and not what stands where there is none."""
    return type(slot) in (tuple, bytes, str, int)
