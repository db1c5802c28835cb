"""FlowSQL on a cluster's executors: its code as one archive, and a look at what else stands there.

Executors of a local master are this process's own Java, and start Python as it stands here: nothing is shipped to them.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from flowsql_core.errors import ConnectorError

#: What the archive holds, kernels that were compiled here included.
_PACKAGES: Final = ("flowsql", "flowsql_core", "flowsql_compute", "flowsql_connectors", "flowsql_runtime")
#: What FlowSQL's code imports there; of the first ones, batches and kernels pass between processes.
_SAME: Final = ("pyarrow", "numpy", "numba")
_PRESENT: Final = ("orjson", "xxhash", "cloudpickle")
#: The folder on the executors.
_FOLDER: Final = "flowsql_code"


def ship(session: Any) -> None:
    """Give the executors FlowSQL's code, and see that it can run there.

    Raises:
        ConnectorError: another Python or another release of a package stands there, or none.
    """
    context = session.sparkContext
    # Executors that start later fetch it, too: it stays as long as this process does.
    folder = tempfile.mkdtemp(prefix="flowsql-code-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addArchive(f"{_archive(Path(folder))}#{_FOLDER}")
    # Folders of archives are not on the path of Python, those of its own files are.
    context._python_includes.append(_FOLDER)
    wanted = {name: _release(name) for name in (*_SAME, *_PRESENT)}
    tasks = 4 * max(int(context.defaultParallelism), 1)
    found = context.parallelize(range(tasks), tasks).mapPartitions(_looking_for(tuple(wanted))).collect()
    for host, python, releases in found:
        wrong = _difference(python, releases, wanted)
        if wrong is not None:
            raise ConnectorError(
                "spark-executor",
                f"FlowSQL cannot run on executors on {host}: {wrong}.",
                hint="make the same environment on all machines, and name its Python in 'spark.pyspark.python'",
            )


def _archive(folder: Path) -> str:
    """A zip file of the packages, as they are imported here."""
    root = folder / "root"
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        # Compiled modules of another release of Python are of no use; compiled kernels say what they are for.
        shutil.copytree(
            spec.submodule_search_locations[0], root / name, ignore=shutil.ignore_patterns("*.pyc", "*.pyi")
        )
    return shutil.make_archive(str(folder / _FOLDER), "zip", root)


def _looking_for(names: tuple[str, ...]) -> Callable[[Any], Iterator[tuple[str, str, dict[str, str | None]]]]:
    # A function inside of one travels by value: nothing of FlowSQL is needed to run it.
    def look(_: Any) -> Iterator[tuple[str, str, dict[str, str | None]]]:
        import socket
        import sys
        from importlib import metadata

        found: dict[str, str | None] = {}
        for name in names:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = None
        yield socket.gethostname(), f"{sys.version_info.major}.{sys.version_info.minor}", found

    return look


def _release(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _difference(python: str, found: dict[str, str | None], wanted: dict[str, str | None]) -> str | None:
    """What stands on an executor and must not; None where FlowSQL can run."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if python != here:
        return f"they have Python {python}, and this program {here}"
    missing = [name for name in wanted if wanted[name] is not None and found.get(name) is None]
    if missing:
        return f"they lack {', '.join(missing)}"
    for name in _SAME:
        if found[name] != wanted[name]:
            return f"they have {name} {found[name]}, and this program {wanted[name]}"
    return None
