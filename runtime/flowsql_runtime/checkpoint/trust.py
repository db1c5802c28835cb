"""Which snapshots may bring Python objects: loading one runs code that it names.

A job of SQL alone has no Python objects in its state and never loads any, whatever a snapshot holds. State of user
aggregates, process table functions and DataStreams is pickled. Such a job starts only from a snapshot that is the
user's own (:func:`why_foreign`), or that the configuration says to trust. What a running job wrote it takes back.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from flowsql_core.config import Configuration, option, parse_bool
from flowsql_core.errors import BindError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.process_specs import ProcessTableFunctionSpec
from flowsql_core.graph.python_specs import (
    PythonGroupAggregateSpec,
    PythonGroupTableAggregateSpec,
    PythonOverAggregateSpec,
    PythonSessionAggregateSpec,
    PythonWindowAggregateSpec,
)
from flowsql_core.graph.specs import ExtensionSpec, OperatorSpec
from flowsql_runtime.checkpoint.manifest import Manifest
from flowsql_runtime.checkpoint.storage import METADATA, SHARED

TRUSTED: Final = option(
    "execution.state-recovery.trusted",
    parse_bool,
    False,
    "Whether a snapshot with Python objects may be loaded that is not in a folder which the user alone can write to: "
    "loading it runs code that it names.",
)
_OF_PYTHON: Final = (
    PythonGroupAggregateSpec,
    PythonGroupTableAggregateSpec,
    PythonOverAggregateSpec,
    PythonSessionAggregateSpec,
    PythonWindowAggregateSpec,
    ProcessTableFunctionSpec,
    ExtensionSpec,
)
#: Where the specs of DataStreams are: looked at by name, as jobs of SQL do not load it.
_OF_STREAMS: Final = "flowsql_core.graph.stream_specs"


def holds_objects(graph: JobGraph) -> bool:
    """True if state or rows on their way in a job may be Python objects."""
    return any(_has_objects(node.spec) for vertex in graph.vertices for node in vertex.operators)


def _has_objects(spec: OperatorSpec) -> bool:
    return isinstance(spec, _OF_PYTHON) or type(spec).__module__ == _OF_STREAMS


def check_trusted(path: str, manifest: Manifest, graph: JobGraph, configuration: Configuration) -> None:
    """Refuse a snapshot whose Python objects anybody may have written.

    Args:
        path: of the snapshot's folder.
        graph: of the job that starts from it.

    Raises:
        BindError: it is not the user's own, and nothing says that it is trusted.
    """
    if not (manifest.objects or holds_objects(graph)) or configuration.get(TRUSTED):
        return
    why = why_foreign(path, manifest)
    if why is None:
        return
    whose = "It holds" if manifest.objects else "The job reads"
    raise BindError(
        "untrusted-snapshot",
        f"The snapshot '{path}' is not loaded: {why}. {whose} Python objects, and loading them runs code that whoever "
        "wrote the snapshot chose.",
        hint=f"if you trust it: SET '{TRUSTED.key}' = 'true'",
    )


def why_foreign(path: str, manifest: Manifest) -> str | None:
    """Return why others may have written a snapshot; None for the user's own.

    Its own is a local folder whose files, folder and shared files belong to this user, are no links, and can be written
    by nobody else.
    """
    if "://" in path or not os.path.isabs(path):
        return "it is not in a local folder"
    folder = Path(path)
    places = [folder, folder / METADATA, *(folder / name for name in manifest.files())]
    shared = [one.file for native in manifest.natives() for one in native.shared]
    if shared:
        places.append(folder.parent / SHARED)
    for file in shared:
        beside = file.startswith(f"{SHARED}/")
        places.append(folder.parent / file if beside else Path(file))
    # Who may write to the folder above may put another one in its place.
    places.append(folder.parent)
    for place in places:
        try:
            found = os.lstat(place)
        except OSError as error:
            return f"'{place}' cannot be looked at: {error.strerror}"
        if stat.S_ISLNK(found.st_mode):
            return f"'{place}' is a link"
        if found.st_uid != os.getuid():
            return f"'{place}' belongs to another user"
        # In a folder such as /tmp nobody moves what belongs to others.
        if found.st_mode & 0o022 and not (place == folder.parent and found.st_mode & stat.S_ISVTX):
            return f"others can write to '{place}'"
    return None
