"""Arrow without pandas: for processes that hand no data to it."""

from __future__ import annotations

import sys


def keep_pandas_out() -> None:
    """Let Arrow settle that there is no pandas, so that it does not import it.

    The first ``pyarrow.array(...)`` of a process imports pandas where it is installed, to ask whether its argument is
    one of pandas' (0.4 s and more). Arrow is asked once while pandas looks absent; a process that has pandas already
    keeps it. Programs that use the Table API are not touched.
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
