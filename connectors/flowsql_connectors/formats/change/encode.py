"""Changes of rows to lines of events, as Flink writes them: an update is a row that goes and one that comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import TextEncoder
from flowsql_connectors.formats.json_encode import JsonEncoder
from flowsql_core.arrow import compute as pc
from flowsql_core.row import INSERT, UPDATE_AFTER
from flowsql_core.types.logical import Schema

if TYPE_CHECKING:
    from flowsql_connectors.formats.change.factory import ChangeFormat


class ChangeEncoder(TextEncoder):
    """Lines of one table."""

    def __init__(self, format_: ChangeFormat, columns: Schema) -> None:
        style = format_.style
        self._rows = JsonEncoder(format_.json, columns)
        come, go = style.written
        if style.partial:
            open_, close = ("[", "]") if style.listed else ("", "")
            heads = [f'{{"{style.after}":{open_}'] * 2
            tails = [f'{close},"{style.op}":"{come}"}}\n', f'{close},"{style.op}":"{go}"}}\n']
        else:
            none = format_.json.ignore_nulls
            heads = [
                f'{{"{style.after}":' if none else f'{{"{style.before}":null,"{style.after}":',
                f'{{"{style.before}":',
            ]
            rest = "" if none else f',"{style.after}":null'
            tails = [f',"{style.op}":"{come}"}}\n', f'{rest},"{style.op}":"{go}"}}\n']
        self._heads, self._tails = pa.array(heads), pa.array(tails)

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The lines of insertions."""
        return self.prepare_changes(columns, num_rows, None)

    def prepare_changes(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None) -> Any:
        """The lines of a batch, an event a change."""
        rows = self._rows.objects(columns, num_rows)
        if kinds is None:
            return pc.binary_join_element_wise(self._heads[0], rows, self._tails[0], "")
        goes = pa.array(((kinds != INSERT) & (kinds != UPDATE_AFTER)).astype(np.int8))
        return pc.binary_join_element_wise(self._heads.take(goes), rows, self._tails.take(goes), "")
