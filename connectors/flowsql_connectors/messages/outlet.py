"""What a sink of messages takes: rows as bytes and as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.record import record


@record
class Outgoing:
    """Rows to be sent, in order.

    ``values``: a binary array, a message a row, NULL where the format has no form of the row; None for connectors
    without formats. ``columns``: Arrow arrays of the table's columns. ``kinds``: what each row does, uint8 of
    :mod:`flowsql_core.row`; None: all are inserted. ``metadata``: arrays of the metadata columns that are
    written, by key.
    """

    num_rows: int
    values: Any | None
    columns: tuple[Any, ...]
    kinds: npt.NDArray[np.uint8] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def slice(self, start: int, stop: int) -> Outgoing:
        """Rows [start, stop) as views."""
        count = stop - start
        return Outgoing(
            count,
            None if self.values is None else self.values.slice(start, count),
            tuple(column.slice(start, count) for column in self.columns),
            None if self.kinds is None else self.kinds[start:stop],
            {key: array.slice(start, count) for key, array in self.metadata.items()},
        )

    @staticmethod
    def joined(parts: Sequence[Outgoing]) -> Outgoing:
        """All rows of some batches of one table, of which there is at least one."""
        if len(parts) == 1:
            return parts[0]
        kinds = None
        if any(part.kinds is not None for part in parts):
            kinds = np.concatenate(
                [np.zeros(part.num_rows, np.uint8) if part.kinds is None else part.kinds for part in parts]
            )
        return Outgoing(
            sum(part.num_rows for part in parts),
            None if parts[0].values is None else pa.concat_arrays([part.values for part in parts]),
            tuple(pa.concat_arrays(pieces) for pieces in zip(*(part.columns for part in parts), strict=True)),
            kinds,
            {key: pa.concat_arrays([part.metadata[key] for part in parts]) for key in parts[0].metadata},
        )


class MessageOutlet(ABC):
    """Where the rows of one subtask go. One thread."""

    @abstractmethod
    def open(self) -> None:
        """Connect; again behind a failure and ``close``.

        Raises:
            ConnectorError: ``retryable`` if another try may help.
        """

    @abstractmethod
    def send(self, rows: Outgoing) -> None:
        """All rows have arrived when this returns. What fails in a ``retryable`` way is sent again whole.

        Raises:
            ConnectorError: the connection is lost (``retryable``), or the other side refuses.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection, also of one that was lost or never made. Must not fail."""
