"""A store as it was at one moment, taken apart by another thread while the operator goes on.

Freezing costs nothing by the size of the state: it remembers how long the arrays are. From then on the store hands the
ids that it is about to write to :meth:`Frozen.keep`, which lays their old rows aside, once each. The other thread
copies the arrays piece by piece, whatever stands there, and puts the rows laid aside over the copy: each row that was
written while it was copied is among them. So nobody waits for anybody, and a kernel knows nothing of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_runtime.state.resident.growing import MOVING

Int32s = npt.NDArray[np.int32]

#: Bytes that are copied while arrays may not move.
_PIECE: Final = 1 << 20
#: Guards the lists of who watches a store.
_WATCHING: Final = threading.Lock()


class Freezable(Protocol):
    """What can be frozen: a store or a part of one."""

    #: Whoever has to be told which rows change. Empty while no snapshot is taken.
    watchers: tuple[Frozen, ...]

    def freeze(self, moment: Moment) -> Frozen:
        """Remember the present; :meth:`Frozen.shadow` gives a store of the same class that stays so."""
        ...


class Frozen:
    """One object at one moment.

    Args:
        owner: the object.
        rows: its arrays whose rows change in place, by name: how many rows count. The owner tells :meth:`keep`.
        prefixes: its arrays that only get longer, likewise.
        parts: attributes that are frozen objects themselves.
        values: attributes that the shadow gets as they are given here.

    All other attributes go to the shadow as they are, but arrays, which it lacks.
    """

    def __init__(
        self,
        owner: Freezable,
        *,
        rows: Mapping[str, int] | None = None,
        prefixes: Mapping[str, int] | None = None,
        parts: Mapping[str, Frozen | None] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._owner = owner
        self._rows = {name: _Rows(owner, name, used) for name, used in (rows or {}).items()}
        self._prefixes = dict(prefixes or {})
        self._parts = dict(parts or {})
        self._attributes = {
            name: value for name, value in vars(owner).items() if not isinstance(value, np.ndarray)
        } | dict(values or {})
        self._finish: tuple[Callable[..., None], tuple[Any, ...]] | None = None
        self._shadow: Any = None
        #: How many ask for the shadow: stores that hang on it, or the snapshot.
        self.wanted = 0
        with _WATCHING:
            owner.watchers = (*owner.watchers, self)

    def finish_with(self, function: Callable[..., None], *args: Any) -> None:
        """Call ``function(shadow, *args)`` when the shadow is made."""
        self._finish = (function, args)

    def keep(self, ids: Int32s) -> None:
        """The owner is about to write rows of these ids; negative ones mean none. Task thread."""
        for rows in self._rows.values():
            rows.keep(ids)

    def shadow(self) -> Any:
        """The object as it was, to be read by the calling thread alone; made once."""
        if self._shadow is None:
            found = object.__new__(type(self._owner))
            vars(found).update(self._attributes)
            found.watchers = ()
            for name, rows in self._rows.items():
                setattr(found, name, rows.copy())
            for name, used in self._prefixes.items():
                setattr(found, name, _copied(self._owner, name, used))
            for name, part in self._parts.items():
                setattr(found, name, None if part is None else part.shadow())
            if self._finish is not None:
                function, args = self._finish
                function(found, *args)
            self._shadow = found
            self.release()
        return self._shadow

    def forget(self) -> None:
        """One of those who asked for the shadow has read it; after the last one it goes, and its parts likewise."""
        self.wanted -= 1
        if not self.wanted:
            self._shadow = None
            for part in self._parts.values():
                if part is not None:
                    part.forget()

    def release(self) -> None:
        """Nobody needs the rows of the moment any more."""
        with _WATCHING:
            self._owner.watchers = tuple(watcher for watcher in self._owner.watchers if watcher is not self)
        self._rows = {}


class _Rows:
    """The first rows of one array."""

    def __init__(self, owner: Freezable, name: str, used: int) -> None:
        self._owner = owner
        self._name = name
        self._used = used
        self._kept = np.zeros(used, np.bool_)
        self._aside: list[tuple[Int32s, npt.NDArray[Any]]] = []

    def keep(self, ids: Int32s) -> None:
        ids = ids[(ids >= 0) & (ids < self._used)]
        ids = ids[~self._kept[ids]]
        if len(ids):
            # Rows first: whoever finds them among those laid aside finds them whole.
            self._aside.append((ids, getattr(self._owner, self._name)[ids]))
            self._kept[ids] = True

    def copy(self) -> npt.NDArray[Any]:
        out = _copied(self._owner, self._name, self._used)
        for ids, rows in list(self._aside):
            out[ids] = rows
        return out


def _copied(owner: object, name: str, used: int) -> npt.NDArray[Any]:
    """The first rows of an array attribute that may grow meanwhile."""
    with MOVING:
        array: npt.NDArray[Any] = getattr(owner, name)
        out = np.empty((used, *array.shape[1:]), array.dtype)
        step = max(1, _PIECE // max(1, array.strides[0]))
        del array
    for start in range(0, used, step):
        with MOVING:
            out[start : start + step] = getattr(owner, name)[start : min(used, start + step)]
    return out


class Moment:
    """The stores of one snapshot, each frozen once however many others hang on it."""

    def __init__(self) -> None:
        self._frozen: dict[int, Frozen] = {}

    def of(self, owner: Freezable | None) -> Frozen:
        """The object at this moment."""
        assert owner is not None
        if id(owner) not in self._frozen:
            self._frozen[id(owner)] = owner.freeze(self)
        found = self._frozen[id(owner)]
        found.wanted += 1
        return found

    def maybe(self, owner: Freezable | None) -> Frozen | None:
        """The object at this moment, if there is one."""
        return None if owner is None else self.of(owner)

    def release(self) -> None:
        """Nobody wants the snapshot."""
        for frozen in self._frozen.values():
            frozen.release()


def keep(owner: Freezable, ids: Int32s) -> None:
    """Tell whoever watches ``owner`` that it is about to write rows."""
    for watcher in owner.watchers:
        watcher.keep(ids)


def copies(names: Sequence[str], owner: object) -> dict[str, Any]:
    """Small arrays of an object that its shadow gets at once."""
    return {name: getattr(owner, name).copy() for name in names}
