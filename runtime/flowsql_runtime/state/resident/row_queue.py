"""Rows of all slots in one order of arrival, as the Arrow arrays that came; joined only when somebody looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.column_bytes import joined
from flowsql_runtime.state.resident.column_store import flat, key_table_of, parent_slots
from flowsql_runtime.state.resident.frozen import Frozen, Moment
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]

#: Slots, signs and columns of some rows.
_Piece = tuple[Int32s, Int8s, list[Any]]

_SIGN: Final = "sign"


class ResidentRowQueue:
    """Implements ``RowQueue``; see there."""

    def __init__(self, parent: ResidentKeyIndex, types: Sequence[Any]) -> None:
        self._parent = parent
        self._nothing: _Piece = (np.zeros(0, np.int32), np.zeros(0, np.int8), [pa.array([], type_) for type_ in types])
        self._pieces: list[_Piece] = []
        self.watchers: tuple[Frozen, ...] = ()

    def __len__(self) -> int:
        return sum(len(slots) for slots, _, _ in self._pieces)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(
            int(slots.nbytes + signs.nbytes + sum(column.nbytes for column in columns))
            for slots, signs, columns in self._pieces
        )

    def slots(self) -> Int32s:
        """Slots of all rows."""
        return self._whole()[0]

    def append(self, slots: Int32s, signs: Int8s, columns: Sequence[Any]) -> None:
        """Rows that wait from now on."""
        self._pieces.append((slots, signs, list(columns)))

    def first(self, rows: int) -> _Piece:
        """Slots, signs and columns of the first rows."""
        slots, signs, columns = self._whole()
        return slots[:rows], signs[:rows], [column.slice(0, rows) for column in columns]

    def drop_first(self, rows: int) -> None:
        """The first rows wait no longer; what is left holds no memory of theirs."""
        slots, signs, columns = self._whole()
        left = [pa.concat_arrays([column.slice(rows), column.slice(0, 0)]) for column in columns]
        self._pieces = [(slots[rows:].copy(), signs[rows:].copy(), left)] if rows < len(slots) else []

    def _whole(self) -> _Piece:
        """All rows as one piece."""
        if len(self._pieces) > 1:
            slots, signs, columns = zip(*self._pieces, strict=True)
            whole = [joined(parts) for parts in zip(*columns, strict=True)]
            self._pieces = [(np.concatenate(slots), np.concatenate(signs), whole)]
        return self._pieces[0] if self._pieces else self._nothing

    def freeze(self, moment: Moment) -> Frozen:
        """The rows of this moment, whose arrays never change; see ``Freezable``."""
        parts = {"_parent": moment.of(self._parent)}
        return Frozen(self, parts=parts, values={"_pieces": list(self._pieces)})

    def save(self) -> Any:
        """Keys, columns and signs of all rows."""
        slots, signs, columns = self._whole()
        names = [f"r{index}" for index in range(len(columns))]
        return key_table_of(self._parent, slots, [*columns, pa.array(signs)], [*names, _SIGN])

    def load(self, table: Any) -> None:
        """Append the rows of a saved table."""
        columns = [flat(table.column(f"r{index}")) for index in range(len(self._nothing[2]))]
        signs, _ = values_and_validity(flat(table.column(_SIGN)))
        self.append(parent_slots(self._parent, table), signs, columns)
