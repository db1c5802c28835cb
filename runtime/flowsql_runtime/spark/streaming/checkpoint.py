"""The checkpoint of a stream on Spark: Spark's offsets in one folder, beside it a snapshot of FlowSQL a batch.

``<location>/spark`` is Spark's. ``<location>/chk-<n>`` is a checkpoint of FlowSQL behind the n-th batch: state, and
what sinks had prepared. It exists as a whole or not at all, so that it decides whether a batch has been.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Final

from flowsql_core.clock import SystemClock
from flowsql_core.element import CheckpointBarrier
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_core.graph.job import JobGraph
from flowsql_core.record import record
from flowsql_runtime.checkpoint.assemble import assemble
from flowsql_runtime.checkpoint.layout import new_states
from flowsql_runtime.checkpoint.manifest import Manifest, decode_manifest
from flowsql_runtime.checkpoint.settings import DIRECTORY
from flowsql_runtime.checkpoint.storage import CHECKPOINT_PREFIX, METADATA, SnapshotFolder, below, open_storage
from flowsql_runtime.spark.streaming.task import TaskReport

#: Snapshots that stay: Spark asks for the last batch again where it did not get to note that it was done.
KEPT: Final = 2
_QUERY_FOLDER: Final = "flowsql"
_QUERY_FILE: Final = "query.json"


@record
class StoredQuery:
    """What a checkpoint says of its statement.

    ``lineage``: names the files that it writes. ``parallelism``: of the first run, kept since: state and files are
    dealt out by it. ``fingerprint``: of the plan.
    """

    lineage: str
    parallelism: int
    fingerprint: str


def stored_query(location: str) -> StoredQuery | None:
    """What stands in a folder; None where no statement has run yet.

    Raises:
        ConnectorError: the storage cannot be reached.
    """
    try:
        data = open_storage(location).folder(_QUERY_FOLDER).read(_QUERY_FILE)
    except ConnectorError as error:
        if error.code == "snapshot-file-missing":
            return None
        raise
    try:
        return StoredQuery(**json.loads(bytes(data)))
    except (ValueError, TypeError):
        # Its writer did not get to the end, so that no batch has begun.
        return None


def fingerprint_of(graph: JobGraph) -> str:
    """A digest of what a job does; its name and the options beside the plan are none of it."""
    # Records print all that they say but places in texts.
    return blake2b(repr((graph.vertices, graph.edges)).encode(), digest_size=16).hexdigest()


class StreamCheckpoint:
    """Snapshots of one statement. One process at a time.

    Args:
        location: folder or URI.
        graph: the job as it was planned.
        parallelism: that it was planned with.

    Raises:
        ExecutionError: the folder is of another statement.
    """

    def __init__(self, location: str, graph: JobGraph, parallelism: int) -> None:
        self.location = location
        self._graph = graph
        self._storage = open_storage(location)
        fingerprint = fingerprint_of(graph)
        found = stored_query(location)
        if found is None:
            found = StoredQuery(secrets.token_hex(8), parallelism, fingerprint)
            text = json.dumps(asdict(found), indent=2) + "\n"
            self._storage.folder(_QUERY_FOLDER).write(_QUERY_FILE, [text.encode()])
        elif found.fingerprint != fingerprint:
            raise ExecutionError(
                "other-checkpoint",
                f"The checkpoint in '{location}' is of another statement than '{graph.name}', or of another plan.",
                hint=f"name another folder in '{DIRECTORY.key}'; with an empty one the statement begins anew",
            )
        self.lineage = found.lineage
        self.newest = max(self._numbers(), default=0)
        self._layouts = {uid: state.layout for uid, state in new_states(graph).items()}

    @property
    def spark_location(self) -> str:
        """The folder of Spark's offsets."""
        # Java stands where the process was started, whatever this one's working directory is by now.
        location = self.location if "://" in self.location else os.path.abspath(self.location)
        return below(location, "spark")

    def folder(self, number: int) -> SnapshotFolder:
        """Of the snapshot behind a batch."""
        return self._storage.folder(f"{CHECKPOINT_PREFIX}{number}")

    def newest_manifest(self) -> Manifest | None:
        """Of the last batch that has been; None before the first."""
        if not self.newest:
            return None
        folder = self.folder(self.newest)
        return decode_manifest(folder.read(METADATA), f"{folder.path}/{METADATA}")[0]

    def check_begins(self, number: int) -> None:
        """The next batch is ``number``.

        Raises:
            ExecutionError: its state is not here.
        """
        if number != self.newest + 1:
            raise ExecutionError(
                "checkpoint-gap",
                f"Spark begins batch {number}, and the newest snapshot in '{self.location}' is that of batch "
                f"{self.newest}: folders are missing.",
                hint="restore the whole folder, or begin anew with an empty one",
            )
        # Of an attempt that died.
        self.folder(number).remove()

    def publish(self, number: int, reports: Sequence[TaskReport], committables: Mapping[str, Sequence[bytes]]) -> None:
        """A batch has been: from here on it counts. The snapshots before the last ones go."""
        written = {(report.vertex, report.subtask): report.written for report in reports}
        barrier = CheckpointBarrier(number, SystemClock().now_ms())
        _, metadata = assemble(
            barrier, self.lineage, self._graph, written, set(), committables, {}, {}, self.lineage, self._layouts
        )
        self.folder(number).publish(metadata)
        self.newest = number
        for old in self._numbers():
            if old <= number - KEPT:
                self.folder(old).remove()

    def _numbers(self) -> list[int]:
        names = (name.removeprefix(CHECKPOINT_PREFIX) for name in self._storage.snapshots())
        return sorted(int(name) for name in names if name.isdigit())
