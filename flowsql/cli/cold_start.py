"""What makes a short script start fast: work that Python or Arrow would do on the way, and that it does not need."""

from __future__ import annotations

import gc
import os

from flowsql_core.interpreter.without_pandas import keep_pandas_out as keep_pandas_out


def compute_alone() -> None:
    """No pool of threads for linear algebra, which NumPy starts when it is imported: nothing here multiplies matrices.

    A number that the user's environment asks for stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def spare_the_collector() -> None:
    """No collections while modules load and the first statement is planned: nothing that they make is garbage."""
    gc.disable()


def settle() -> None:
    """The first job is running, so the modules are loaded: collect again, but never look at what stands now."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
