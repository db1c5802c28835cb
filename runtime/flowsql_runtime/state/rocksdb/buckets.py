"""Which keys share a page: ranges of their hashes, which are cut in two when they hold too much.

A bucket is a range of 32-bit hashes. What it holds is in pages that were written one after another; of a key that is
in several the newest counts. Linear hashing after Litwin, "Linear hashing: a new tool for file and table addressing"
(1980), with cuts where they are needed rather than in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels.pages import find_buckets

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]

#: What a bucket should hold at most after it was written anew: keys, and bytes.
MOST_KEYS: Final = 2048
MOST_BYTES: Final = 32 << 10
#: Pages of a bucket from which on it is written anew.
_MOST_PAGES: Final = 8
_HASHES: Final = 1 << 32
_COLUMNS: Final = ("starts", "first", "next", "keys", "bytes", "clean")


class Buckets:
    """The buckets of one namespace, by rising hash.

    Args:
        keys, size: about how many keys, and bytes of them, come first: so many buckets there are.
    """

    def __init__(self, keys: int, size: int) -> None:
        count = min(1 << 20, _power_of_two(max(keys / MOST_KEYS, size / MOST_BYTES)))
        self.starts = (np.arange(count, dtype=np.int64) * (_HASHES // count)).astype(np.uint32)
        #: The numbers of each bucket's oldest page and of its next one.
        self.first = np.zeros(count, np.int64)
        self.next = np.zeros(count, np.int64)
        #: Keys and bytes in its pages, with those that newer pages outdate.
        self.keys = np.zeros(count, np.int64)
        self.bytes = np.zeros(count, np.int64)
        #: Its bytes after it was written anew.
        self.clean = np.zeros(count, np.int64)

    def __len__(self) -> int:
        return len(self.starts)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All that is known of the buckets, a row a bucket; copies."""
        return {name: getattr(self, name).copy() for name in _COLUMNS}

    @staticmethod
    def of_columns(columns: Mapping[str, npt.NDArray[Any]]) -> Buckets:
        """The inverse of :meth:`columns`."""
        made = Buckets(0, 0)
        for name in _COLUMNS:
            setattr(made, name, columns[name])
        return made

    def of(self, hashes: UInt32s) -> Int64s:
        """The bucket of each hash."""
        out = np.empty(len(hashes), np.int64)
        find_buckets(self.starts, np.ascontiguousarray(hashes), out)
        return out

    def distinct(self, hashes: UInt32s) -> Int64s:
        """The buckets of some hashes, rising."""
        there = np.zeros(len(self), np.bool_)
        there[self.of(hashes)] = True
        return np.flatnonzero(there)

    def page_keys(self, prefix: bytes, buckets: Int64s) -> list[bytes]:
        """The keys of all pages of some buckets, those of a bucket from the oldest on."""
        ranges = zip(
            self.starts[buckets].tolist(), self.first[buckets].tolist(), self.next[buckets].tolist(), strict=True
        )
        return list(chain.from_iterable(_page_keys(prefix, start, first, end) for start, first, end in ranges))

    def pages(self, buckets: Int64s) -> Int64s:
        """How many pages some buckets have."""
        found: Int64s = self.next[buckets] - self.first[buckets]
        return found

    def written(self, prefix: bytes, buckets: Int64s, keys: Int64s, sizes: Int64s) -> list[bytes]:
        """The keys of a new page of each of some buckets, with so many keys and bytes."""
        numbers = self.next[buckets]
        self.next[buckets] += 1
        self.keys[buckets] += keys
        self.bytes[buckets] += sizes
        return [
            page_key(prefix, start, number)
            for start, number in zip(self.starts[buckets].tolist(), numbers.tolist(), strict=True)
        ]

    def overfull(self, buckets: Int64s) -> Int64s:
        """Those of some buckets that should be written anew."""
        many = (self.bytes[buckets] > np.maximum(2 * MOST_BYTES, 2 * self.clean[buckets])) | (
            self.keys[buckets] > 2 * MOST_KEYS
        )
        return buckets[(self.pages(buckets) > _MOST_PAGES) | (many & (self.pages(buckets) > 1))]

    def emptied(self, buckets: Int64s) -> None:
        """All pages of some buckets go."""
        self.first[buckets] = self.next[buckets]
        self.keys[buckets] = 0
        self.bytes[buckets] = 0

    def cleaned(self, buckets: Int64s) -> None:
        """Some buckets hold nothing that is outdated."""
        self.clean[buckets] = self.bytes[buckets]

    def cut(self, buckets: Int64s, keys: Int64s, sizes: Int64s) -> None:
        """Cut those of some empty buckets that are about to hold too many keys or bytes."""
        pieces = np.ones(len(self), np.int64)
        ends = np.append(self.starts[1:].astype(np.int64), _HASHES)
        for bucket, most_keys, most_bytes in zip(buckets.tolist(), keys.tolist(), sizes.tolist(), strict=True):
            # A bucket of few keys that are large is cut no further than its keys can fill.
            wanted = max(most_keys / MOST_KEYS, min(most_bytes / MOST_BYTES, most_keys / 2))
            span = int(ends[bucket]) - int(self.starts[bucket])
            pieces[bucket] = min(_power_of_two(wanted), span)
        if (pieces == 1).all():
            return
        first = np.repeat(np.cumsum(pieces) - pieces, pieces)
        within = np.arange(int(pieces.sum())) - first
        spans = (ends - self.starts) // pieces
        self.starts = (np.repeat(self.starts.astype(np.int64), pieces) + within * np.repeat(spans, pieces)).astype(
            np.uint32
        )
        new = within > 0
        for name in ("first", "next", "keys", "bytes", "clean"):
            values = np.repeat(getattr(self, name), pieces)
            values[new] = 0
            setattr(self, name, values)


def page_key(prefix: bytes, start: int, number: int) -> bytes:
    """The key of a page: pages of a bucket stand side by side, from the oldest on."""
    return prefix + start.to_bytes(4, "big") + number.to_bytes(4, "big")


def bucket_of(key: bytes) -> bytes:
    """The part of a page's key that all pages of its bucket share."""
    return key[:-4]


def _page_keys(prefix: bytes, start: int, first: int, end: int) -> list[bytes]:
    bucket = prefix + start.to_bytes(4, "big")
    return [bucket + number.to_bytes(4, "big") for number in range(first, end)]


def _power_of_two(wanted: float) -> int:
    return 1 << max(0, int(np.ceil(np.log2(max(wanted, 1)))))
