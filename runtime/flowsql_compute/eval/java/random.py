"""``java.util.Random``: the same numbers for the same seed, a whole batch at a time.

Source: Java SE documentation of ``java.util.Random``; a linear congruential generator modulo 2 to the 48.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_FACTOR, _STEP, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


class JavaRandom:
    """One generator; each call goes on where the last one stopped."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _FACTOR) & _MASK

    def _draws(self, n: int) -> npt.NDArray[np.uint64]:
        """The next ``n`` states, uint64 (n,); the generator stays where it is."""
        # State k is factor**k * state + step * (factor**0 + ... + factor**(k - 1)); products wrap modulo 2**64, of
        # which the 48 low bits are what counts.
        powers = np.cumprod(np.full(n, _FACTOR, dtype=np.uint64))
        sums = np.ones(n, dtype=np.uint64)
        if n > 1:
            sums[1:] += np.cumsum(powers[:-1])
        return (powers * np.uint64(self._state) + sums * np.uint64(_STEP)) & np.uint64(_MASK)

    def doubles(self, n: int) -> npt.NDArray[np.float64]:
        """The next ``n`` numbers in [0, 1), as ``nextDouble`` makes them.

        >>> JavaRandom(5).doubles(1).tolist()
        [0.730519863614471]
        """
        if not n:
            return np.zeros(0)
        states = self._draws(2 * n)
        self._state = int(states[-1])
        high, low = states[::2] >> np.uint64(22), states[1::2] >> np.uint64(21)
        return ((high << np.uint64(27)) + low).astype(np.float64) * 2.0**-53

    def below(self, limits: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """A number in [0, limit) for each limit (> 0), as ``nextInt(limit)`` makes them.

        >>> JavaRandom(10).below(np.array([100], dtype=np.int32)).tolist()
        [13]
        """
        made = np.zeros(len(limits), dtype=np.int32)
        start = 0
        while start < len(limits):
            wide = limits[start:].astype(np.int64)
            states = self._draws(len(wide))
            bits = (states >> np.uint64(17)).astype(np.int64)
            rest = bits % wide
            power = (wide & (wide - 1)) == 0
            # What lies in the last, incomplete stretch of 31 bits is drawn again: from there on all shift by one.
            again = np.flatnonzero(~power & (bits - rest + wide - 1 >= 1 << 31))
            count = int(again[0]) if len(again) else len(wide)
            made[start : start + count] = np.where(power, wide * bits >> 31, rest)[:count].astype(np.int32)
            self._state = int(states[min(count, len(wide) - 1)])
            start += count
        return made


def _states(seeds: npt.NDArray[np.int32]) -> npt.NDArray[np.uint64]:
    """The states of new generators, one a seed."""
    return (seeds.astype(np.int64).astype(np.uint64) ^ np.uint64(_FACTOR)) & np.uint64(_MASK)


def _following(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return (states * np.uint64(_FACTOR) + np.uint64(_STEP)) & np.uint64(_MASK)


def first_doubles(seeds: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """What ``new Random(seed).nextDouble()`` gives for each seed, (n,)."""
    high = _following(_states(seeds))
    low = _following(high)
    return ((high >> np.uint64(22) << np.uint64(27)) + (low >> np.uint64(21))).astype(np.float64) * 2.0**-53


def first_below(seeds: npt.NDArray[np.int32], limits: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """What ``new Random(seed).nextInt(limit)`` gives for each seed and limit (> 0), (n,)."""
    made = np.zeros(len(seeds), dtype=np.int32)
    states, left = _states(seeds), np.arange(len(seeds))
    while len(left):
        states = _following(states)
        wide = limits[left].astype(np.int64)
        bits = (states >> np.uint64(17)).astype(np.int64)
        rest = bits % wide
        power = (wide & (wide - 1)) == 0
        # What lies in the last, incomplete stretch of 31 bits is drawn again.
        again = ~power & (bits - rest + wide - 1 >= 1 << 31)
        made[left] = np.where(power, wide * bits >> 31, rest).astype(np.int32)
        states, left = states[again], left[again]
    return made
