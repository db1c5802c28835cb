"""A pattern as states and edges; ``kernels/match.py`` walks through them. Source: Flink, ``NFACompiler``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flowsql_core.graph.match_specs import PatternVariable
from flowsql_core.record import record
from flowsql_runtime.kernels.match import FINAL

Int32s = npt.NDArray[np.int32]


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

    def arrays(self) -> tuple[Int32s, ...]:
        """``take_ends``, ``takes``, ``ending_ends``, ``endings``, ``set_ends`` and ``sets`` of the kernel ``walk``."""
        sets: list[frozenset[int]] = []

        def number(found: frozenset[int]) -> int:
            if found not in sets:
                sets.append(found)
            return sets.index(found)

        takes = [(take.variable, number(take.unless), take.target) for state in self.takes for take in state]
        endings = [number(unless) for state in self.endings for unless in state]
        return (
            _ends(self.takes),
            np.array(takes, np.int32).reshape(-1, 3),
            _ends(self.endings),
            np.array(endings, np.int32),
            _ends(sets),
            np.array([variable for found in sets for variable in sorted(found)], np.int32),
        )


def _ends(parts: Iterable[Sequence[object] | frozenset[int]]) -> Int32s:
    """Where parts that lie one behind another begin, and the end."""
    return np.cumsum([0, *map(len, parts)]).astype(np.int32)
