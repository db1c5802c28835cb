"""Calls of Python aggregate functions: their objects, accumulators and DISTINCT values, and the walk over rows.

The rows of a bundle are put into the order of their groups, arguments become Python values a column at a time, and each
function then walks over each group's rows. An accumulator is any Python object; the state of a group holds its pickle,
read and written once a bundle.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.column_bytes import taken
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall
from flowsql_core.python_call import aggregate_name, spoken_name
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, IntegerType, Schema, without_attribute
from flowsql_core.udf import ImperativeAggregateFunction
from flowsql_runtime.operators.aggregate.inputs import Sign, SignRows
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.python_aggregate.functions import LoadedFunctions
from flowsql_runtime.python.evaluate import WRONG_RESULT, wrong_value_text
from flowsql_runtime.python.failure import call_text
from flowsql_runtime.python.values_in import reader
from flowsql_runtime.python.values_out import Writer, WrongValueError, writer
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.object_store import pickled
from flowsql_runtime.state.stores import NO_BYTES, KeyIndex, MapStore, StoredColumn

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: Names of the stores.
_ACCUMULATORS: Final = "python.accumulators"
_DISTINCT: Final = "python.distinct"


class PythonCalls(LoadedFunctions):
    """The Python calls of one operator over one input.

    Args:
        calls: those of Python alone.
        retracts: rows may be taken back.
    """

    def __init__(self, calls: Sequence[AggregateCall], input: Schema, retracts: bool) -> None:
        super().__init__(calls)
        self.input = input
        self.retracts = retracts
        #: Arguments of DISTINCT calls, each list with the FILTER that is applied before.
        self._groups: list[tuple[tuple[int, ...], int | None]] = []
        for call in self.calls:
            if call.distinct and _group(call) not in self._groups:
                self._groups.append(_group(call))

    # -- functions

    def load(self, ctx: OperatorContext, zone: str) -> None:
        """Make the functions of this subtask, and open them."""
        columns = sorted({arg.index for call in self.calls for arg in call.args})
        self._readers = {column: reader(self.input[column].type, zone) for column in columns}
        self._writers = [writer(call.type.as_nullable(), zone) for call in self.calls]
        super().load(ctx, zone)

    # -- state

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Make the stores beside the slots of ``index``."""
        columns = [StoredColumn(f"call{place}", pa.binary()) for place in range(len(self.calls))]
        self._stored = states.column_store(_ACCUMULATORS, index, columns)
        self._distinct: list[MapStore] = [
            states.map_store(
                f"{_DISTINCT}{number}",
                index,
                [to_arrow(self.input[column].type) for column in arguments],
                [StoredColumn("count", pa.int64(), False)],
            )
            for number, (arguments, _) in enumerate(self._groups)
        ]

    def table_names(self, columns: Sequence[str]) -> dict[str, TableNames]:
        """What the stores mean. ``columns``: canonical texts of the input's columns."""
        texts = {}
        for place, call in enumerate(self.calls):
            shown = ", ".join(columns[arg.index] for arg in call.args)
            where = "" if call.filter_index is None else f" FILTER {columns[call.filter_index]}"
            distinct = "DISTINCT " if call.distinct else ""
            texts[f"v:call{place}"] = f"accumulator of {aggregate_name(call)}({distinct}{shown}){where}"
        tables = {_ACCUMULATORS: TableNames("accumulators of Python functions", texts, grows=True)}
        for number, (arguments, condition) in enumerate(self._groups):
            where = "" if condition is None else f" FILTER {columns[condition]}"
            names = {f"m{place}": columns[column] for place, column in enumerate(arguments)}
            meaning = f"values of Python functions: DISTINCT({', '.join(names.values())}){where}"
            tables[f"{_DISTINCT}{number}"] = TableNames(meaning, names | {"v:count": "rows"})
        return tables

    def accumulator_columns(self) -> list[tuple[str, str]]:
        """Name in saved tables and readable name of the accumulator of each call."""
        found = []
        for place, call in enumerate(self.calls):
            words = [spoken_name(aggregate_name(call)), *(["distinct"] if call.distinct else [])]
            words += [self.input[arg.index].name for arg in call.args]
            if call.filter_index is not None:
                words += ["filter", self.input[call.filter_index].name]
            found.append((f"v:call{place}", "_".join(words)))
        return found

    def distinct_values(self) -> list[Schema]:
        """Columns of each set of DISTINCT values."""
        return [
            tuple(Column(self.input[i].name, without_attribute(self.input[i].type)) for i in arguments)
            for arguments, _ in self._groups
        ]

    def forget(self, slots: Int32s) -> None:
        """Clear all that is kept of slots."""
        self._stored.clear(slots)
        for store in self._distinct:
            store.drop_slots(slots)

    def accumulators(self, slots: Int32s, existed: npt.NDArray[np.bool_]) -> list[list[Any]]:
        """Accumulators by call and slot; new ones for groups that did not exist, and for calls that had none."""
        made = []
        for place, column in enumerate(self._stored.gather(slots)):
            create = self._objects[place].create_accumulator
            made.append(
                [
                    pickle.loads(blob) if known and blob else self.guarded(place, "create_accumulator", create)
                    for known, blob in zip(existed.tolist(), column.to_pylist(), strict=True)
                ]
            )
        return made

    def merged(self, slots: Int32s, groups: Int32s, count: int) -> list[list[Any]]:
        """New accumulators that take in those of slots, by call and group.

        Args:
            groups: int32 (n,) below ``count``: which one takes the accumulator of each slot in, in this order.
        """
        made = []
        for place, found in enumerate(self.accumulators(slots, np.ones(len(slots), np.bool_))):
            function = self._objects[place]
            takers = [self.guarded(place, "create_accumulator", function.create_accumulator) for _ in range(count)]
            self._merge(place, [takers[group] for group in groups.tolist()], found)
            made.append(takers)
        return made

    def join(self, takers: Int32s, taken: Int32s) -> list[list[Any]]:
        """The accumulators of slots after those of others were merged into them, pairwise."""
        every = np.ones(len(takers), np.bool_)
        found = self.accumulators(takers, every)
        for place, others in enumerate(self.accumulators(taken, every)):
            self._merge(place, found[place], others)
        return found

    def _merge(self, place: int, takers: Sequence[Any], taken: Sequence[Any]) -> None:
        merge = self._objects[place].merge
        for taker, one in zip(takers, taken, strict=True):
            self.guarded(place, "merge", merge, taker, [one])

    def keep(self, slots: Int32s, accumulators: Sequence[Sequence[Any]], exists: npt.NDArray[np.bool_]) -> None:
        """Write the accumulators of those of distinct slots that exist."""
        rows = np.flatnonzero(exists)
        kept = rows.tolist()
        blobs = ([self._bytes(place, found[row]) for row in kept] for place, found in enumerate(accumulators))
        self._stored.scatter(slots[rows], [pa.array(column, pa.binary()) for column in blobs])

    def _bytes(self, place: int, accumulator: Any) -> bytes:
        try:
            return pickle.dumps(accumulator, protocol=5)
        except Exception:  # pickle raises many kinds; functions and local classes need cloudpickle
            return pickled(f"accumulator of {aggregate_name(self.calls[place])}", accumulator)

    # -- rows

    def take_in(
        self,
        slots: Int32s,
        order: Int64s,
        starts: Int64s,
        columns: Sequence[Any],
        signs: Int8s,
        accumulators: Sequence[Sequence[Any]],
    ) -> None:
        """Accumulate and retract rows, group by group.

        Args:
            slots: (n,), of the rows.
            order: rows in the order of their groups, those of a group in theirs; rows that take no part are left out.
            starts: (m + 1,), where the rows of each group begin in ``order``.
            columns: input columns.
            signs: (n,): 1, -1 or 0.
            accumulators: by call and group.
        """
        rows = SignRows(columns, signs)
        for number, (arguments, condition) in enumerate(self._groups):
            base = rows.row(Sign(filter=condition)).reshape(1, -1).astype(np.int8)
            store = self._distinct[number]
            skip: npt.NDArray[np.bool_] = base[0] == 0
            skipped: npt.NDArray[np.uint8] = skip.view(np.uint8) if skip.any() else NO_BYTES
            entries, _ = store.find_or_insert(slots, [columns[column] for column in arguments], skipped)
            rows.add_group(number, store.count_distinct(entries, base, bits=not self.retracts))
        whole = len(order) == len(slots) and bool((order[1:] > order[:-1]).all())
        values = {
            column: read(columns[column] if whole else taken(columns[column], order))
            for column, read in self._readers.items()
        }
        bounds = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
        for place, call in enumerate(self.calls):
            sign = Sign(filter=call.filter_index)
            if call.distinct:
                sign = Sign(group=self._groups.index(_group(call)))
            own = rows.row(sign)[order]
            self._walk(place, [values[arg.index] for arg in call.args], own, bounds, accumulators[place])

    def _walk(
        self,
        place: int,
        arguments: Sequence[list[Any]],
        signs: Int8s,
        bounds: Sequence[tuple[int, int]],
        accumulators: Sequence[Any],
    ) -> None:
        function = self._objects[place]
        accumulate, retract = function.accumulate, function.retract
        every = bool((signs == 1).all())
        marks = signs.tolist()
        args: tuple[Any, ...] = ()
        method = "accumulate"
        try:
            for accumulator, (start, stop) in zip(accumulators, bounds, strict=True):
                rows: Iterable[tuple[Any, ...]] = (
                    zip(*(column[start:stop] for column in arguments), strict=True)
                    if arguments
                    else [()] * (stop - start)
                )
                if every:
                    for args in rows:
                        accumulate(accumulator, *args)
                    continue
                for args, sign in zip(rows, marks[start:stop], strict=True):
                    if sign > 0:
                        accumulate(accumulator, *args)
                    elif sign < 0:
                        method = "retract"
                        retract(accumulator, *args)
                        method = "accumulate"
        except Exception as error:
            shown = call_text(spoken_name(aggregate_name(self.calls[place])), _after_first(function, method), args)
            raise self._failed(error, f"{method}() of {shown}", place) from error

    def results(self, place: int, accumulators: Sequence[Any], wanted: npt.NDArray[np.bool_]) -> Any:
        """Results of one call, Arrow (m,); NULL where not ``wanted``."""
        get_value = self._objects[place].get_value  # type: ignore[attr-defined]
        made: list[Any] = []
        try:
            for accumulator, is_wanted in zip(accumulators, wanted.tolist(), strict=True):
                made.append(get_value(accumulator) if is_wanted else None)
        except Exception as error:
            raise self._failed(error, f"get_value() of {self._named(place)}", place) from error
        type_ = self.calls[place].type
        if not type_.nullable:
            for value, is_wanted in zip(made, wanted.tolist(), strict=True):
                if value is None and is_wanted:
                    raise self._wrong(place, WrongValueError(0, None, type_))
        return self.written(place, self._writers[place], made)

    def rows(
        self, accumulators: Sequence[Any], wanted: npt.NDArray[np.bool_]
    ) -> tuple[list[tuple[Any, ...]], npt.NDArray[np.int64]]:
        """Rows that the table aggregate function, the only call, makes: all of them, and the group of each.

        Args:
            wanted: (m,): of these groups.
        """
        emit_value = self._objects[0].emit_value  # type: ignore[attr-defined]
        made: list[tuple[Any, ...]] = []
        groups: list[int] = []
        try:
            for group in np.flatnonzero(wanted).tolist():
                for row in emit_value(accumulators[group]) or ():
                    made.append(tuple(row) if isinstance(row, tuple) or hasattr(row, "get_row_kind") else (row,))
                    groups.append(group)
        except Exception as error:
            raise self._failed(error, f"emit_value() of {self._named(0)}", 0) from error
        return made, np.array(groups, np.int64)

    def written(self, place: int, write: Writer, values: list[Any]) -> Any:
        """Values that a function gave, as a column.

        PyFlink's documentation divides in functions of an integer type: fractions are cut off, as there.
        """
        try:
            return write(values)
        except WrongValueError as error:
            cut = [int(value) if isinstance(value, float) and math.isfinite(value) else value for value in values]
            if not isinstance(error.type, IntegerType) or cut == values:
                raise self._wrong(place, error) from None
        try:
            return write(cut)
        except WrongValueError as error:
            raise self._wrong(place, error) from None

    def _wrong(self, place: int, error: WrongValueError) -> ExecutionError:
        text = wrong_value_text(error, self.calls[place].type)
        method = "get_value" if hasattr(self._objects[place], "get_value") else "emit_value"
        return ExecutionError(WRONG_RESULT, f"{text}\nin {method}() of {self._named(place)}", self.calls[place].span)


def _group(call: AggregateCall) -> tuple[tuple[int, ...], int | None]:
    return tuple(arg.index for arg in call.args), call.filter_index


def _after_first(function: ImperativeAggregateFunction, method: str) -> Callable[..., Any]:
    """The method as messages show it: with the arguments of a row, without the accumulator."""
    import functools

    return functools.partial(getattr(function, method), None)
