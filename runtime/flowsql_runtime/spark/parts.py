"""Tables whose rows never pass through the driver: Spark reads them, or FlowSQL does inside of Spark's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from flowsql_connectors import registry
from flowsql_connectors.spi.source import Split
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import SparkReader, SparkView, StagedInput
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.record import record
from flowsql_runtime.spark.files import read_files, readable_by_spark
from flowsql_runtime.spark.frames import view_of_frame
from flowsql_runtime.spark.readers import rows_of_reader
from flowsql_runtime.spark.sessions.host import SparkHost
from flowsql_runtime.spark.tasks import ReadParts, TaskMemory

#: Bytes of a part at most, and at least: what Spark takes for files of its own.
LARGEST_PART: Final = 128 << 20
SMALLEST_PART: Final = 4 << 20
#: Up to here one process that is warm is faster than tasks in others are begun.
SMALL_BYTES: Final = 8 << 20


@record
class Parts:
    """A job's input: splits by the source's uid, a mapping each part, and the bytes of all."""

    splits: tuple[Mapping[str, Sequence[Split]], ...]
    total_bytes: int


@record
class Placed:
    """Whether the view of an input stands, and the bytes of files that FlowSQL's readers read for it.

    ``shared``: the frame behind it, if Spark is to keep its rows.
    """

    is_view: bool
    own_bytes: int = 0
    shared: Any = None


def view_in_place(host: SparkHost, staged: StagedInput, memory: TaskMemory) -> Placed:
    """Make the view of an input if its rows need not pass through the driver.

    Args:
        memory: what one task may hold.
    """
    if staged.source is not None:
        return Placed(is_view=False)
    if isinstance(staged.own, SparkView):
        view_of_frame(host, staged.own).createOrReplaceTempView(staged.view)
        return Placed(is_view=True)
    if isinstance(staged.own, SparkReader):
        rows_of_reader(host, staged.own, staged.ddl).createOrReplaceTempView(staged.view)
        return Placed(is_view=True)
    found = None if staged.own is None else readable_by_spark(staged.own, staged.columns)
    if staged.own is not None and found is not None:
        host.stand(staged.view, read_files(host, found, staged.own, staged.ddl))
        return Placed(is_view=True)
    parts = parts_of(staged.job, host.slots())
    if parts is None or (parts.total_bytes <= SMALL_BYTES and host.is_local):
        return Placed(is_view=False, own_bytes=0 if parts is None else parts.total_bytes)
    rows = read_parts(host, staged, parts, memory)
    rows.createOrReplaceTempView(staged.view)
    return Placed(is_view=True, own_bytes=parts.total_bytes, shared=rows if staged.shared else None)


def parts_of(graph: JobGraph, slots: int) -> Parts | None:
    """The parts that tasks read each by itself.

    Args:
        slots: tasks that run at once.

    Returns:
        None where the input cannot be cut, or stands in the program; or where something is wrong with it, which a job
        in the driver says best.
    """
    nodes = [node for vertex in graph.vertices for node in vertex.operators if not node.number_of_inputs]
    parameters = dict(graph.configuration)
    whole: list[Mapping[str, Sequence[Split]]] = []
    total = 0
    nothing: dict[str, Sequence[Split]] = {node.uid: () for node in nodes}
    try:
        for node in nodes:
            if not isinstance(node.spec, ScanSpec):
                return None
            source = registry.create_source(node.spec, parameters)
            size = source.input_bytes()
            if size is None:
                return None
            made = source.create_enumerator().parts(max(SMALLEST_PART, min(LARGEST_PART, size // slots + 1)))
            if made is None:
                return None
            total += size
            whole += [{**nothing, node.uid: part} for part in made]
    except (FlowSqlError, OSError):
        return None
    return Parts(tuple(whole), total)


def read_parts(host: SparkHost, staged: StagedInput, parts: Parts, memory: TaskMemory) -> Any:
    """The rows of an input as Spark's tasks read them."""
    if not parts.splits:
        return host.session.createDataFrame([], staged.ddl)
    task = ReadParts(staged.job, memory, parts.splits, staged.columns)
    rows = host.map_in_arrow(host.unsized(len(parts.splits)), task, staged.ddl)
    if parts.total_bytes <= host.broadcast_bytes():
        # What Spark does with a file of its own of this size.
        rows = rows.hint("broadcast")
    return rows
