"""Object files of kernels on disk: one file a kernel and machine, replaced as a whole when the kernel changes.

A file is a header (magic, digest of the kernel, digest of the rest), then the object as LLVM wrote it. A file that is
cut, damaged or of another kernel is as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator

from flowsql_compute.compiler.declared import KernelSource
from flowsql_compute.compiler.fingerprint import of_kernel, of_machine

#: Environment variable: the one folder for objects, in place of ``__pycache__`` and the user's cache folder.
FOLDER_VARIABLE = "FLOWSQL_KERNEL_CACHE"
_MAGIC = b"FlowSQLK"
_DIGEST = 16
_HEADER = len(_MAGIC) + 2 * _DIGEST


def load(kernel: KernelSource) -> bytes | None:
    """The kernel's object, or None when no folder has it for this machine and this version of the kernel."""
    start = _MAGIC + of_kernel(kernel)
    for folder in _folders(kernel):
        try:
            content = (folder / _name(kernel)).read_bytes()
        except OSError:
            continue
        body = content[_HEADER:]
        if content[:_HEADER] == start + _digest(body):
            return body
    return None


def store(kernel: KernelSource, body: bytes) -> pathlib.Path | None:
    """Keep an object in the first folder that takes it; None when none does. Readers see all of it or nothing."""
    for folder in _folders(kernel):
        temporary = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".kernel", dir=folder)
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + of_kernel(kernel) + _digest(body) + body)
            os.replace(temporary, folder / _name(kernel))
            return folder / _name(kernel)
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
    return None


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()


def _name(kernel: KernelSource) -> str:
    return f"{kernel.__module__}.{kernel.__name__}.{of_machine().hex()[:12]}.kernel"


def _folders(kernel: KernelSource) -> Iterator[pathlib.Path]:
    """Where objects of the kernel may lie, best first."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        yield pathlib.Path(chosen)
        return
    source = pathlib.Path(kernel.function.__code__.co_filename)
    if source.is_absolute() and not sys.dont_write_bytecode:
        yield source.parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):
        yield pathlib.Path(home, "flowsql", "kernels")
