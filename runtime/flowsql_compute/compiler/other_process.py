"""Compile in another process what this one is going to need, when no cache holds it: compiling is mostly Python, which
threads would only take turns at.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from flowsql_compute.compiler import object_cache
from flowsql_compute.compiler.declared import KernelSource

_lock = threading.Lock()
_started: dict[KernelSource, subprocess.Popen[bytes]] = {}


def compile_ahead(kernel: KernelSource) -> None:
    """Start to compile a kernel that is not in the cache yet; returns at once."""
    with _lock:
        if kernel.bound or kernel in _started or (os.cpu_count() or 1) < 2 or not sys.executable:
            return
        if object_cache.load(kernel) is None:
            _started[kernel] = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "flowsql_compute.compiler.prepare",
                    "--jobs=1",
                    f"{kernel.__module__}:{kernel.__name__}",
                ],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )


def wait_for(kernel: KernelSource) -> None:
    """Wait until a kernel that was started has been compiled, well or not."""
    with _lock:
        process = _started.pop(kernel, None)
    if process is not None:
        process.wait()
