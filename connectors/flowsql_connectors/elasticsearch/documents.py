"""Rows to the lines of bulk requests: an action and, but for deletes, a document each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.text.render import json_strings
from flowsql_connectors.elasticsearch.index import IndexTemplate
from flowsql_connectors.elasticsearch.options import FORMAT, KEY_DELIMITER
from flowsql_connectors.elasticsearch.texts import plain_texts
from flowsql_connectors.formats.format import EncodeContext
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types import logical as t

_NO_ID: Final = (t.ArrayType, t.MapType, t.MultisetType, t.RowType, t.BinaryStringType, t.VariantType, t.BitmapType)
#: Longer ids are refused by the server.
_ID_BYTES: Final = 512


class DocumentEncoder:
    """Encodes the rows of one INSERT.

    Raises:
        BindError: the format is of changes, or a column of the primary key has no text.
    """

    def __init__(
        self, table: TableSpec, index: IndexTemplate, values: OptionValues, configuration: Mapping[str, str]
    ) -> None:
        self._table = table
        self._index = index
        self._delimiter = values.get(KEY_DELIMITER)
        names = [column.name for column in table.columns]
        self.keys = tuple(names.index(name) for name in table.primary_key)
        wrong = [table.columns[key].type for key in self.keys if isinstance(table.columns[key].type, _NO_ID)]
        if wrong:
            raise BindError(
                "invalid-primary-key",
                "The table has a primary key on columns of illegal types: "
                f"[{', '.join(str(type_.as_nullable()) for type_ in wrong)}].",
                hint="the id of a document is a text: take columns of numbers, texts or times",
            )
        name = values.get(FORMAT)
        options = {key: text for key, text in table.filled_options().items() if key.startswith(f"{name}.")}
        format_ = format_factory(name).create(OptionValues(options), replace(table, partition_keys=(), primary_key=()))
        if format_.changelog_mode != INSERT_ONLY:
            raise BindError("unfit-format", f"'{FORMAT.key}' = '{name}' is of changes, and a document is a row.")
        self._encoder = format_.message_encoder(table.columns, EncodeContext(configuration))

    def lines(self, columns: Sequence[Any], rows: int, gone: npt.NDArray[np.bool_] | None, now_ms: int) -> Any:
        """A binary array: of each row the lines of its action and document, each with its line feed.

        Args:
            gone: rows whose documents are deleted.
            now_ms: the present moment, for names of indexes.
        """
        documents = self._encoder.encode(tuple(columns), rows).cast(pa.binary())
        constant = self._index.constant
        if constant is None:
            names: Any = json_strings(self._index.names(columns, rows, now_ms)).cast(pa.binary())
        else:
            names = json_strings(pa.array([constant]))[0].cast(pa.binary())
        if not self.keys:
            return pc.binary_join_element_wise(b'{"index":{"_index":', names, b"}}\n", documents, b"\n", b"")
        ids = json_strings(self._ids(columns)).cast(pa.binary())
        upserts = pc.binary_join_element_wise(
            b'{"update":{"_index":', names, b',"_id":', ids, b'}}\n{"doc":', documents, b',"doc_as_upsert":true}\n', b""
        )
        if gone is None:
            return upserts
        deletes = pc.binary_join_element_wise(b'{"delete":{"_index":', names, b',"_id":', ids, b"}}\n", b"")
        return pc.if_else(pa.array(gone), deletes, upserts)

    def _ids(self, columns: Sequence[Any]) -> Any:
        texts = [plain_texts(columns[key], self._table.columns[key].type) for key in self.keys]
        made = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, self._delimiter)
        longest = pc.max(pc.binary_length(made)).as_py() or 0
        if longest > _ID_BYTES:
            raise BindError(
                "document-id", f"The id of a document has {longest} bytes, and at most {_ID_BYTES} are taken."
            )
        return made


def requests(lines: Any, most_rows: int, most_bytes: int) -> Iterator[Any]:
    """Slices of lines for one request each, of no more rows and bytes; 0: no matter how many."""
    ends = np.cumsum(np.asarray(pc.binary_length(lines)), dtype=np.int64)
    start = 0
    while start < len(lines):
        stop = len(lines)
        if most_bytes:
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + most_bytes, side="right")))
        if most_rows:
            stop = min(stop, start + most_rows)
        yield lines.slice(start, stop - start)
        start = stop


def body_of(lines: Any) -> bytes:
    """The bytes of lines, one behind another."""
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32, len(lines) + 1, 4 * lines.offset)
    return bytes(data[int(ends[0]) : int(ends[-1])])
