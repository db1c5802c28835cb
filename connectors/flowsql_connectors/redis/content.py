"""What stands behind the keys of a table, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import DecodeContext, EncodeContext, FileFormat, Messages
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionValues
from flowsql_connectors.redis.keys import KeyTemplate, value_places
from flowsql_connectors.redis.options import FORMAT, KEY, STRUCTURE, Structure
from flowsql_connectors.redis.texts import texts_of, values_of
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import Schema

Int64s = npt.NDArray[np.int64]


@record
class Content:
    """How values hold the columns that are not in the key.

    ``places``: of those columns. ``format``: of strings and elements; None: a text a column.
    """

    table: TableSpec
    structure: Structure
    template: KeyTemplate
    places: tuple[int, ...]
    format: FileFormat | None

    @property
    def columns(self) -> Schema:
        """Those that are not in the key."""
        return tuple(self.table.columns[place] for place in self.places)

    @property
    def fields(self) -> list[bytes]:
        """Names of fields of hashes and entries."""
        return [column.name.encode() for column in self.columns]

    def texts(self, columns: Sequence[Any], rows: int, configuration: Mapping[str, str]) -> list[Any]:
        """Binary arrays that are written: of each column, or one of messages.

        Args:
            columns: arrays of all columns of the table.
        """
        wanted = tuple(columns[place] for place in self.places)
        if self.format is not None:
            encoder = self.format.message_encoder(self.columns, EncodeContext(configuration))
            return [encoder.encode(wanted, rows).cast(pa.binary())]
        return [texts_of(array, column.type) for array, column in zip(wanted, self.columns, strict=True)]

    def rows(
        self, texts: Sequence[Any], wanted: Sequence[int], configuration: Mapping[str, str], place: str
    ) -> tuple[Int64s | None, dict[int, Any]]:
        """Columns of what was read.

        Args:
            texts: binary arrays: of messages, or of each wanted column.
            wanted: places of columns that are not in the key.
            place: where the texts stand, for messages.

        Returns:
            Of which text each row is, and arrays by place. None: each text is a row.
        """
        if self.format is None:
            # A value of one column is there also where nobody wants it.
            pairs = zip(wanted, texts[: len(wanted)], strict=True)
            return None, {at: values_of(text, self.table.columns[at], place) for at, text in pairs}
        columns = self.columns
        projection = tuple(self.places.index(at) for at in wanted)
        context = DecodeContext(columns, projection, max(1, len(texts[0])), configuration)
        found = self.format.message_decoder(context).decode(Messages(texts[0], lambda index: place))
        lines = np.empty(0, np.int64) if found.lines is None else found.lines
        arrays = found.arrays or tuple(values_of(pa.nulls(0, pa.binary()), self.table.columns[at], "") for at in wanted)
        return lines, dict(zip(wanted, arrays, strict=True))


def content_of(table: TableSpec, values: OptionValues, template: KeyTemplate) -> Content:
    """How a table's values hold its columns.

    Raises:
        BindError: they cannot.
    """
    structure = values.get(STRUCTURE)
    places = tuple(value_places(table, template))
    name = values.get(FORMAT)
    if not places and name is None:
        raise BindError(
            "invalid-option-value",
            f"All columns of {table.name} are in its key, and none is left for its values.",
            hint=f"'{KEY.key}' with fewer columns, or one more column",
        )
    made = Content(table, structure, template, places, None)
    if structure in (Structure.HASH, Structure.STREAM):
        return made
    if name is None:
        if len(places) > 1:
            raise BindError(
                "missing-option",
                f"'{STRUCTURE.key}' = '{structure.value}' holds one column without a format, and {table.name} has "
                f"{len(places)} that are not in its key.",
                hint=f"'{FORMAT.key}' = 'json'",
            )
        return made
    columns = made.columns
    of_values = replace(table, columns=columns, partition_keys=(), primary_key=())
    options = {key: text for key, text in table.filled_options().items() if key.startswith(f"{name}.")}
    format_ = format_factory(name).create(OptionValues(options), of_values)
    if format_.changelog_mode != INSERT_ONLY:
        raise BindError(
            "unfit-format", f"'{FORMAT.key}' = '{name}' is of changes, and values of a key are rows.", hint="'json'"
        )
    return replace(made, format=format_)
