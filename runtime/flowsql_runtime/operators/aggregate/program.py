"""Aggregate calls compiled to one accumulator row a slot and one program for the fold kernel.

Equal accumulators are shared (SUM and AVG of a column have one sum and one count). FILTER, NULL arguments and DISTINCT
become signs: 1 takes a value in, -1 takes it out, 0 leaves it. MIN and MAX over retractions and calls that keep their
values stand beside the row in stores of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.compiler.other_process import compile_ahead
from flowsql_compute.functions.aggregate import Fold, accumulator_columns, needs_values
from flowsql_compute.keys import is_bytes_type
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall
from flowsql_core.record import record
from flowsql_core.types.arrow import from_arrow, to_arrow
from flowsql_core.types.logical import Column, DecimalType, FloatType, LogicalType, Schema, without_attribute
from flowsql_runtime.kernels import accumulate as kernels
from flowsql_runtime.operators.aggregate.changes import Changes
from flowsql_runtime.operators.aggregate.exchange import Place, columns_of_states, places_of, put_columns
from flowsql_runtime.operators.aggregate.inputs import (
    LATE,
    Argument,
    ArgumentRows,
    DistinctGroup,
    Extreme,
    Sign,
    SignRows,
    Step,
    decimal_sum_code,
    extreme_code,
)
from flowsql_runtime.operators.aggregate.ordered_values import OrderedValues, ValueResults, takes_nulls
from flowsql_runtime.operators.aggregate.result import (
    Average,
    Count,
    Deviation,
    Finisher,
    Plain,
    ResultColumn,
    WideSum,
)
from flowsql_runtime.state.arrow_words import value_words, word_count
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.flat_rows import flat_types
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import NO_BYTES, ExtremeValues, KeyIndex, MapStore, RowList, StoredColumn

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: ``sum(2)[2,filter 3]``: what is counted or folded, the column of its argument, the rows that take part.
_STORED_NAME: Final = re.compile(r"([a-z ]+)(?:\((\d+)\))?(?:\[(.*)\])?")
_ROWS: Final = StoredColumn("rows", pa.int64(), nullable=False)


@record
class _Op:
    code: int
    word: int
    argument: Argument | None
    part: int
    sign: Sign
    count: int


@record
class Label:
    """An accumulator: its fold, argument and rows, its word, and the word of the count that says whether it is set."""

    kind: str
    argument: Argument | None
    sign: Sign
    word: int
    count: int


class AggregateProgram:
    """All calls of one operator over one input.

    Args:
        calls: arguments are column indexes of ``input``.
        retracts: rows may be taken back.
        clear_at_zero: a slot without rows starts over (group aggregates do, windows do not).
    """

    def __init__(
        self, calls: Sequence[AggregateCall], input: Schema, retracts: bool, clear_at_zero: bool = True
    ) -> None:
        self.calls = tuple(calls)
        self.input = input
        self.retracts = retracts
        self._clear = clear_at_zero
        self._ops: list[_Op] = []
        self._counts: list[_Op] = []
        self._shared: dict[Any, int] = {}
        self._columns: list[StoredColumn] = [_ROWS]
        #: What each stored accumulator is.
        self.labels: dict[str, Label] = {}
        self._width = 1
        self._groups: list[DistinctGroup] = []
        self._extremes: list[Extreme] = []
        self._finishers: list[Finisher | None] = []
        self._ordered_calls: list[int] = []
        self._group_calls()
        for index, call in enumerate(self.calls):
            self._finishers.append(self._compile(index, call))
        self._program = [*self._ops, *self._counts]
        compile_ahead(kernels.folding(op.code for op in self._program))

    # -- compilation

    def _group_calls(self) -> None:
        found: dict[tuple[tuple[int, ...], bool], list[int | None]] = {}
        for call in self.calls:
            if call.distinct and call.function not in ("MIN", "MAX"):
                key = tuple(arg.index for arg in call.args), takes_nulls(call)
                filters = found.setdefault(key, [])
                if call.filter_index not in filters:
                    filters.append(call.filter_index)
        self._groups = [DistinctGroup(*key, tuple(filters)) for key, filters in found.items()]
        self._kept_sets = self._groups

    def _sign(self, call: AggregateCall, nulls_too: bool = False) -> Sign:
        columns = tuple(arg.index for arg in call.args)
        not_null = () if nulls_too else columns
        # DISTINCT changes nothing for MIN and MAX.
        if call.distinct and call.function not in ("MIN", "MAX"):
            for group, distinct in enumerate(self._groups):
                if distinct.columns == columns and distinct.nulls == takes_nulls(call):
                    return Sign(group=group, place=distinct.filters.index(call.filter_index))
        return Sign(not_null, call.filter_index, late=LATE in call.options)

    def _reserve(self, kind: str, argument: Argument | None, sign: Sign, type_: Any, count: int = -1) -> int:
        word = self._width
        name = f"{kind}{'' if argument is None else f'({argument.column})'}{sign}"
        if any(column.name == name for column in self._columns):
            name += f":{type_}"
        self._columns.append(StoredColumn(name, type_, nullable=False))
        self.labels[name] = Label(kind, argument, sign, word, count)
        self._width += 1 if is_bytes_type(type_) else word_count(type_)
        return word

    def _count(self, sign: Sign, own: bool = False) -> int:
        # Word 0 counts all rows, but is raised before the program runs: ``own`` is raised after it.
        if sign == Sign() and not own:
            return 0
        key = ("count", sign)
        if key not in self._shared:
            word = self._reserve("count", None, sign, pa.int64())
            self._shared[key] = word
            self._counts.append(_Op(kernels.COUNT, word, None, 0, sign, -1))
        return self._shared[key]

    def _fold(self, name: str, code: int, argument: Argument, type_: Any, sign: Sign, count: int) -> int:
        key = (name, code, argument, type_, sign)
        if key not in self._shared:
            word = self._reserve(name, argument, sign, type_, count)
            self._shared[key] = word
            parts = 1
            if code in (kernels.FIRST, kernels.LAST, kernels.SET, kernels.SINGLE) and not is_bytes_type(type_):
                parts = word_count(type_)
            for part in range(parts):
                self._ops.append(_Op(code, word + part, argument, part, sign, count))
        return self._shared[key]

    def _compile(self, index: int, call: AggregateCall) -> Finisher | None:
        result = to_arrow(call.type)
        if call.function in ("COUNT", "APPROX_COUNT_DISTINCT"):
            return Count(self._count(self._sign(call)), result)
        folds = accumulator_columns(call)
        ordered = any(fold.fold is Fold.VALUES for fold in folds) or (
            needs_values(call, self.retracts) and folds[0].fold in (Fold.FIRST, Fold.LAST, Fold.SINGLE)
        )
        if ordered:
            self._ordered_calls.append(index)
            return None
        argument = Argument(call.args[0].index)
        sign = self._sign(call)
        match folds[0].fold:
            case Fold.SUM:
                return self._compile_sum(call, folds[0].type, argument, sign, result)
            case Fold.MIN | Fold.MAX as fold:
                if self.retracts:
                    return self._compile_kept(fold is Fold.MAX, argument.column, sign, result)
                count = self._count(sign)
                word = self._fold(fold.value, extreme_code(fold, result), argument, result, sign, count)
                return Plain(word, count, result, is_bytes_type(result))
            case Fold.FIRST | Fold.LAST as fold:
                code = kernels.FIRST if fold is Fold.FIRST else kernels.LAST
                count = self._count(sign)
                word = self._fold(fold.value, code, argument, result, sign, count)
                return Plain(word, count, result, is_bytes_type(result))
            case Fold.SINGLE:
                # A NULL row counts as the one row too.
                rows = self._sign(call, nulls_too=True)
                present = Argument(argument.column, presence=True)
                valid = self._fold("present", kernels.LAST, present, pa.int64(), rows, -1)
                word = self._fold("single", kernels.SINGLE, argument, result, rows, self._count(rows, own=True))
                return Plain(word, valid, result, is_bytes_type(result))
            case _:
                return self._compile_moments(call, argument, sign, result)

    def _compile_sum(
        self, call: AggregateCall, state: LogicalType, argument: Argument, sign: Sign, result: Any
    ) -> Finisher:
        count = self._count(sign)
        state_type = to_arrow(state)
        code = kernels.SUM
        if isinstance(state, DecimalType):
            code = decimal_sum_code(call.function, self.input[argument.column].type)
        elif isinstance(state, FloatType):
            code = kernels.SUM_FLOAT
        elif pa.types.is_floating(state_type):
            code = kernels.SUM_DOUBLE
        word = self._fold("sum", code, argument, state_type, sign, count)
        if call.function == "AVG":
            digits = result.scale - state.scale if isinstance(state, DecimalType) else 0
            return Average(word, count, result, digits)
        if isinstance(state, DecimalType):
            return WideSum(word, count, result)
        return Plain(word, count, result, zero_if_empty=call.function == "$SUM0")

    def _compile_kept(self, largest: bool, column: int, sign: Sign, result: Any) -> Finisher:
        extreme = Extreme(column, largest, sign)
        if extreme not in self._extremes:
            self._extremes.append(extreme)
        place = self._extremes.index(extreme)
        name = "max" if largest else "min"
        word = self._fold(name, kernels.SET, Argument(place, top=True), result, sign, -1)
        present = Argument(place, top=True, presence=True)
        valid = self._fold(f"has {name}", kernels.SET, present, pa.int64(), sign, -1)
        return Plain(word, valid, result, is_bytes_type(result))

    def _compile_moments(self, call: AggregateCall, argument: Argument, sign: Sign, result: Any) -> Finisher:
        key = ("moments", argument, sign)
        if key not in self._shared:
            word = self._reserve("n", argument, sign, pa.int64())
            self._reserve("mean", argument, sign, pa.float64(), word)
            self._reserve("squares", argument, sign, pa.float64(), word)
            self._shared[key] = word
            self._ops.append(_Op(kernels.MOMENTS, word, argument, -1, sign, -1))
        word = self._shared[key]
        samples, root = call.function.endswith("SAMP"), call.function.startswith("STDDEV")
        return Deviation(word, result, samples, root, call.type.nullable)

    # -- state

    @property
    def mergeable(self) -> bool:
        """Whether accumulator rows of two slots combine: no DISTINCT, nothing kept beside the row."""
        return not (self._kept_sets or self._extremes or self._ordered_calls)

    @property
    def shares_slices(self) -> bool:
        """Whether results come of accumulators of several slots, so that windows may share slices."""
        return self.mergeable

    @property
    def columns_read(self) -> tuple[int, ...]:
        """The input's columns that arguments and filters are."""
        filters = {call.filter_index for call in self.calls if call.filter_index is not None}
        return tuple(sorted(filters | {arg.index for call in self.calls for arg in call.args}))

    @property
    def commutes(self) -> bool:
        """Whether results are the same to the last bit in whatever order rows come and slots are merged."""
        return self.mergeable and all(op.code in kernels.COMMUTATIVE for op in self._program)

    def table_names(self, columns: Sequence[str], name: str = "aggregate") -> dict[str, TableNames]:
        """What the stores of :meth:`open` mean.

        Args:
            columns: canonical texts of the input's columns.
        """
        from flowsql_runtime.operators.aggregate.state_names import ProgramNames

        names = ProgramNames(columns, [(group.columns, group.nulls, group.filters) for group in self._groups])
        tables = {f"{name}.accumulators": names.accumulators(self.labels, [one.column for one in self._extremes])}
        for number, group in enumerate(self._kept_sets):
            tables[f"{name}.distinct{number}"] = names.distinct(
                number, bits=not self.retracts, width=len(group.filters)
            )
        for number, extreme in enumerate(self._extremes):
            tables[f"{name}.sorted{number}"] = names.values_of_extreme(extreme.column, extreme.largest, extreme.sign)
        for number in self._ordered_calls:
            call = self.calls[number]
            tables[f"{name}.values{number}"] = names.values_of_call(
                call, self._sign(call, takes_nulls(call)), self.input
            )
        return tables

    def open(self, states: StoreFactory, index: KeyIndex, name: str = "aggregate") -> None:
        """Make the stores beside the slots of ``index``."""
        self.index = index
        self.store = states.accumulators(f"{name}.accumulators", index, self._columns)
        self._distinct = [
            states.map_store(
                f"{name}.distinct{number}",
                index,
                [to_arrow(self.input[column].type) for column in group.columns],
                [StoredColumn(str(i), pa.int64(), False) for i in range(len(group.filters) if self.retracts else 1)],
            )
            for number, group in enumerate(self._kept_sets)
        ]
        self._sorted = [
            states.extreme_values(
                f"{name}.sorted{number}", index, to_arrow(self.input[extreme.column].type), extreme.largest
            )
            for number, extreme in enumerate(self._extremes)
        ]
        self.ordered: list[OrderedValues] = []
        for number in self._ordered_calls:
            call = self.calls[number]
            columns = [arg.index for arg in call.args]
            types = [to_arrow(self.input[column].type) for column in columns]
            flat = [part for type_ in types for part in flat_types(type_)]
            values = states.row_list(f"{name}.values{number}", index, flat, removable=self.retracts)
            self.ordered.append(OrderedValues(call, values, columns, types))

    # -- what the stores hold, for whoever reads snapshots

    def accumulators(self) -> list[tuple[str, str, LogicalType]]:
        """Name in saved tables, readable name and type of each column of the accumulators."""
        return [
            (f"v:{column.name}", self._readable(column.name), from_arrow(column.type, nullable=False))
            for column in self._columns
        ]

    def distinct_values(self) -> list[tuple[Schema, int]]:
        """Columns of each set of distinct values, and how many counts stand beside a value."""
        return [(self._plain(group.columns), len(group.filters) if self.retracts else 1) for group in self._kept_sets]

    def sorted_values(self) -> Schema:
        """The column of each multiset whose extreme is kept."""
        return self._plain([extreme.column for extreme in self._extremes])

    def ordered_values(self) -> list[tuple[int, Schema]]:
        """Place and columns of each call that keeps its values in order."""
        return [(call, self._plain([arg.index for arg in self.calls[call].args])) for call in self._ordered_calls]

    def _plain(self, columns: Sequence[int]) -> Schema:
        return tuple(Column(self.input[i].name, without_attribute(self.input[i].type)) for i in columns)

    def _readable(self, stored: str) -> str:
        """``sum_amount`` for ``sum(2)[2]``, as :class:`Sign` and ``_fold`` wrote it."""
        head, argument, sign = _STORED_NAME.fullmatch(stored).groups()  # type: ignore[union-attr]
        if head == "rows":
            return "row_count"
        words = [head.replace(" ", "_")]
        parts = [] if sign is None else sign.split(",")
        columns = [int(part) for part in parts if part.isdigit()]
        if argument is not None:
            kept = self._extremes and head.endswith(("min", "max"))
            columns = [self._extremes[int(argument)].column if kept else int(argument)]
        for part in parts:
            word, _, number = part.partition(" ")
            if word == "distinct":
                group = self._groups[int(number.partition(".")[0])]
                words.append(word)
                columns = list(group.columns)
        words += [self.input[column].name for column in columns]
        for part in parts:
            word, _, number = part.partition(" ")
            if word == "filter":
                words += [word, self.input[int(number)].name]
            elif word == "distinct" and not number.endswith(".0"):
                words.append(number.partition(".")[2])
            elif word == "late":
                words.append("after_restore")
        return "_".join(words)

    # -- running

    def known_signs(self, slots: Int32s, signs: Int8s) -> Int8s:
        """The signs without retractions of slots that have no rows: Flink ignores those."""
        return self.store.known_signs(slots, signs)

    def fold(
        self, slots: Int32s, columns: Sequence[Any], signs: Int8s, every: bool, step: Step | None = None
    ) -> Changes:
        """Take all rows in and say what changed: each row (``every``) or each slot once.

        Args:
            slots: (n,) of the index the program was opened on.
            columns: input columns (Arrow).
            signs: int8 (n,): 1, -1 or 0.
            step: another op of the program.
        """
        if every and self.ordered:
            return self._fold_every(slots, columns, signs, step)
        self.store.prepare()
        if self.ordered:
            known, first, places = np.unique(slots, return_index=True, return_inverse=True)
            order = np.argsort(first)
            touched = known[order]
            before = [values.results(touched) for values in self.ordered]
        changes = self._run(slots, columns, signs, kernels.EVERY if every else kernels.ONCE, step)
        kept: list[ResultColumn] = []
        if self.ordered:
            for values, old in zip(self.ordered, before, strict=True):
                own = self._signs.row(self._sign(values.call, takes_nulls(values.call)))
                values.update(own, slots, columns)
                came = np.zeros(len(known), np.bool_)
                came[places.ravel()[own != 0]] = True
                kept.append(ValueResults(old, values.results(touched), came[order]))
        return self._with_results(changes, kept)

    def take_in(self, slots: Int32s, columns: Sequence[Any], signs: Int8s) -> None:
        """Take all rows in without saying what changed."""
        self.store.prepare()
        self._run(slots, columns, signs, kernels.NOTHING)
        for values in self.ordered:
            values.update(self._signs.row(self._sign(values.call, takes_nulls(values.call))), slots, columns)

    def reset(self) -> None:
        """Forget every slot and key; the memory stays. Only where ``mergeable``."""
        self.store.clear_all()
        self.index.clear()

    def _with_results(self, changes: Changes, kept: list[ResultColumn]) -> Changes:
        results: list[ResultColumn] = []
        place = 0
        for finisher in self._finishers:
            if finisher is None:
                results.append(kept[place])
                place += 1
            else:
                results.append(finisher.results(changes.states, self.store))
        return Changes(changes.slots, changes.first_rows, changes.states, results)

    def _run(
        self, slots: Int32s, columns: Sequence[Any], signs: Int8s, record: int, step: Step | None = None
    ) -> Changes:
        n = len(slots)
        self._signs = SignRows(columns, signs)
        for number, group in enumerate(self._groups):
            self._signs.add_group(number, self._distinct_signs(number, group, slots, columns))
        tops = [
            self._sorted[number].update(slots, columns[extreme.column], self._signs.row(extreme.sign))
            for number, extreme in enumerate(self._extremes)
        ]
        arguments = ArgumentRows(self.store, self._sorted, columns, tops, n)
        ops = np.zeros((len(self._program), 5), np.int64)
        for k, op in enumerate(self._program):
            argument = 0 if op.argument is None else arguments.place(op.argument, op.part)
            ops[k] = (op.code, op.word, argument, self._signs.place(op.sign), op.count)
        if step is not None:
            words = 0 if step.words is None else arguments.add(step.words)
            extra = np.array([(step.code, 0, words, self._signs.add(step.signs), -1)], np.int64)
            ops = np.concatenate((extra, ops) if step.first else (ops, extra))
        clear = self._clear and self.retracts
        folded = self.store.fold(slots, ops, arguments.matrix(), self._signs.matrix(), record, clear)
        if folded.more_than_one:
            raise ExecutionError("single-value", "SingleValueAggFunction received more than one element.")
        return Changes.of(folded)

    def _distinct_signs(self, number: int, group: DistinctGroup, slots: Int32s, columns: Sequence[Any]) -> Any:
        store = self._distinct[number]
        filtered = np.stack([self._signs.row(Sign(group.not_null, index)) for index in group.filters])
        skip: Bools = np.asarray(~filtered.any(axis=0))
        skipped: npt.NDArray[np.uint8] = skip.view(np.uint8) if skip.any() else NO_BYTES
        entries, _ = store.find_or_insert(slots, [columns[column] for column in group.columns], skipped)
        return store.count_distinct(entries, filtered, bits=not self.retracts)

    def _fold_every(self, slots: Int32s, columns: Sequence[Any], signs: Int8s, step: Step | None) -> Changes:
        """A change a row, of calls that keep their values too."""
        self.store.prepare()
        changes = self._run(slots, columns, signs, kernels.EVERY, step)
        rows = changes.first_rows
        kept: list[ResultColumn] = []
        for values in self.ordered:
            own = self._signs.row(self._sign(values.call, takes_nulls(values.call)))
            kept.append(values.follow(own, slots, columns, rows))
        return self._with_results(changes, kept)

    # -- slots

    def forget(self, slots: Int32s) -> None:
        """Clear all that is kept of slots; whoever removes keys calls it first."""
        self.store.clear(slots)
        beside: list[MapStore | ExtremeValues | RowList] = [*self._distinct, *self._sorted]
        for store in (*beside, *(values.values for values in self.ordered)):
            store.drop_slots(slots)

    def results_at(self, slots: Int32s) -> list[Any]:
        """Results of slots as they stand, Arrow arrays."""
        states = self.store.words_at(slots)
        rows = np.arange(len(slots))
        arrays, place = [], 0
        for finisher in self._finishers:
            if finisher is None:
                arrays.append(self.ordered[place].results(slots))
                place += 1
            else:
                arrays.append(finisher.results(states, self.store).to_arrow(rows))
        return arrays

    def accumulators_at(self, slots: Int32s) -> list[Any]:
        """Accumulator columns of each call, as ``local_columns`` declares them; ``rows`` last if the input retracts."""
        states = self.store.word_columns_at(slots)
        arrays = list(columns_of_states(states, self._places(), self.store))
        if self.retracts:
            arrays.append(pa.array(states[0]))
        return arrays

    def _places(self) -> list[Place]:
        pairs = zip(self.calls, self._finishers, strict=True)
        return [place for call, finisher in pairs for place in places_of(call, finisher)]

    def rows_of_accumulators(self, arrays: Sequence[Any], n: int) -> Words:
        """The inverse of :meth:`accumulators_at`: accumulator rows, their bytes put into this program's arena.

        A row of an insert-only input counts as one.
        """
        self.store.prepare()
        rows = np.zeros((n, self._width), np.int64)
        rows[:, 0] = 1
        places = self._places()
        put_columns(rows, arrays[: len(places)], places, self.store)
        if self.retracts:
            rows[:, 0] = value_words(arrays[len(places)]).words[0]
        return rows

    def merged_rows(self, positions: Int32s, count: int, members: Int32s) -> Words:
        """Accumulator rows of ``members`` (slots) merged by position, (count, words); bytes stay in the arena."""
        return self.store.merged(positions, count, members, self._merge_ops)

    def merge_slots(self, takers: Int32s, taken: Int32s) -> None:
        """Slots take others in, pairwise and distinct; nothing is left by ``taken``. Only where ``mergeable``."""
        members = np.stack((takers, taken), axis=1).ravel()
        pairs = np.repeat(np.arange(len(takers), dtype=np.int32), 2)
        merged = self.merged_rows(pairs, len(takers), members)
        self.forget(members)
        self.store.put_words(takers, merged)

    @property
    def _merge_ops(self) -> npt.NDArray[np.int64]:
        ops = [(op.code, op.word, 0, 0, op.count) for op in self._program]
        return np.array(ops, np.int64).reshape(-1, 5)

    def results_of(self, states: Words) -> list[Any]:
        """Results of merged accumulator rows, Arrow arrays; only where ``mergeable``."""
        rows = np.arange(len(states))
        return [finisher.results(states, self.store).to_arrow(rows) for finisher in self._finishers if finisher]

    def merge_rows(self, slots: Int32s, rows: Words) -> Changes:
        """Fold rows of :meth:`rows_of_accumulators` into slots; only where ``mergeable``. One change a slot."""
        n = len(slots)
        matrix = np.ascontiguousarray(rows.T)
        sign_rows: dict[int, int] = {-1: 0}
        signs = [np.ones(n, np.int8)]
        ops: list[tuple[int, int, int, int, int]] = []
        for op in self._program:
            match op.code:
                case kernels.COUNT:
                    ops.append((kernels.SUM, op.word, op.word, 0, -1))
                case kernels.SUM | kernels.SUM_DOUBLE | kernels.SUM_FLOAT | kernels.SUM_WIDE | kernels.SUM_CHECKED:
                    ops.append((op.code, op.word, op.word, 0, -1))
                case kernels.MOMENTS:
                    ops.append((kernels.MERGE_MOMENTS, op.word, op.word, 0, -1))
                case _:
                    if op.count not in sign_rows:
                        sign_rows[op.count] = len(signs)
                        signs.append((rows[:, op.count] != 0).astype(np.int8))
                    ops.append((op.code, op.word, op.word, sign_rows[op.count], op.count))
        # Row counts last: word 0 is what MIN and MAX of a column without NULLs look at.
        ops.append((kernels.SUM, 0, 0, 0, -1))
        signs.insert(0, np.zeros(n, np.int8))
        table = np.array(ops, np.int64)
        table[:, 3] += 1
        folded = self.store.fold(slots, table, matrix, np.stack(signs), kernels.ONCE)
        if self.retracts and self._clear:
            self.store.clear(folded.slots[folded.states[1::2, 0] == 0])
        return self._with_results(Changes.of(folded), [])
