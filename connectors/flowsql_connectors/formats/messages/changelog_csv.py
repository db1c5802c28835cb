"""``changelog-csv``: the format of Flink's documentation ("User-defined Sources & Sinks"): a kind, then columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.formats.csv import DISABLE_QUOTE, FIELD_DELIMITER, CsvFormatFactory
from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    FileFormat,
    FormatFactory,
    MessageDecoder,
    Messages,
)
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.row import ALL_CHANGES, ChangelogMode, RowKind

#: By their numbers.
_KINDS: Final = tuple(kind.name.encode() for kind in sorted(RowKind))


def _delimiter(text: str) -> str:
    if len(text) != 1:
        raise ValueError("expected one character")
    return text


COLUMN_DELIMITER = ConnectorOption(
    "changelog-csv.column-delimiter", _delimiter, "|", "What stands between the kind and the columns."
)


@record
class ChangelogCsvFormat(FileFormat):
    """The format; ``columns`` reads what stands behind the kinds."""

    columns: FileFormat
    delimiter: str

    identifier = "changelog-csv"

    @property
    def changelog_mode(self) -> ChangelogMode:
        """All four kinds."""
        return ALL_CHANGES

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A change a message."""
        return _ChangelogMessages(self.columns.message_decoder(context), self.delimiter)


class ChangelogCsvFormatFactory(FormatFactory):
    """Makes the format."""

    def options(self) -> OptionSet:
        """``changelog-csv.column-delimiter``."""
        return OptionSet(optional=(COLUMN_DELIMITER,))

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format; refuses column types that csv cannot hold."""
        delimiter = values.get(COLUMN_DELIMITER)
        given = OptionValues({FIELD_DELIMITER.key: delimiter, DISABLE_QUOTE.key: "true"})
        return ChangelogCsvFormat(CsvFormatFactory().create(given, table), delimiter)


class _ChangelogMessages(MessageDecoder):
    def __init__(self, columns: MessageDecoder, delimiter: str) -> None:
        self._columns = columns
        self._delimiter = delimiter.encode()

    def decode(self, messages: Messages) -> Columns:
        """The rows of all messages, with their kinds.

        Raises:
            ExecutionError: a message begins with no kind.
        """
        ended = pc.binary_join_element_wise(messages.values, pa.scalar(self._delimiter), b"")
        parts = pc.split_pattern(ended, self._delimiter, max_splits=1)
        codes = pc.index_in(pc.list_element(parts, 0), pa.array(_KINDS))
        wrong = np.flatnonzero(np.asarray(pc.and_(codes.is_null(), ended.is_valid())))
        if len(wrong):
            at = int(wrong[0])
            kinds = ", ".join(kind.decode() for kind in _KINDS)
            raise ExecutionError("bad-change", f"The message begins with none of {kinds}\nin {messages.place(at)}")
        found = self._columns.decode(Messages(_without_end(pc.list_element(parts, 1)), messages.place))
        assert found.lines is not None
        kinds_of_rows = np.asarray(codes.fill_null(0), np.uint8)[found.lines]
        return Columns(found.arrays, found.num_rows, kinds_of_rows, found.lines)


def _without_end(values: Any) -> Any:
    """The columns without the delimiter that was put behind them."""
    return pc.binary_slice(values, 0, -1)
