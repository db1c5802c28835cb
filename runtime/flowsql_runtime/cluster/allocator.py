"""Which allocator holds Arrow's arrays while jobs run."""

from __future__ import annotations

import os

import pyarrow as pa

#: Arrow's own variable: whoever sets it keeps what it names.
VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


def reuse_freed_memory() -> None:
    """Let Arrow allocate from the C library where that is glibc.

    Arrow's usual pool gives freed memory back to the system within milliseconds, and a stream frees arrays with every
    batch: the next batch pays for clearing the same pages again. That was half of the CPU time of joins with wide rows.
    glibc hands out what was just freed. Arrays that exist stay in the pool that they came from.
    """
    if VARIABLE in os.environ or not _on_glibc():
        return
    system = pa.system_memory_pool()
    if pa.default_memory_pool().backend_name != system.backend_name:
        pa.set_memory_pool(system)


def _on_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError):
        return False
