"""One batch's walk through sessions: what is known of them before it and after it. State and clock stay outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import sessions as kernels
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.zone import local_offsets

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class KnownSessions:
    """Open sessions of the keys of a batch, m of them: key (from 0), number among the key's, bounds in local ms.

    ``free_keys``, ``free_ordinals``: numbers that no session of a key has. ``most`` (keys,): above all numbers.
    """

    keys: Int32s
    ordinals: Int32s
    starts: Int64s
    ends: Int64s
    free_keys: Int32s
    free_ordinals: Int32s
    most: Int32s


@dataclass(frozen=True, eq=False, slots=True)
class Walk:
    """What became of sessions: the known ones come first, then those that rows opened.

    Args:
        of_row: int32 (n,), the session that took the row in; -1 where the row is late. ``rounds``: (n,), how many
            merges the session had gone through.
        starts, ends: local ms (s,). ``keys``, ``ordinals``, ``into`` (the session that took it in, -1), ``born`` (the
            row that opened it, -1 where it was known): int32 (s,).
        merges: int32 (j, 3): taker, taken, how many merges both had gone through; in order.
    """

    of_row: Int32s
    rounds: Int32s
    starts: Int64s
    ends: Int64s
    keys: Int32s
    ordinals: Int32s
    into: Int32s
    born: Int32s
    most: Int32s
    merges: Int32s

    def roots(self) -> Int32s:
        """The session that each one is part of in the end."""
        roots = np.where(self.into < 0, np.arange(len(self.into), dtype=np.int32), self.into)
        while True:
            further = roots[roots]
            if (further == roots).all():
                return roots
            roots = further


def walk(known: KnownSessions, keys: Int32s, times: Int64s, levels: Int64s, gap_ms: int, zone: str | None) -> Walk:
    """Put the rows of a batch into sessions, one after the other.

    Args:
        keys: int32 (n,), each row's key, from 0. ``times``: local ms. ``levels``: the watermark before each row, ms.
    """
    n, before = len(keys), len(known.keys)
    room = before + n
    bounds = np.empty((room, 2), np.int64)
    bounds[:before, 0], bounds[:before, 1] = known.starts, known.ends
    links = np.empty((room, 6), np.int32)
    links[:before, kernels.KEY], links[:before, kernels.ORDINAL] = known.keys, known.ordinals
    links[:before, kernels.INTO] = links[:before, kernels.BORN] = -1
    links[:before, kernels.ROUND] = 0
    order = row_order((-known.starts, known.keys))
    heads = _chained(known.keys[order], order, links[:, kernels.NEXT], len(known.most))
    free = np.empty((len(known.free_keys), 2), np.int32)
    free[:, 0] = known.free_ordinals
    order = row_order((known.free_ordinals, known.free_keys))
    free_heads = _chained(known.free_keys[order], order, free[:, 1], len(known.most))
    most = known.most.copy()
    reach = (int(times.min()), int(times.max()) + gap_ms) if n else (0, 0)
    if before:
        reach = min(reach[0], int(known.starts.min())), max(reach[1], int(known.ends.max()))
    breaks, shifts = local_offsets(*reach, zone)
    of_row, rounds = np.empty(n, np.int32), np.empty(n, np.int32)
    merges = np.empty((n, 3), np.int32)
    out = np.array([before, 0, 0], np.int64)
    kernels.walk(
        keys, times, levels, gap_ms, breaks, shifts, heads, bounds, links, free_heads, free, most, of_row, rounds,
        merges, out,
    )  # fmt: skip
    count = int(out[0])
    keys_of, ordinals, into, born = (
        np.ascontiguousarray(links[:count, column])
        for column in (kernels.KEY, kernels.ORDINAL, kernels.INTO, kernels.BORN)
    )
    starts, ends = bounds[:count, 0], bounds[:count, 1]
    return Walk(of_row, rounds, starts, ends, keys_of, ordinals, into, born, most, merges[: int(out[1])])


def _chained(owners: Int32s, places: npt.NDArray[np.int64], following: Int32s, count: int) -> Int32s:
    """Chain places that stand together by owner: the first of each owner, and in ``following`` what comes next."""
    heads = np.full(count, -1, np.int32)
    if len(owners):
        first = np.concatenate(([True], owners[1:] != owners[:-1]))
        heads[owners[first]] = places[first]
        after = np.append(places[1:], -1)
        after[np.append(first[1:], True)] = -1
        following[places] = after
    return heads
