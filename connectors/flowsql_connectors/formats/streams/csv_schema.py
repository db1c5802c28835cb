"""Csv files as a ``CsvSchema`` describes them: the ``csv`` format of tables, with what only such schemas say."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import orjson

from flowsql_connectors.formats.csv import HEADER, CsvFormat, CsvFormatFactory
from flowsql_connectors.formats.format import FileFormat, FormatFactory
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, parse_boolean
from flowsql_core.graph.specs import TableSpec

ARRAY_DELIMITERS: ConnectorOption[tuple[str | None, ...]] = ConnectorOption(
    "csv.array-element-delimiters",
    lambda text: tuple(orjson.loads(text)),
    (),
    "What is between the elements of arrays, a text or null a column, as JSON.",
)
STRICT_HEADER = ConnectorOption(
    "csv.strict-header", parse_boolean, False, "Whether names in the header must be those of the columns."
)
SKIP_FIRST = ConnectorOption(
    "csv.skip-first-row", parse_boolean, False, "Whether the first line behind the header is left out."
)
DROP_MORE = ConnectorOption(
    "csv.drop-more", parse_boolean, False, "Whether fields behind those of the last column are left out."
)
LINE_END = ConnectorOption("csv.line-end", str, "\n", "What ends written lines.")

_OWN: Final = OptionSet(optional=(ARRAY_DELIMITERS, STRICT_HEADER, SKIP_FIRST, DROP_MORE, LINE_END))


class CsvSchemaFormatFactory(FormatFactory):
    """Makes csv formats of schemas."""

    def options(self) -> OptionSet:
        """The ``csv.*`` options."""
        return CsvFormatFactory().options().merged(_OWN)

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format; refuses column types that csv cannot hold."""
        made = CsvFormatFactory().create(values, table)
        assert isinstance(made, CsvFormat)
        return replace(
            made,
            array_delimiters=values.get(ARRAY_DELIMITERS),
            strict_header=values.get(HEADER) and values.get(STRICT_HEADER),
            skips_first=values.get(SKIP_FIRST),
            drops_more=values.get(DROP_MORE),
            line_end=values.get(LINE_END),
            grouped=False,
        )
