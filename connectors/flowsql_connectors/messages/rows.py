"""Messages to rows: decoded many at once, with the metadata that came beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import Columns, DecodeContext, FileFormat, Messages
from flowsql_connectors.messages.feed import Arrived
from flowsql_connectors.spi.source import ReaderContext
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType

Int64s = npt.NDArray[np.int64]

#: Before the metadata keys of the format.
OF_VALUE: Final = "value."


class MessageDecoding(Protocol):
    """Makes rows of messages; of one thread."""

    def decode(self, arrived: Arrived, place: Callable[[int], str]) -> tuple[Columns, Int64s]:
        """As :meth:`MessageRows.decode`."""
        ...

    def raw(self, arrived: Arrived, index: int) -> bytes | None:
        """The bytes of a message as it came; None: it has none."""
        ...


class MessageRows:
    """Decodes the messages of one scan; one per thread.

    Args:
        metadata: keys of the connector; others of the scan are the format's.
    """

    def __init__(
        self, format_: FileFormat, scan: ScanSpec, metadata: Mapping[str, LogicalType], context: ReaderContext
    ) -> None:
        self._types = [to_arrow(column.type) for column in scan.output]
        self._columns = len(scan.projection)
        self._metadata = scan.metadata
        self._own = frozenset(metadata)
        told = tuple(key.removeprefix(OF_VALUE) for key in scan.metadata if key not in metadata)
        self._decoder = format_.message_decoder(
            DecodeContext(
                scan.table.columns,
                scan.projection,
                context.batch_rows,
                context.configuration,
                metadata=told,
                lose=context.lose,
            )
        )

    def decode(self, arrived: Arrived, place: Callable[[int], str]) -> tuple[Columns, Int64s]:
        """The rows, and of each the index of its message, ascending.

        Args:
            place: where the message of an index is.

        Raises:
            ExecutionError: a message is bad.
        """
        found = self._decoder.decode(Messages(as_array(arrived.values), place))
        assert found.lines is not None
        lines = found.lines
        told = self._columns
        arrays = [self._decoded(found, at) for at in range(self._columns)]
        for key in self._metadata:
            if key in self._own:
                arrays.append(of_messages(arrived.metadata.get(key), self._types[len(arrays)], lines))
            else:
                arrays.append(self._decoded(found, told))
                told += 1
        return Columns(tuple(arrays), found.num_rows, found.kinds), lines

    def raw(self, arrived: Arrived, index: int) -> bytes | None:
        """The bytes of a message as it came; None: it has none."""
        value = arrived.values[index]
        return cast("bytes | None", value.as_py() if isinstance(value, pa.Scalar) else value)

    def _decoded(self, found: Columns, at: int) -> Any:
        """An array of what was decoded; of no rows there is none."""
        return found.arrays[at] if found.arrays else pa.nulls(found.num_rows, self._types[at])


def as_array(values: Any) -> Any:
    """Messages as a binary array."""
    return values if isinstance(values, pa.Array) else pa.array(values, pa.binary())


def of_messages(values: Sequence[Any] | None, type_: Any, lines: Int64s) -> Any:
    """What is told of messages, for their rows."""
    if values is None:
        return pa.nulls(len(lines), type_)
    if pa.types.is_timestamp(type_):
        array = pa.array(values, pa.int64()).cast(pa.timestamp("ms", type_.tz)).cast(type_)
    else:
        array = pa.array(values, type_)
    return array.take(pa.array(lines))
