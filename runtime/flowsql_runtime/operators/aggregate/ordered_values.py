"""Calls that keep their values in arrival order: LISTAGG, COLLECT, ARRAY_AGG; FIRST/LAST/SINGLE over retractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.column_bytes import joined, ranges_within, taken
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.bitmaps import bitmap_aggregates
from flowsql_runtime.operators.aggregate.percentile import percentiles
from flowsql_runtime.state.flat_rows import flat_columns, whole_columns
from flowsql_runtime.state.scratch import scratch_stores
from flowsql_runtime.state.stores import RowList

Int32s = npt.NDArray[np.int32]
Int8s = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]


_NULLS_TOO: Final = frozenset({"ARRAY_AGG", "SINGLE_VALUE", "JSON_OBJECTAGG", "JSON_ARRAYAGG"})


def takes_nulls(call: AggregateCall) -> bool:
    """Whether a call takes rows in whose argument is NULL; of PERCENTILE such a row may hold the fraction."""
    return call.function in _NULLS_TOO or (call.function == "PERCENTILE" and not call.options)


@dataclass(frozen=True, eq=False, slots=True)
class ValueResults:
    """Results of slots before and after, Arrow arrays of m rows; ``touched`` where a value came or went."""

    before: Any
    after: Any
    touched: Bools

    def changed(self) -> Bools:
        """Where values came or went; equal texts and numbers are no change."""
        if pa.types.is_nested(self.after.type):
            from flowsql_compute.eval.nested.lists import element_codes

            codes = element_codes(pa.concat_arrays([self.before, self.after]))
            m = len(self.before)
            changed: Bools = self.touched & (codes[:m] != codes[m:])
            return changed
        same = pc.fill_null(pc.equal(self.before, self.after), False)
        both_null = pc.and_(pc.is_null(self.before), pc.is_null(self.after))
        equal = pc.or_(same, both_null)
        return self.touched & ~_bools(equal)

    def to_arrow(self, rows: npt.NDArray[Any]) -> Any:
        """Row 2i is ``before[i]``, row 2i + 1 ``after[i]``."""
        both = joined([self.before, self.after])
        return taken(both, rows // 2 + (rows & 1) * len(self.before))


def _bools(array: Any) -> Bools:
    from flowsql_compute.eval.columns import values_and_validity

    values: Bools = values_and_validity(array)[0]
    return values


def _require_keys(owners: npt.NDArray[np.int64], keys: Any) -> None:
    """What JSON_OBJECTAGG asks of the keys of each group: none is NULL, none is there twice."""
    from flowsql_compute.eval.nested.lists import element_codes, first_of_equals

    if keys.null_count:
        raise ExecutionError("json-key", "Map views don't support null keys.")
    again = np.flatnonzero(~first_of_equals(owners, element_codes(keys)))
    if len(again):
        raise ExecutionError(
            "json-key",
            f"Key '{keys[int(again[0])].as_py()}' is already present. Duplicate keys are not allowed in "
            "JSON_OBJECTAGG. Please ensure that keys are unique.",
        )


class OrderedValues:
    """The values of one call, by slot in arrival order.

    Args:
        values: (value) or, for LISTAGG, (value, separator) rows; ROWs are flat.
        columns: where the input has them; ``types`` are theirs.
    """

    def __init__(self, call: AggregateCall, values: RowList, columns: Sequence[int], types: Sequence[Any]) -> None:
        self.call = call
        self.values = values
        self.columns = tuple(columns)
        self.types = tuple(types)
        self.type = to_arrow(call.type)

    def update(self, signs: Int8s, slots: Int32s, columns: Sequence[Any]) -> None:
        """Take values in (sign 1) or out (sign -1), in order."""
        taking_part = np.where(signs != 0, slots, np.int32(-1))
        self.values.apply(
            np.ascontiguousarray(signs), taking_part, [part for i in self.columns for part in flat_columns(columns[i])]
        )

    def results(self, slots: Int32s) -> Any:
        """Result of each slot, an Arrow array of the call's type; wide (``column_bytes``) where it takes too much."""
        probes, rows = self.values.rows_of(slots)
        sizes = np.bincount(probes, self.values.row_bytes(rows), len(slots))
        parts = list(ranges_within(sizes.astype(np.int64), column_bytes.MOST_BYTES))
        if len(parts) == 1:
            return self._results_of(slots, probes, rows)
        return joined([self._results_of(part, *self.values.rows_of(part)) for part in (slots[a:b] for a, b in parts)])

    def _results_of(self, slots: Int32s, probes: Int32s, rows: Int32s) -> Any:
        counts = np.bincount(probes, minlength=len(slots))
        offsets = np.zeros(len(slots) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        match self.call.function:
            case "FIRST_VALUE" | "LAST_VALUE" | "SINGLE_VALUE":
                return self._one(rows, offsets, counts)
            case "COLLECT":
                return self._multiset(probes, rows, len(slots))
            case "LISTAGG":
                return self._text(rows, offsets, counts)
            case "JSON_OBJECTAGG" | "JSON_ARRAYAGG":
                return self._json(probes, rows, len(slots))
            case "PERCENTILE":
                columns = whole_columns(self.types, self.values.gather(rows))
                fractions = dict(self.call.options).get("fractions")
                return percentiles(columns, probes.astype(np.int64), len(slots), fractions, self.type)
            case function if function.startswith("BITMAP_"):
                values = self.values.gather(rows)[0]
                return bitmap_aggregates(function, values, probes.astype(np.int64), len(slots), self.type)
            case _:
                values = whole_columns(self.types, self.values.gather(rows))[0]
                lists = pa.ListArray.from_arrays(pa.array(offsets), values)
                filled = pa.array(counts > 0)
                return pc.if_else(filled, lists, pa.scalar(None, lists.type)).cast(self.type)

    def _one(self, rows: Int32s, offsets: Int32s, counts: npt.NDArray[Any]) -> Any:
        if self.call.function == "SINGLE_VALUE" and (counts > 1).any():
            raise ExecutionError("single-value", "SingleValueAggFunction received more than one element.")
        at = offsets[1:] - 1 if self.call.function == "LAST_VALUE" else offsets[:-1]
        picked = rows[np.where(counts > 0, at, 0)] if len(rows) else np.zeros(0, np.int32)
        if not len(rows):
            return pa.nulls(len(counts), self.type)
        values = whole_columns(self.types, self.values.gather(picked))[0]
        return pc.if_else(pa.array(counts > 0), values, pa.scalar(None, values.type))

    def _text(self, rows: Int32s, offsets: Int32s, counts: npt.NDArray[Any]) -> Any:
        if not len(rows):
            return pa.nulls(len(counts), self.type)
        columns = self.values.gather(rows)
        separator = columns[1][0].as_py() if len(columns) > 1 else ","
        lists = pa.ListArray.from_arrays(pa.array(offsets), columns[0])
        texts = pc.binary_join(lists, separator)
        return pc.if_else(pa.array(counts > 0), texts, pa.scalar(None, texts.type))

    def _json(self, probes: Int32s, rows: Int32s, n: int) -> Any:
        # Imported here: what writes JSON takes time to load, and few queries aggregate to it.
        from flowsql_compute.eval.json.render import joined_arrays, joined_objects

        columns, owners = whole_columns(self.types, self.values.gather(rows)), probes.astype(np.int64)
        clause = dict(self.call.options).get("null_clause")
        if self.call.function == "JSON_OBJECTAGG":
            _require_keys(owners, columns[0])
            return joined_objects(owners, columns[0], columns[1], n, clause == "ABSENT ON NULL")
        return joined_arrays(owners, columns[0], n, clause != "NULL ON NULL")

    def _multiset(self, probes: Int32s, rows: Int32s, n: int) -> Any:
        values = whole_columns(self.types, self.values.gather(rows))
        index = scratch_stores().window_index(self.types)
        slots, fresh = index.find_or_insert(index.encode(values, probes.astype(np.int64)))
        counts = np.bincount(slots, minlength=len(fresh)).astype(np.int32)
        entries = slots[fresh]
        owners = probes[fresh]
        # Entries were made in the order of probes, so they are grouped by owner already.
        offsets = np.searchsorted(owners, np.arange(n + 1)).astype(np.int32)
        keys = index.columns_at(entries)[0]
        return pa.MapArray.from_arrays(pa.array(offsets), keys, pa.array(counts)).cast(self.type)
