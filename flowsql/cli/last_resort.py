"""An end for every process: what SIGTERM or ``--timeout`` asks for happens within ten seconds, whatever runs.

A signal is first Python's: the job is cancelled and cleans up. Python hears of it only between two of its instructions
in the main thread, and a function in C may keep the interpreter for ever. So a child watches: the handler in C writes
the signal into a pipe (``signal.set_wakeup_fd``), which takes nothing of the interpreter, and the child kills this
process if it does not end in time. The child ends with its parent, whose end closes the pipe.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

#: Seconds from a signal to an end by Python, and to one by the kernel.
_GRACE_S: Final = 7.0
_KILL_S: Final = 8.5
#: Behind this byte comes when a process must be over: seconds of the monotonic clock, 0: never.
_DEADLINE: Final = b"\xff"
_SECONDS: Final = struct.Struct("=d")

_pipe: int | None = None
_owner = 0


def watch() -> None:
    """Start the child. Without one (no ``fork``, no descriptor left) signals do what they did before."""
    global _pipe, _owner
    if _pipe is not None or not hasattr(os, "fork"):
        return
    try:
        theirs, ours = os.pipe()
        parent = os.getpid()
        child = os.fork()
    except OSError:
        return
    if not child:
        _watch(theirs, ours, parent)
    os.close(theirs)
    os.set_blocking(ours, False)
    _pipe, _owner = ours, parent
    listen()


def listen() -> None:
    """Let signals go to the child, from now on: an event loop of a screen may have taken them for itself."""
    if _pipe is not None and _owner == os.getpid():
        with contextlib.suppress(ValueError):  # in another thread than the main one
            signal.set_wakeup_fd(_pipe, warn_on_full_buffer=False)


def end_soon(code: int) -> None:
    """End this process in a few seconds, if it has not ended by itself; without a child to watch it, not."""
    if _owner != os.getpid():
        return

    def end() -> None:
        time.sleep(_GRACE_S)
        with contextlib.suppress(Exception):
            sys.stderr.write("flowsql: the job did not stop in time; the process ends\n")
            sys.stderr.flush()
        _kill_children(os.getpid())
        os._exit(code)

    threading.Thread(target=end, name="last-resort", daemon=True).start()


def leave() -> None:
    """The process ends: a thread that keeps the interpreter must not keep it from that."""
    _tell(time.monotonic() + _KILL_S)


@contextlib.contextmanager
def over_by(seconds: float | None) -> Iterator[None]:
    """While this lasts, the process ends at the latest some seconds after ``seconds`` from now; None: it need not."""
    if seconds is None:
        yield
        return
    _tell(time.monotonic() + seconds + _KILL_S)
    try:
        yield
    finally:
        _tell(0.0)


def _tell(deadline: float) -> None:
    if _pipe is not None and _owner == os.getpid():
        with contextlib.suppress(OSError):
            os.write(_pipe, _DEADLINE + _SECONDS.pack(deadline))


def _kill_children(parent: int) -> None:
    """End the processes that a process started: a worker that is stuck in C would outlive it.

    Where the system does not list them, they are left to notice it.
    """
    spared = os.getpid()
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as children:
                for child in map(int, children.read().split()):
                    if child != spared:
                        with contextlib.suppress(OSError):
                            os.kill(child, signal.SIGKILL)


# The child


def _watch(theirs: int, ours: int, parent: int) -> None:
    """Wait for the parent's end, or end it. Never returns."""
    try:
        os.close(ours)
        # Whoever reads what the parent writes must not wait for the child.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        _wait(theirs, parent)
    finally:
        os._exit(0)


def _wait(pipe: int, parent: int) -> None:
    asked: float | None = None
    limit = 0.0
    seen = b""
    while True:
        ends = [end for end in (asked, limit or None) if end is not None]
        left = max(0.0, min(ends) - time.monotonic()) if ends else None
        if not select.select([pipe], [], [], left)[0]:
            if os.getppid() == parent:
                _kill_children(parent)
                os.kill(parent, signal.SIGKILL)
            return
        found = os.read(pipe, 4096)
        if not found:
            return
        seen += found
        while seen:
            if not seen.startswith(_DEADLINE):
                if seen[0] == signal.SIGTERM and asked is None:
                    asked = time.monotonic() + _KILL_S
                seen = seen[1:]
            elif len(seen) > _SECONDS.size:
                (limit,) = _SECONDS.unpack_from(seen, 1)
                seen = seen[1 + _SECONDS.size :]
            else:
                break
