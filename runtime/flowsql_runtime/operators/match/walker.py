"""Many keys walk through a pattern: the kernel's arrays, and conditions that only Python can answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.stack import stack_programs
from flowsql_core.errors import ExecutionError, InternalError
from flowsql_core.graph.match_specs import MatchSkip, MatchSpec
from flowsql_core.types.logical import Schema
from flowsql_runtime.kernels import match as kernels
from flowsql_runtime.operators.match.automaton import Automaton
from flowsql_runtime.operators.match.expressions import MatchExpressions, Places
from flowsql_runtime.state.arrow_words import value_words

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_SKIPS: Final = {
    MatchSkip.TO_NEXT_ROW: kernels.TO_NEXT_ROW,
    MatchSkip.PAST_LAST_ROW: kernels.PAST_LAST_ROW,
    MatchSkip.TO_FIRST: kernels.TO_FIRST,
    MatchSkip.TO_LAST: kernels.TO_LAST,
}
#: Room for runs and for matches at first.
_ROOM: Final = 1024


@dataclass(slots=True)
class KeyRows:
    """Rows of some keys, those of a key one behind another, in the order in which they are taken.

    Attributes:
        bounds: int64 (k, 2), where the rows of each key begin and end.
        taken: int64 (k,), how many of each key are there since earlier batches.
        rows: int64 (n,), where each row is in the table.
        table: Arrow columns of the rows.
        steps: int64 (3, n), time in milliseconds, the watermark that lets the row go, its place among all that come.
    """

    bounds: Int64s
    taken: Int64s
    rows: Int64s
    table: Sequence[Any]
    steps: Int64s


@dataclass(slots=True)
class Runs:
    """Runs of keys: first row among those of the key, state, and rows of each variable.

    Attributes:
        owners: int32 (r,), the key, rising; a key's partial runs stand before its complete ones, as in their heaps.
        runs: int32 (r, 2 + v).
    """

    owners: Int32s
    runs: Int32s

    def starts_of(self, rows: KeyRows) -> Int64s:
        """The first row of each run among all rows."""
        starts: Int64s = rows.bounds[self.owners, 0] + self.runs[:, kernels.START]
        return starts


@dataclass(slots=True)
class Walked:
    """What came of it: the runs that are left, and matches (int64 (f, 5 + 2 + v), see the kernel) with their order."""

    left: Runs
    matches: Int64s


class _Room:
    """Arrays that the kernel writes to; they grow where it asks for more."""

    def __init__(self, width: int) -> None:
        self.heaps = [np.empty((_ROOM, width), np.int32) for _ in range(4)]
        self.spare = np.empty((2, width), np.int32)
        self.written = np.empty((_ROOM, width), np.int32)
        self.owners = np.empty(_ROOM, np.int32)
        self.found = np.empty((_ROOM, kernels.MATCH_RUN + width), np.int64)

    def grow(self) -> None:
        """Twice as much of everything; what is there stays."""
        self.heaps = [_doubled(heap) for heap in self.heaps]
        self.written, self.owners, self.found = _doubled(self.written), _doubled(self.owners), _doubled(self.found)


def _doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    made = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


class Walker:
    """Feeds rows of keys to a pattern.

    Conditions over the row alone are columns, those over earlier rows programs of the kernel's stack machine. What that
    lacks is evaluated for all keys at once between two rows of theirs, for each partial run that asks; ``count`` is
    told how often.
    """

    def __init__(self, spec: MatchSpec, stored: Schema, context: EvalContext, count: Callable[[int], None]) -> None:
        self._names = [variable.name for variable in spec.variables]
        automaton = Automaton(spec.variables)
        self.start = automaton.start
        self._automaton = automaton.arrays()
        self._programs = stack_programs(spec.variables)
        self._count = count
        width = len(spec.variables)
        self._by_row: list[int] = []
        self._elsewhere: list[int] = []
        self._conditions: Mapping[int, MatchExpressions] = {
            place: MatchExpressions([variable.path_condition], stored, context)
            for place, variable in enumerate(spec.variables)
            if variable.path_condition is not None
        }
        self._kinds = np.zeros((width, 3), np.int64)
        for place, (variable, program) in enumerate(zip(spec.variables, self._programs.places, strict=True)):
            if variable.row_condition is not None:
                self._kinds[place, :2] = kernels.BY_ROW, len(self._by_row)
                self._by_row.append(variable.row_condition)
            elif program is not None:
                self._kinds[place] = kernels.BY_PROGRAM, *program
            elif variable.path_condition is not None:
                self._kinds[place, :2] = kernels.ELSEWHERE, len(self._elsewhere)
                self._elsewhere.append(place)
        asked = [[place in variables for place in self._elsewhere] for variables in automaton.asks]
        self._asks = np.array(asked, np.bool_).reshape(len(asked), len(self._elsewhere))
        self._ops = np.array(self._programs.ops, np.int64).reshape(-1, 5)
        skip_variable = -1 if spec.skip_variable is None else spec.skip_variable
        within = -1 if spec.within_ms is None else spec.within_ms
        asking = bool(self._elsewhere)
        self._settings = np.array([_SKIPS[spec.skip], skip_variable, within, spec.row_time, asking], np.int64)
        self._room = _Room(kernels.COUNTS + width)

    def walk(self, rows: KeyRows, runs: Runs, levels: Int64s) -> Walked:
        """Take the rows of all keys.

        Args:
            runs: of every key, at least one.
            levels: watermarks, rising; none in processing time.

        Raises:
            ExecutionError: a condition fails, or a match says to go on where no row is.
        """
        keys = len(rows.taken)
        marks = np.zeros((keys, 6), np.int64)
        marks[:, kernels.NEXT] = rows.taken
        columns = _columns(rows, self._by_row, self._programs.columns, self._programs.sums)
        memo = np.empty(len(self._names), np.int8)
        stack = np.zeros(self._programs.depth, np.int64)
        machine = (*columns, stack, stack.view(np.float64), np.zeros(len(stack), np.uint8))
        active = np.arange(keys)
        answers = np.zeros((len(self._elsewhere), len(runs.owners)), np.uint8)
        done: list[Runs] = []
        matches: list[Int64s] = []
        while True:
            # Those of its keys that go on, with the numbers of their own.
            bounds = rows.bounds[active]
            ends = np.searchsorted(runs.owners, np.arange(len(active) + 1)).astype(np.int64)
            own = marks[active]
            truths, words, doubles, known, sums, counts, *stacks = machine
            progress = np.zeros(8, np.int64)
            room = self._room
            while True:
                told = kernels.walk(
                    bounds, rows.steps, levels, *self._automaton, self._kinds, truths, self._ops, words, doubles,
                    known, sums, counts, *stacks, answers, memo, self._settings, own, ends, runs.runs, *room.heaps,
                    room.spare, room.written, room.owners, room.found, progress,
                )  # fmt: skip
                if told != kernels.MORE_ROOM:
                    break
                room.grow()
            if told != kernels.DONE:
                self._fail(told, progress, rows, active, own)
            found = room.found[: progress[kernels.FOUND]].copy()
            found[:, kernels.MATCH_KEY] = active[found[:, kernels.MATCH_KEY]]
            matches.append(found)
            owners = room.owners[: progress[kernels.WRITTEN]]
            left = Runs(owners.copy(), room.written[: progress[kernels.WRITTEN]].copy())
            marks[active] = own
            waits = own[:, kernels.ASKS] != 0
            if not waits.any():
                done.append(Runs(active[left.owners].astype(np.int32), left.runs))
                return Walked(_merged(done), np.concatenate(matches))
            staying = waits[left.owners]
            done.append(Runs(active[left.owners[~staying]].astype(np.int32), left.runs[~staying]))
            numbers = np.cumsum(waits) - 1
            runs = Runs(numbers[left.owners[staying]].astype(np.int32), np.ascontiguousarray(left.runs[staying]))
            active = active[waits]
            answers = self._answers(runs, rows, active, own[waits])

    def _answers(self, runs: Runs, rows: KeyRows, active: Int64s, marks: Int64s) -> Bytes:
        """Conditions that the machine lacks, for the next row of each key: (conditions, runs)."""
        answers = np.zeros((len(self._elsewhere), len(runs.owners)), np.uint8)
        here = marks[runs.owners, kernels.NEXT]
        states = runs.runs[:, kernels.STATE]
        for number, variable in enumerate(self._elsewhere):
            # A complete run asks nothing.
            asked = np.flatnonzero(self._asks[states, number] & (states != kernels.FINAL))
            if not len(asked):
                continue
            self._count(len(asked))
            starts = np.minimum(runs.runs[asked, kernels.START], here[asked])
            base = rows.bounds[active[runs.owners[asked]], 0]
            places = Places(rows.rows, base + starts, runs.runs[asked, kernels.COUNTS :], variable)
            answers[number, asked] = truths_of(self._conditions[variable].evaluate(places, rows.table)[0])
        return answers

    def _fail(self, told: int, progress: Int64s, rows: KeyRows, active: Int64s, marks: Int64s) -> None:
        run = self._room.heaps[0][progress[kernels.BLAMED_RUN]]
        if told == kernels.CONDITION_FAILS:
            # Evaluated once more, the condition says what is wrong with which values.
            variable = int(progress[kernels.BLAMED])
            base = rows.bounds[active[progress[kernels.KEY]], 0]
            start = np.array([base + run[kernels.START]], np.int64)
            self._conditions[variable].evaluate(
                Places(rows.rows, start, run[None, kernels.COUNTS :], variable), rows.table
            )
            raise InternalError(f"the condition of {self._names[variable]} failed and then did not")
        if told == kernels.NO_SUCH_ROW:
            name = self._names[int(self._settings[1])]
            raise ExecutionError("match-skip", f"Could not skip to {name}. No such element in the found match")
        raise ExecutionError("match-skip", "Could not skip to first element of a match.")


def _merged(parts: Sequence[Runs]) -> Runs:
    """Runs of different keys in the order of the keys."""
    if len(parts) == 1:
        return parts[0]
    owners = np.concatenate([part.owners for part in parts])
    order = np.argsort(owners, kind="stable")
    return Runs(owners[order], np.concatenate([part.runs for part in parts])[order])


def truths_of(array: Any) -> Bools:
    """Where a condition holds: neither FALSE nor NULL."""
    values, valid = values_and_validity(array)
    return values.astype(np.bool_) if valid is None else values.astype(np.bool_) & valid


def _columns(
    rows: KeyRows, by_row: Sequence[int], read: Sequence[int], summed: Sequence[int]
) -> tuple[npt.NDArray[Any], ...]:
    """``truths``, ``words``, ``doubles``, ``known``, ``sums`` and ``counts`` of the kernel."""
    n = len(rows.rows)
    truths = np.zeros((len(by_row), n), np.uint8)
    for place, column in enumerate(by_row):
        truths[place] = truths_of(rows.table[column])[rows.rows]
    words = np.zeros((len(read), n), np.int64)
    known = np.ones((len(read), n), np.uint8)
    for place, column in enumerate(read):
        fixed = value_words(rows.table[column])
        words[place] = fixed.words[0][rows.rows]
        if fixed.valid is not None:
            known[place] = fixed.valid[rows.rows]
    sums = np.zeros((len(summed), n + 1), np.int64)
    counts = np.zeros((len(summed), n + 1), np.int64)
    for place, column in enumerate(summed):
        fixed = value_words(rows.table[column])
        np.cumsum(fixed.words[0][rows.rows], out=sums[place, 1:])
        if fixed.valid is None:
            counts[place] = np.arange(n + 1)
        else:
            np.cumsum(fixed.valid[rows.rows], out=counts[place, 1:])
    return truths, words, words.view(np.float64), known, sums, counts
