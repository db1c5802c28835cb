"""What is new in a batch: Spark's sources tell of files and of seconds that passed, FlowSQL's readers read them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import unquote

from flowsql_connectors import registry
from flowsql_connectors.filesystem.files import local_path
from flowsql_connectors.formats.rows_in_bytes import unreadable
from flowsql_connectors.spi.source import Split, TableSource
from flowsql_core.config import Configuration
from flowsql_core.errors import InternalError, NotSupportedYetError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import SPARK_BATCH_BYTES, SPARK_BATCH_FILES
from flowsql_runtime.spark.streaming.stages import sources_of

#: One row a file, or a second: which source it is of, and the path or the number of the second.
_COLUMNS: Final = ("uid", "path", "second")
#: What Spark's source of whole files has; the content is not read where nobody asks for it.
_FILES_DDL: Final = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
#: Spark would leave out files that are a week older than the newest one.
_ANY_AGE: Final = "365000d"
#: What a path of Hadoop must not hold by itself.
_PATTERN: Final = re.compile(r"([\\*?\[\]{}])")


class BatchedSources:
    """The sources of a job, as far as batches are concerned.

    Args:
        graph: of a job that the planner let through.
    """

    def __init__(self, graph: JobGraph) -> None:
        parameters = dict(graph.configuration)
        self._configuration = Configuration(values=parameters)
        self._widths: dict[str, int] = {}
        self._sources: dict[str, TableSource] = {}
        for uid, (vertex, spec) in sources_of(graph).items():
            self._sources[uid] = registry.create_source(spec, parameters)
            self._widths[uid] = vertex.parallelism

    def frame(self, session: Any) -> Any:
        """A streaming DataFrame of what is new, over all sources.

        Raises:
            ConnectorError: a path that is not there.
        """
        frames = [self._frame(session, uid, source) for uid, source in sorted(self._sources.items())]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.union(frame)
        return whole

    def _frame(self, session: Any, uid: str, source: TableSource) -> Any:
        from pyspark.sql import functions

        new = source.batched_input()
        nothing = functions.lit(None)
        if new is not None and new.path is not None:
            reader = session.readStream.format("binaryFile").schema(_FILES_DDL)
            for key, value in self._file_options().items():
                reader = reader.option(key, value)
            columns = functions.col("path"), nothing.cast("bigint")
            frame = reader.load(spark_path(new.path))
        elif new is not None:
            # Each number is a second since the query began for the first time.
            frame = session.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
            columns = nothing.cast("string"), functions.col("value")
        else:
            raise InternalError("a source without batches was planned for Spark")
        values = (functions.lit(uid), *columns)
        return frame.select(*(value.alias(name) for value, name in zip(values, _COLUMNS, strict=True)))

    def _file_options(self) -> dict[str, str]:
        options = {"recursiveFileLookup": "true", "maxFileAge": _ANY_AGE}
        files, size_bytes = self._configuration.get(SPARK_BATCH_FILES), self._configuration.get(SPARK_BATCH_BYTES)
        if size_bytes:
            options["maxBytesPerTrigger"] = str(size_bytes)
        elif files:
            options["maxFilesPerTrigger"] = str(files)
        return options

    def splits(self, found: Iterable[Sequence[Any]]) -> dict[str, list[list[Split]]]:
        """A batch's input as splits: by uid, a list for each subtask.

        Args:
            found: rows of :meth:`frame`.
        """
        files: dict[str, list[str]] = {uid: [] for uid in self._sources}
        seconds: dict[str, list[int]] = {uid: [] for uid in self._sources}
        for uid, path, second in found:
            if path is not None:
                files[uid].append(_local(path))
            else:
                seconds[uid].append(second)
        return {
            uid: source.create_enumerator().batch(sorted(files[uid]), _due(source, seconds[uid]), self._widths[uid])
            for uid, source in self._sources.items()
        }


def _due(source: TableSource, seconds: Sequence[int]) -> range:
    """Numbers of the rows of some seconds, which follow each other."""
    new = source.batched_input()
    rate = 0 if new is None or new.rows_per_second is None else new.rows_per_second
    return range(min(seconds) * rate, (max(seconds) + 1) * rate) if seconds else range(0)


def spark_path(path: str) -> str:
    """The path of a table's files as Spark takes it: of a file or folder that is there, or a pattern.

    Raises:
        ConnectorError: nothing is there.
        NotSupportedYetError: a pattern that Spark does not know.
    """
    root = os.path.abspath(local_path(path))
    if os.path.exists(root):
        return _PATTERN.sub(r"\\\1", root)
    if not glob.has_magic(root):
        raise unreadable(root)
    if "**" in root:
        raise NotSupportedYetError(f"'**' in a path that is read as a stream on Spark ('{path}')")
    return root


def _local(path: str) -> str:
    """A path of this machine behind one of Spark."""
    plain = "/" + path.removeprefix("file:").lstrip("/")
    return plain if os.path.exists(plain) else unquote(plain)
