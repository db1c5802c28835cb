"""What a writer of a lake hands to the committer: data files that are whole, under a number that never comes again.

A commit keeps the newest number of each writer in the table itself. A commit that is repeated behind a crash finds it
there, and leaves out what is done. ADR 037.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from flowsql_connectors.spi.sink import Committable
from flowsql_core.record import record


@record
class Prepared:
    """Data files of one writer and one checkpoint.

    Attributes:
        lineage: the INSERT in the job and all that it was restored from.
        run: this writer, new with every start.
        sequence: counts the writer's checkpoints.
        files: as the lake describes them, in forms of JSON.
    """

    lineage: str
    run: str
    sequence: int
    files: tuple[Mapping[str, Any], ...]

    def encode(self) -> Committable:
        """As opaque bytes."""
        return Committable(
            orjson.dumps(
                {"lineage": self.lineage, "run": self.run, "sequence": self.sequence, "files": list(self.files)}
            )
        )

    @staticmethod
    def decode(committable: Committable) -> Prepared:
        """The inverse of :meth:`encode`."""
        body = orjson.loads(committable.data)
        return Prepared(body["lineage"], body["run"], body["sequence"], tuple(body["files"]))


def marks_of(prepared: Iterable[Prepared]) -> dict[str, int]:
    """The newest number by run."""
    marks: dict[str, int] = {}
    for one in prepared:
        marks[one.run] = max(one.sequence, marks.get(one.run, 0))
    return marks


def left_of(prepared: Iterable[Prepared], done: Mapping[str, int]) -> list[Prepared]:
    """What is not done, by the newest numbers that are."""
    return [one for one in prepared if one.sequence > done.get(one.run, 0)]
