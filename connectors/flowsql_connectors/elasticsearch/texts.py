"""Values as they stand in ids of documents and names of indexes: what Java's ``toString`` makes of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_connectors.formats.text_output import timestamp_texts
from flowsql_core.arrow import compute as pc
from flowsql_core.types import logical as t


def plain_texts(column: Any, type_: t.LogicalType) -> Any:
    """A string array of a column without NULL."""
    match type_:
        case t.TimeType():
            days = column.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("ms"))
            return _without_seconds(pc.utf8_slice_codeunits(timestamp_texts(days, "T", grouped=True), 11))
        case t.TimestampType():
            return _without_seconds(timestamp_texts(column, "T", grouped=True))
        case t.TimestampLtzType():
            return timestamp_texts(column, "T", grouped=True)
    return render_column(column, type_, Notation.ROW)


def _without_seconds(texts: Any) -> Any:
    """``LocalTime`` leaves them out where they are zero."""
    return pc.replace_substring_regex(texts, r"^(|.*T)(\d\d:\d\d):00$", r"\1\2")
