"""Calls that keep their values in arrival order: LISTAGG, COLLECT, ARRAY_AGG; FIRST/LAST/SINGLE over retractions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.hyperloglog import cardinalities
from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.column_bytes import joined, narrow, ranges_within, row_bytes, taken
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.bitmaps import bitmap_aggregates
from flowsql_runtime.operators.aggregate.list_versions import ListVersions
from flowsql_runtime.operators.aggregate.percentile import percentiles
from flowsql_runtime.state.flat_rows import flat_columns, whole_columns
from flowsql_runtime.state.scratch import scratch_stores
from flowsql_runtime.state.stores import RowList

Int32s = npt.NDArray[np.int32]
Int8s = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]


#: Columns of members of lists, by their places.
Gather = Callable[[Int32s], Sequence[Any]]

#: Functions whose result is one value of the list.
_ONE: Final = frozenset({"FIRST_VALUE", "LAST_VALUE", "SINGLE_VALUE"})
#: Values of all lists that are written out at once.
_MOST_VALUES: Final = 1 << 22
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


@dataclass(frozen=True, eq=False, slots=True)
class VersionedResults:
    """Results of lists as they were one after the other, and the place of those before and after each change.

    ``versions``: Arrow, (v,). ``before``, ``after``: (m,), places. ``touched``: (m,), whether a value came or went.
    """

    versions: Any
    before: Int32s
    after: Int32s
    touched: Bools

    def changed(self) -> Bools:
        """Where values came or went; equal texts and numbers are no change."""
        changed = self.touched & ~self._alike()
        return changed

    def _alike(self) -> Bools:
        """Whether results before and after are equal, where a value came or went; lengths tell most apart."""
        alike = np.zeros(len(self.before), np.bool_)
        rows = np.flatnonzero(self.touched)
        lengths = result_lengths(self.versions)
        if lengths is not None:
            rows = rows[lengths[self.before[rows]] == lengths[self.after[rows]]]
        if len(rows):
            pair = taken(self.versions, self.before[rows]), taken(self.versions, self.after[rows])
            alike[rows] = ~ValueResults(*pair, np.ones(len(rows), np.bool_)).changed()
        return alike

    def to_arrow(self, rows: npt.NDArray[Any]) -> Any:
        """Row 2i is before change i, row 2i + 1 after it."""
        places = np.where(rows & 1, self.after[rows >> 1], self.before[rows >> 1])
        return taken(self.versions, places)


def result_lengths(array: Any) -> npt.NDArray[np.int64] | None:
    """How long each text or collection is, -1 for NULL; None for other types."""
    kinds = pa.types
    if kinds.is_list(array.type) or kinds.is_map(array.type):
        offsets = array.offsets
        lengths = np.diff(values_and_validity(offsets)[0].astype(np.int64))
    elif any(is_kind(array.type) for is_kind in (kinds.is_string, kinds.is_binary)):
        lengths = values_and_validity(pc.cast(pc.fill_null(pc.binary_length(array), 0), pa.int64()))[0]
    else:
        return None
    return np.where(_bools(pc.is_null(array)), -1, lengths)


def _bools(array: Any) -> Bools:
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


def list_pieces(calls: Sequence[OrderedValues], slots: Int32s) -> Iterator[tuple[int, int]]:
    """Ranges of rows after each of which a list is written out: of few enough values to stand in memory together."""
    lists = [one for one in calls if one.call.function not in _ONE]
    if not lists:
        yield 0, len(slots)
        return
    known, places = np.unique(slots, return_inverse=True)
    places = places.ravel()
    order = np.argsort(places, kind="stable")
    ranks = np.empty(len(slots), np.int64)
    starts = np.searchsorted(places[order], np.arange(len(known)))
    ranks[order] = np.arange(len(slots)) - starts[places[order]]
    lengths = sum(one.values.counts(known).astype(np.int64)[places] + ranks + 1 for one in lists)
    # The list that a group has before a range is written out, too.
    yield from ranges_within(np.asarray(lengths), _MOST_VALUES)


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
            return self._results_of(len(slots), probes, rows, self.values.gather)
        found = (self.values.rows_of(slots[a:b]) for a, b in parts)
        sized = zip(parts, found, strict=True)
        return joined([self._results_of(b - a, *pair, self.values.gather) for (a, b), pair in sized])

    def follow(self, signs: Int8s, slots: Int32s, columns: Sequence[Any], rows: Int32s) -> VersionedResults:
        """Take values in or out, in order, with the result before and after each of ``rows``."""
        known, places = np.unique(slots, return_inverse=True)
        groups = places.ravel().astype(np.int32)
        flat = [part for i in self.columns for part in flat_columns(columns[i])]
        probes, first_rows = self.values.rows_of(known)
        one = self.call.function in _ONE
        # What goes is gone from the store after the step. An end is at most as far from it as rows go.
        looked_at = np.arange(len(probes))
        if one:
            looked_at = self._near_the_end(probes, len(known), np.bincount(groups[signs < 0], minlength=len(known)))
        held = list(self.values.gather(first_rows[looked_at]))
        changed = self.values.apply(np.ascontiguousarray(signs), np.where(signs != 0, slots, np.int32(-1)), flat)
        changes = np.where(changed >= 0, signs, 0).astype(np.int8)
        versions = ListVersions(groups, changes, changed, probes, first_rows, len(known))
        # Places of held rows in ``pool``, behind which the batch's rows stand.
        in_pool = np.full(len(probes) + len(slots), -1, np.int64)
        in_pool[looked_at] = np.arange(len(looked_at))
        in_pool[len(probes) :] = len(looked_at) + np.arange(len(slots))
        pool = [joined(list(pair)) for pair in zip(held, flat, strict=True)]

        def gather(members: Int32s) -> list[Any]:
            return [narrow(taken(column, in_pool[members])) for column in pool]

        if one:
            members = versions.ends(newest=self.call.function == "LAST_VALUE")
            there = np.flatnonzero(members >= 0)
            self._require_one(versions.lengths)
            made = self._results_of(len(members), there.astype(np.int32), members[there], gather)
        else:
            made = self._results_of_versions(versions, gather, pool, in_pool)
        return VersionedResults(made, versions.before[rows], versions.after[rows], changes[rows] != 0)

    def _near_the_end(self, probes: Int32s, slots: int, gone: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Places of held values that may be the one at the end when so many of each slot have gone."""
        counts = np.bincount(probes, minlength=slots)
        ends = np.cumsum(counts)
        ranks = np.arange(len(probes)) - (ends - counts)[probes]
        if self.call.function == "LAST_VALUE":
            ranks = counts[probes] - 1 - ranks
        return np.flatnonzero(ranks <= gone[probes])

    def _results_of_versions(
        self, versions: ListVersions, gather: Gather, pool: Sequence[Any], in_pool: npt.NDArray[np.int64]
    ) -> Any:
        members = versions.members()
        owners = np.repeat(np.arange(versions.count, dtype=np.int32), versions.lengths)
        # Numbers in JSON become texts of at most so many bytes.
        digits = 40.0 if self.call.function.startswith("JSON_") else 0.0
        sizes = digits * versions.lengths
        for column in pool:
            bytes_ = row_bytes(column)
            if bytes_ is not None:
                sizes += np.bincount(owners, bytes_[in_pool[members]], versions.count)
        starts = np.concatenate(([0], np.cumsum(versions.lengths)))
        made = []
        for a, b in ranges_within(sizes.astype(np.int64), column_bytes.MOST_BYTES):
            part = slice(int(starts[a]), int(starts[b]))
            made.append(self._results_of(b - a, owners[part] - np.int32(a), members[part], gather))
        return made[0] if len(made) == 1 else joined(made)

    def _results_of(self, n: int, probes: Int32s, rows: Int32s, gather: Gather) -> Any:
        """Results of ``n`` lists. ``probes``: rising, the list of each of ``rows``, whose columns ``gather`` gives."""
        counts = np.bincount(probes, minlength=n)
        offsets = np.zeros(n + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        match self.call.function:
            case "FIRST_VALUE" | "LAST_VALUE" | "SINGLE_VALUE":
                self._require_one(counts)
                return self._one(rows, offsets, counts, gather)
            case "COLLECT":
                return self._multiset(probes, rows, n, gather)
            case "LISTAGG":
                return self._text(rows, offsets, counts, gather)
            case "JSON_OBJECTAGG" | "JSON_ARRAYAGG":
                return self._json(probes, rows, n, gather)
            case "PERCENTILE":
                columns = whole_columns(self.types, gather(rows))
                fractions = dict(self.call.options).get("fractions")
                return percentiles(columns, probes.astype(np.int64), n, fractions, self.type)
            case "$APPROX_COUNT":
                codes, _ = values_and_validity(gather(rows)[0])
                return pa.array(cardinalities(codes, probes.astype(np.int64), n), self.type)
            case function if function.startswith("BITMAP_"):
                values = gather(rows)[0]
                return bitmap_aggregates(function, values, probes.astype(np.int64), n, self.type)
            case _:
                values = whole_columns(self.types, gather(rows))[0]
                lists = pa.ListArray.from_arrays(pa.array(offsets), values)
                filled = pa.array(counts > 0)
                return pc.if_else(filled, lists, pa.scalar(None, lists.type)).cast(self.type)

    def _require_one(self, counts: npt.NDArray[Any]) -> None:
        if self.call.function == "SINGLE_VALUE" and (counts > 1).any():
            raise ExecutionError("single-value", "SingleValueAggFunction received more than one element.")

    def _one(self, rows: Int32s, offsets: Int32s, counts: npt.NDArray[Any], gather: Gather) -> Any:
        at = offsets[1:] - 1 if self.call.function == "LAST_VALUE" else offsets[:-1]
        picked = rows[np.where(counts > 0, at, 0)] if len(rows) else np.zeros(0, np.int32)
        if not len(rows):
            return pa.nulls(len(counts), self.type)
        values = whole_columns(self.types, gather(picked))[0]
        return pc.if_else(pa.array(counts > 0), values, pa.scalar(None, values.type))

    def _text(self, rows: Int32s, offsets: Int32s, counts: npt.NDArray[Any], gather: Gather) -> Any:
        if not len(rows):
            return pa.nulls(len(counts), self.type)
        columns = gather(rows)
        separator = columns[1][0].as_py() if len(columns) > 1 else ","
        lists = pa.ListArray.from_arrays(pa.array(offsets), columns[0])
        texts = pc.binary_join(lists, separator)
        return pc.if_else(pa.array(counts > 0), texts, pa.scalar(None, texts.type))

    def _json(self, probes: Int32s, rows: Int32s, n: int, gather: Gather) -> Any:
        # Imported here: what writes JSON takes time to load, and few queries aggregate to it.
        from flowsql_compute.eval.json.render import joined_arrays, joined_objects

        columns, owners = whole_columns(self.types, gather(rows)), probes.astype(np.int64)
        clause = dict(self.call.options).get("null_clause")
        if self.call.function == "JSON_OBJECTAGG":
            _require_keys(owners, columns[0])
            return joined_objects(owners, columns[0], columns[1], n, clause == "ABSENT ON NULL")
        return joined_arrays(owners, columns[0], n, clause != "NULL ON NULL")

    def _multiset(self, probes: Int32s, rows: Int32s, n: int, gather: Gather) -> Any:
        values = whole_columns(self.types, gather(rows))
        index = scratch_stores().window_index(self.types)
        slots, fresh = index.find_or_insert(index.encode(values, probes.astype(np.int64)))
        counts = np.bincount(slots, minlength=len(fresh)).astype(np.int32)
        entries = slots[fresh]
        owners = probes[fresh]
        # Entries were made in the order of probes, so they are grouped by owner already.
        offsets = np.searchsorted(owners, np.arange(n + 1)).astype(np.int32)
        keys = index.columns_at(entries)[0]
        return pa.MapArray.from_arrays(pa.array(offsets), keys, pa.array(counts)).cast(self.type)
