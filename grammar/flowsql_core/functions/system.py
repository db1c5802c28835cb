"""Functions about the world around the rows: UUID, hashes of text, encodings."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.eval.distinct import map_distinct
from flowsql_core.functions.registry import NOT_NULL, Invocation, scalar


@scalar("UUID() -> CHAR(36)", nulls=NOT_NULL, deterministic=False, spark="UUID()")
def uuid(call: Invocation) -> Any:
    """A random identifier (version 4) for each row."""
    raw = np.random.default_rng(call.context.rng.getrandbits(63)).integers(0, 256, (call.n, 16), dtype=np.uint8)
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    text = np.full((call.n, 36), ord("-"), dtype=np.uint8)
    places = [place for place in range(36) if place not in (8, 13, 18, 23)]
    text[:, places[::2]] = digits[raw >> 4]
    text[:, places[1::2]] = digits[raw & 15]
    offsets = pa.py_buffer(np.arange(call.n + 1, dtype=np.int32) * np.int32(36))
    return pa.Array.from_buffers(pa.string(), call.n, [None, offsets, pa.py_buffer(text)])


def _hash_function(name: str, length: int) -> None:
    make: Callable[[bytes], Any] = getattr(hashlib, name.lower())

    def kernel(text: Any) -> Any:
        return map_distinct(text, lambda word: make(word.encode()).hexdigest(), pa.string())

    kernel.__doc__ = f"The {name} hash of the UTF-8 bytes in lower-case hexadecimal digits."
    scalar(f"{name}(STRING) -> CHAR({length})", spark=None)(kernel)


for _name, _length in (("MD5", 32), ("SHA1", 40), ("SHA224", 56), ("SHA256", 64), ("SHA384", 96), ("SHA512", 128)):
    _hash_function(_name, _length)


@scalar("TO_BASE64(STRING) -> STRING", spark=None)
def to_base64(text: Any) -> Any:
    """The UTF-8 bytes in base 64."""
    return map_distinct(text, lambda word: base64.b64encode(word.encode()).decode(), pa.string())


@scalar("FROM_BASE64(STRING) -> STRING", spark=None)
def from_base64(text: Any) -> Any:
    """The text whose bytes are given in base 64."""
    return map_distinct(text, lambda word: base64.b64decode(word).decode("utf-8", "replace"), pa.string())
