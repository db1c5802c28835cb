"""What a job moved: rows and bytes that it read, wrote, sent between tasks and kept on disks meanwhile."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.spi.counters import BYTES_READ, BYTES_SENT
from flowsql_core.record import record
from flowsql_runtime.metrics.registry import RECORDS_SENT, JobMetrics

#: Bytes of rows that an operator had no memory for.
BYTES_SPILLED: Final = "numBytesSpilled"


@record
class Volumes:
    """Sums over all tasks of a job, so far.

    None: nobody counts it where the job runs. Rows that are read are counted as they come to the query: in batch mode
    on Spark behind the filters that readers apply by themselves. Bytes are those of files as they are stored; of a
    columnar file Spark counts all, whichever columns it needs.
    """

    rows_read: int | None = None
    bytes_read: int | None = None
    rows_written: int | None = None
    bytes_written: int | None = None
    rows_shuffled: int | None = None
    bytes_shuffled: int | None = None
    bytes_spilled: int | None = None

    def as_dict(self) -> dict[str, int | None]:
        """By name, for programs."""
        return {name: getattr(self, name) for name in self.__annotations__}

    def __str__(self) -> str:
        """What was read, and of the rest what is not zero."""
        parts = [
            _part(self.rows_read, self.bytes_read, "read"),
            _part(self.rows_written or None, self.bytes_written or None, "written"),
            _part(self.rows_shuffled or None, self.bytes_shuffled or None, "shuffled"),
            _part(None, self.bytes_spilled or None, "spilled"),
        ]
        return ", ".join(part for part in parts if part) or "no rows are counted"


def _part(rows: int | None, count_bytes: int | None, verb: str) -> str:
    size = "" if count_bytes is None else size_text(count_bytes)
    if rows is None:
        return f"{size} {verb}" if size else ""
    return f"{rows:,} row{'' if rows == 1 else 's'}{f' ({size})' if size else ''} {verb}"


def size_text(count_bytes: int) -> str:
    """``12.3 MB``: powers of a thousand."""
    size = float(count_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:,.1f} {unit}" if unit != "bytes" else f"{count_bytes} bytes"
        size /= 1000
    return f"{size:,.1f} GB"


def records_read(metrics: JobMetrics) -> int:
    """Rows that the sources of a job have read."""
    heads = (task.operators[0] for task in metrics.tasks if task.operators)
    # What takes nothing in is a source.
    return sum(head.records_out for head in heads if not head.records_in)


def volumes_at_home(metrics: JobMetrics) -> Volumes:
    """Of a job that runs in this program. What stays within a task is not shuffled, and such rows are not counted."""
    return Volumes(
        rows_read=records_read(metrics),
        bytes_read=int(metrics.total(BYTES_READ)),
        rows_written=int(metrics.total(RECORDS_SENT)),
        bytes_written=int(metrics.total(BYTES_SENT)),
        bytes_shuffled=int(metrics.task_total("numBytesOut")),
        bytes_spilled=int(metrics.total(BYTES_SPILLED)),
    )
