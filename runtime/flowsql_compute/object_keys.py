"""Hashes of Python keys: ``flowsql_compute.keys`` over the keys' canonical bytes, remembered from batch to batch.

A stream sees the same keys again and again: a hash is looked up by the key's token. The first keys of a process are
hashed here, so that a small job need not load compiled code; where there are many, the kernel does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.stream.keys import key_tokens, token_bytes

#: Hashes that are remembered.
_REMEMBERED: Final = 65_536
#: So many are made without the kernel.
_BY_HAND: Final = 2_000

_hashes: dict[Any, int] = {}

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def key_hashes(
    keys: npt.NDArray[np.object_], hash_column: Callable[[pa.Array], npt.NDArray[np.uint64]]
) -> npt.NDArray[np.uint64]:
    """The hash of each key, uint64 (n,): that of its canonical bytes; ``hash_column`` makes many at once."""
    tokens = key_tokens(keys.tolist())
    known = _hashes
    found = list(map(known.get, tokens))
    if None in found:
        missing = list(dict.fromkeys(token for token, value in zip(tokens, found, strict=True) if value is None))
        # What another thread clears meanwhile is still here.
        made = dict(zip(missing, _hashed([token_bytes(token) for token in missing], hash_column), strict=True))
        found = [made[token] if value is None else value for token, value in zip(tokens, found, strict=True)]
        if len(known) + len(made) > _REMEMBERED:
            known.clear()
        known.update(made)
    return np.array(found, np.uint64)


def _hashed(raws: list[bytes], hash_column: Callable[[pa.Array], npt.NDArray[np.uint64]]) -> list[int]:
    if len(_hashes) + len(raws) <= _BY_HAND:
        return [xxh64(raw + len(raw).to_bytes(8, "little")) for raw in raws]
    hashes: list[int] = hash_column(pa.array(raws, pa.binary())).tolist()
    return hashes


def xxh64(data: bytes) -> int:
    """XXH64 with seed 0.

    >>> hex(xxh64(b""))
    '0xef46db3751d8e999'
    """
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at <= size - 32:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        turned = zip(lanes, (1, 7, 12, 18), strict=True)
        total = sum(_rotated(lane, by) for lane, by in turned) & _MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = _P5
    total = (total + size) & _MASK
    while at + 8 <= size:
        total ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        total = (_rotated(total, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        total ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        total = (_rotated(total, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        total = _rotated(total ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK
