"""What makes a short script start fast: work that Python or Arrow would do on the way, and that it does not need."""

from __future__ import annotations

import gc
import os
import sys


def compute_alone() -> None:
    """No pool of threads for linear algebra, which NumPy starts when it is imported: nothing here multiplies matrices.

    A number that the user's environment asks for stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def keep_pandas_out() -> None:
    """Let Arrow settle that there is no pandas, so that it does not import it.

    The first ``pyarrow.array(...)`` of a process imports pandas where it is installed, to ask whether its argument is
    one of pandas' (0.4 s and more). The command hands no data to pandas, so Arrow is asked once while pandas looks
    absent; programs that use the Table API are not touched.
    """
    if "pandas" in sys.modules:
        return
    absence = _NoPandas()
    sys.meta_path.insert(0, absence)
    try:
        import pyarrow as pa

        pa.array([True])
    finally:
        sys.meta_path.remove(absence)


class _NoPandas:
    """A finder that says that pandas is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse pandas; leave the rest to the other finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def spare_the_collector() -> None:
    """No collections while modules load and the first statement is planned: nothing that they make is garbage."""
    gc.disable()


def settle() -> None:
    """The first job is running, so the modules are loaded: collect again, but never look at what stands now."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
