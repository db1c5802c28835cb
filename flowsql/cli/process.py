"""The process of ``flowsql``: the command, and its end."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading

from flowsql.cli.main import main


def run() -> None:
    """Run the command of ``sys.argv`` and end the process with its status.

    The interpreter would take all modules apart first, for 10 to 30 ms that whoever waits for the process has no use
    for. What was registered for the end is done; where threads still work that a program waits for, all goes the
    usual way.
    """
    status = main()
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.exit(status)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
