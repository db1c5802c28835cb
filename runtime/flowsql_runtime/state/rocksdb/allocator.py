"""Memory that is freed goes back to the system, so that a budget bounds what the process has."""

from __future__ import annotations

import ctypes
import functools
from typing import Final

#: ``M_MMAP_THRESHOLD`` of mallopt(3).
_MMAP_THRESHOLD: Final = -3
#: Bytes from which an allocation is a mapping of its own.
_MAPPED_FROM: Final = 128 << 10


@functools.cache
def give_freed_memory_back() -> bool:
    """Make large allocations mappings of their own, which end when they are freed; says whether the system can.

    Left alone, the C library of Linux raises its threshold to the size of what was freed lately (up to 32 MB) and then
    keeps freed memory in its heap: three times a budget of 32 MB stayed there. Other systems are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MAPPED_FROM))
