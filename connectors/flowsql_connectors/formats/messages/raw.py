"""Messages that are the bytes of one value each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    FileEncoder,
    MessageDecoder,
    MessageEncoder,
    Messages,
)
from flowsql_connectors.formats.messages.lines import without_line_feeds
from flowsql_connectors.formats.raw_lines import RawDecoder

if TYPE_CHECKING:
    from flowsql_connectors.formats.raw import RawFormat


class RawMessages(MessageDecoder):
    """A row a message; NULL where it has no bytes at all."""

    def __init__(self, format_: RawFormat, context: DecodeContext) -> None:
        self._wanted = [context.columns[index] for index in context.projection]
        self._decoder = RawDecoder(format_, context)

    def decode(self, messages: Messages) -> Columns:
        """The values."""
        values = messages.values
        valid = np.asarray(values.is_valid())
        present = values if valid.all() else values.drop_null()
        places = np.flatnonzero(valid)
        arrays = []
        for column in self._wanted:
            made = self._decoder.values(present, column.type, lambda row: messages.place(int(places[row])))
            arrays.append(made if valid.all() else _spread(made, valid))
        return Columns(tuple(arrays), len(values), None, np.arange(len(values)))


class RawMessageEncoder(MessageEncoder):
    """A value a message, none for NULL."""

    def __init__(self, encoder: FileEncoder) -> None:
        self._encoder = encoder

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """The bytes of the only column."""
        (values,) = columns
        present = values.drop_null() if values.null_count else values
        made = without_line_feeds(self._encoder.prepare((present,), len(present)))
        return _spread(made, np.asarray(values.is_valid())) if values.null_count else made


def _spread(values: Any, valid: npt.NDArray[np.bool_]) -> Any:
    """The values at the places that are valid, NULL at the others."""
    places = np.cumsum(valid) - 1
    return values.take(pa.array(places, mask=~valid))
