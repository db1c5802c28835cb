"""Python objects as bytes: by pickle, which is fast, and by cloudpickle where that refuses."""

from __future__ import annotations

import pickle
from typing import Any


def object_bytes(value: Any, protocol: int = 5) -> bytes:
    """Return bytes that ``pickle.loads`` reads, also for functions and for classes inside of functions.

    Raises:
        Exception: what cloudpickle raises, of whatever class, where it refuses too.
    """
    try:
        return pickle.dumps(value, protocol=protocol)
    except Exception:  # pickle raises many kinds
        import cloudpickle

        made: bytes = cloudpickle.dumps(value, protocol=protocol)
        return made
