"""FlowSQL in the processes of Spark: its code as one archive where they stand elsewhere, and what else is there.

Executors of a local master are this process's own Java, and start Python as it stands here: nothing is shipped to them.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flowsql_core.errors import ConnectorError
from flowsql_runtime.python.by_value import dumps
from flowsql_runtime.spark.sessions.quiet import quiet

if TYPE_CHECKING:
    from flowsql_runtime.spark.sessions.host import SparkHost

_HINT: Final = "make one environment on all machines, and name its Python in PYSPARK_PYTHON or 'spark.pyspark.python'"
#: Why a process of Python ends before it does anything.
_IMPORT: Final = re.compile(r"(?:ModuleNotFoundError|ImportError): [^\n]*")
#: The folder on the executors.
FOLDER: Final = "flowsql_code"
#: What the archive holds, kernels that were compiled here included.
_PACKAGES: Final = ("flowsql", "flowsql_core", "flowsql_compute", "flowsql_connectors", "flowsql_runtime")
#: What FlowSQL's code imports there; of the first ones, batches and kernels pass between processes.
_SAME: Final = ("pyarrow", "numpy", "numba")
_PRESENT: Final = ("orjson", "xxhash", "cloudpickle")


def at_the_task(thing: object, folder: str | None) -> Callable[[], Any]:
    """A function that gives the object in a process of Spark.

    What Spark's own pickler sends of it needs nothing of FlowSQL: the object travels as bytes, and is made once in a
    process that knows where FlowSQL stands.

    Args:
        thing: what tasks need.
        folder: of the archive with FlowSQL's code; None: tasks run on this machine, and find what this process finds.
    """
    data = dumps(thing)
    paths = [path for path in sys.path if path] if folder is None else []
    made: list[Any] = []

    def there() -> Any:
        if not made:
            import os
            import pickle
            import sys

            if folder is None:
                sys.path += [path for path in paths if path not in sys.path]
            else:
                from pyspark import SparkFiles

                code = os.path.join(SparkFiles.getRootDirectory(), folder)
                if code not in sys.path:
                    sys.path.insert(0, code)
            made.append(pickle.loads(data))
        return made[0]

    return there


def ship(host: SparkHost, where: str) -> None:
    """Give the executors FlowSQL's code, and see that it can run there.

    Args:
        host: its session.
        where: its master or server, for errors.

    Raises:
        ConnectorError: as of :func:`look_at_executors`.
    """
    # Executors that start later fetch it, too: it stays as long as this process does.
    folder = tempfile.mkdtemp(prefix="flowsql-code-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = f"{_archive(Path(folder))}#{FOLDER}"
    with _told(where):
        if host.is_remote:
            host.session.addArtifacts(archive, archive=True)
        else:
            host.session.sparkContext.addArchive(archive)
    look_at_executors(host, where)


def look_at_executors(host: SparkHost, where: str) -> None:
    """See that what FlowSQL's code imports is there.

    Args:
        host: the session.
        where: its master or server, for errors.

    Raises:
        ConnectorError: another Python or another release of a package stands there, or none; or no task runs.
    """
    wanted = {name: _release(name) for name in (*_SAME, *_PRESENT)}
    names = tuple(wanted)
    # Each executor is to get some; on this machine one stands for all.
    tasks = 1 if host.is_local else 4 if host.is_remote else 4 * host.slots()
    look = _looking_for(names)
    columns = ", ".join(["host STRING", "python STRING", *(f"{name} STRING" for name in names)])
    with _told(where), quiet():
        found = host.session.range(0, tasks, 1, tasks).mapInArrow(look, columns).toArrow().to_pylist()
    for row in found:
        machine, python = row.pop("host"), row.pop("python")
        wrong = _difference(python, row, wanted)
        if wrong is not None:
            raise ConnectorError(
                "spark-executor",
                f"FlowSQL cannot run on executors on {machine}: {wrong}.",
                hint=_HINT,
            )


@contextlib.contextmanager
def _told(where: str) -> Iterator[None]:
    """What Spark raises, in a sentence."""
    try:
        yield
    except Exception as error:
        text = str(error).strip()
        cause = _IMPORT.search(text)
        first = cause[0] if cause else text.partition("\n")[0]
        raise ConnectorError(
            "spark-executor", f"No task ran on the executors of '{where}': {first}", hint=_HINT if cause else None
        ) from error


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
    return shutil.make_archive(str(folder / FOLDER), "zip", root)


def _looking_for(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    # A function inside of one travels by value: nothing of FlowSQL is needed to run it.
    def look(_: Any) -> Any:
        import socket
        import sys
        from importlib import metadata

        import pyarrow as pa

        found: dict[str, list[str | None]] = {
            "host": [socket.gethostname()],
            "python": [f"{sys.version_info.major}.{sys.version_info.minor}"],
        }
        for name in names:
            try:
                found[name] = [metadata.version(name)]
            except metadata.PackageNotFoundError:
                found[name] = [None]
        yield pa.RecordBatch.from_pydict({name: pa.array(column, pa.string()) for name, column in found.items()})

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
