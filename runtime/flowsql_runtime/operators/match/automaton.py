"""A pattern as states and edges, and what one row does to the partial matches of a key.

Patterns are strictly contiguous, so a match is a run of a key's rows: where it starts, and how many rows each variable
has. Source: Flink, ``NFACompiler``, ``NFA`` and ``AfterMatchSkipStrategy``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from flowsql_core.errors import ExecutionError
from flowsql_core.graph.match_specs import MatchSkip, PatternVariable
from flowsql_core.record import record

#: State of a match that is complete.
FINAL: Final = 0
#: Start of the run that no row has started yet.
NOT_STARTED: Final = 2**31 - 1


@record
class Take:
    """A row becomes one of ``variable``: where its condition holds, and none of those of ``unless``."""

    variable: int
    unless: frozenset[int]
    target: int


@dataclass(slots=True)
class _Edge:
    """``variable`` None: to ``target`` with the same row."""

    variable: int | None
    target: int
    unless: frozenset[int] = frozenset()


class Automaton:
    """The states of a pattern; ``start`` is the first one, 0 the final one.

    Attributes:
        takes: of each state, in the order in which they are tried.
        endings: of each state, sets of conditions one of which must fail as a whole for a match to end there.
        asks: of each state, the variables whose conditions it needs.
    """

    def __init__(self, variables: Sequence[PatternVariable]) -> None:
        self._edges: list[list[_Edge]] = [[]]
        sink = FINAL
        for place in reversed(range(len(variables))):
            sink = self._add(variables[place], place, sink)
        self.start = sink
        self.takes = [tuple(self._takes_of(state)) for state in range(len(self._edges))]
        self.endings = [tuple(self._endings_of(state)) for state in range(len(self._edges))]
        self.asks = [self._asked_by(state) for state in range(len(self._edges))]

    def _add(self, variable: PatternVariable, place: int, sink: int) -> int:
        optional, least = variable.low == 0, max(variable.low, 1)
        behind = sink if optional else None
        if variable.greedy:
            # Whoever takes all it can leaves to others only what does not fit itself.
            for edge in self._edges[sink]:
                edge.unless |= {place}
        if variable.high is None:
            last = len(self._edges)
            self._edges.append([_Edge(None, sink), _Edge(place, last)])
        else:
            last = sink
            for _ in range(least, variable.high):
                last = self._one(place, last, sink)
        for _ in range(least - 1):
            last = self._one(place, last, None)
        return self._one(place, last, behind)

    def _one(self, place: int, target: int, proceed: int | None) -> int:
        self._edges.append([_Edge(place, target), *([] if proceed is None else [_Edge(None, proceed)])])
        return len(self._edges) - 1

    def _takes_of(self, state: int) -> list[Take]:
        found: list[Take] = []
        todo: list[tuple[int, frozenset[int]]] = [(state, frozenset())]
        while todo:
            current, unless = todo.pop()
            for edge in self._edges[current]:
                if edge.variable is None:
                    todo.append((edge.target, unless | edge.unless))
                else:
                    found.append(Take(edge.variable, unless | edge.unless, edge.target))
        return found

    def _endings_of(self, state: int) -> list[frozenset[int]]:
        found: list[frozenset[int]] = []
        todo: list[tuple[int, frozenset[int]]] = [(state, frozenset())]
        while todo:
            current, unless = todo.pop()
            for edge in self._edges[current]:
                if edge.variable is None:
                    if edge.target == FINAL:
                        found.append(unless | edge.unless)
                    todo.append((edge.target, unless | edge.unless))
        return found

    def _asked_by(self, state: int) -> frozenset[int]:
        asked: set[int] = set()
        for take in self.takes[state]:
            asked |= {take.variable, *take.unless}.union(*self.endings[take.target])
        return frozenset(asked)


@record
class Run:
    """Rows ``start`` and following of a key, ``counts`` of them for each variable; partial unless ``state`` is 0."""

    start: int
    state: int
    counts: tuple[int, ...]

    @property
    def end(self) -> int:
        """Behind the last row."""
        return self.start + sum(self.counts)

    def rows_of(self, variable: int | None) -> tuple[int, int]:
        """First row of a variable and the one behind its last; None: of all."""
        if variable is None:
            return self.start, self.end
        first = self.start + sum(self.counts[:variable])
        return first, first + self.counts[variable]


class RunHeap:
    """Runs as Java's ``PriorityQueue`` has them: of those with one start, how the heap lies tells which comes first."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs: list[Run] = []
        for run in runs:
            self.add(run)

    def add(self, run: Run) -> None:
        """Put a run in its place."""
        runs, at = self.runs, len(self.runs)
        runs.append(run)
        while at and run.start < runs[(at - 1) >> 1].start:
            runs[at] = runs[(at - 1) >> 1]
            at = (at - 1) >> 1
        runs[at] = run

    def poll(self) -> Run:
        """Take the first run out."""
        first, last = self.runs[0], self.runs.pop()
        if self.runs:
            self._sink(0, last)
        return first

    def keep_from(self, start: int) -> None:
        """Remove runs that start before a row."""
        kept = [run for run in self.runs if run.start >= start]
        if len(kept) < len(self.runs):
            self.runs = kept
            for at in reversed(range(len(kept) // 2)):
                self._sink(at, kept[at])

    def _sink(self, at: int, run: Run) -> None:
        runs = self.runs
        while (child := 2 * at + 1) < len(runs):
            if child + 1 < len(runs) and runs[child].start > runs[child + 1].start:
                child += 1
            if run.start <= runs[child].start:
                break
            runs[at] = runs[child]
            at = child
        runs[at] = run


class KeyMatches:
    """What goes on in one key. ``times``: of its rows, milliseconds.

    ``partial``: runs that rows may prolong, among them one without rows that starts at ``NOT_STARTED``.
    ``waiting``: complete matches that an older partial one may still rule out.
    """

    def __init__(
        self,
        automaton: Automaton,
        skip: MatchSkip,
        skip_variable: int | None,
        within_ms: int | None,
        names: Sequence[str],
    ) -> None:
        self._automaton = automaton
        self._skip = skip
        self._skip_variable = skip_variable
        self._within_ms = within_ms
        self._names = names
        self.times: list[int] = []
        self.partial = RunHeap([Run(NOT_STARTED, automaton.start, (0,) * len(names))])
        self.waiting = RunHeap()

    def restore(self, partial: Iterable[Run], waiting: Iterable[Run]) -> None:
        """Go on with runs in the order in which they were kept."""
        self.partial, self.waiting = RunHeap(partial), RunHeap(waiting)

    @property
    def started(self) -> list[Run]:
        """Partial runs that have rows."""
        return [run for run in self.partial.runs if run.start != NOT_STARTED]

    def advance(self, time_ms: int) -> list[Run]:
        """Time has reached a moment: partial matches that took too long go, and let others out."""
        within = self._within_ms
        if within is None:
            return []
        self.partial = RunHeap(
            run for run in self.partial.runs if run.start == NOT_STARTED or time_ms - self.times[run.start] < within
        )
        return self._released()

    def candidates(self) -> list[Run]:
        """The runs that the next row may prolong, one of them that which it would start."""
        here = len(self.times)
        return [Run(min(run.start, here), run.state, run.counts) for run in self.partial.runs]

    def take(self, time_ms: int, candidates: Sequence[Run], holds: Callable[[int, int], bool]) -> list[Run]:
        """The matches that a row completes or lets out. ``holds(i, v)``: the condition of ``v`` for candidate ``i``."""
        here = len(self.times)
        self.times.append(time_ms)
        partial, complete = RunHeap(), RunHeap()
        for place, run in enumerate(candidates):
            for take in self._automaton.takes[run.state]:
                if not holds(place, take.variable) or any(holds(place, other) for other in take.unless):
                    continue
                v = take.variable
                counts = (*run.counts[:v], run.counts[v] + 1, *run.counts[v + 1 :])
                endings = self._automaton.endings[take.target]
                if take.target != FINAL:
                    partial.add(Run(run.start, take.target, counts))
                if take.target == FINAL or any(not any(holds(place, o) for o in unless) for unless in endings):
                    complete.add(Run(run.start, FINAL, counts))
            if run.start == here:
                partial.add(Run(NOT_STARTED, run.state, run.counts))
        self.partial = partial
        for run in complete.runs:
            self.waiting.add(run)
        return self._released()

    def _released(self) -> list[Run]:
        found: list[Run] = []
        while self.waiting.runs and self.waiting.runs[0].start <= self.partial.runs[0].start:
            match = self.waiting.poll()
            first = self._goes_on_at(match)
            self.partial.keep_from(first)
            self.waiting.keep_from(first)
            found.append(match)
        return found

    def _goes_on_at(self, match: Run) -> int:
        """The first row at which another match may start."""
        if self._skip is MatchSkip.TO_NEXT_ROW:
            return match.start + 1
        if self._skip is MatchSkip.PAST_LAST_ROW:
            return match.end
        assert self._skip_variable is not None
        first, behind = match.rows_of(self._skip_variable)
        if first == behind:
            name = self._names[self._skip_variable]
            raise ExecutionError("match-skip", f"Could not skip to {name}. No such element in the found match")
        goes_on = first if self._skip is MatchSkip.TO_FIRST else behind - 1
        if goes_on == match.start:
            raise ExecutionError("match-skip", "Could not skip to first element of a match.")
        return goes_on
