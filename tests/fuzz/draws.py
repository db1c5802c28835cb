"""Random choices that are written down: the same list makes the same query again, a shorter list a simpler one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """Chooses; what comes first among its choices is the simplest.

    Args:
        seed: of new choices.
        told: choices to repeat; where they end, and with ``seed`` None, every choice is the first.
    """

    def __init__(self, seed: int | None, told: Sequence[int] = ()) -> None:
        self._random = None if seed is None else random.Random(seed)
        self._told = told
        self.made: list[int] = []
        #: How often each operator was chosen.
        self.used: Counter[str] = Counter()
        self._names = 0

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""
        place = len(self.made)
        if place < len(self._told):
            number = min(self._told[place], limit - 1)
        else:
            number = self._random.randrange(limit) if self._random is not None else 0
        self.made.append(number)
        return number

    def pick(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[self.below(len(choices))]

    def often(self, percent: int) -> bool:
        """Yes in so many of a hundred cases; no is the simpler answer."""
        return self.below(100) >= 100 - percent

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """From ``least`` to ``most`` different ones of them, in their order."""
        wanted = min(len(choices), least + self.below(most - least + 1))
        left = list(range(len(choices)))
        taken = [left.pop(self.below(len(left))) for _ in range(wanted)]
        return [choices[place] for place in sorted(taken)]

    def weighted(self, choices: Sequence[tuple[int, Callable[[], T]]]) -> T:
        """Calls one of them; each is as likely as its weight."""
        number = self.below(sum(weight for weight, _ in choices))
        for weight, choice in choices:
            if number < weight:
                return choice()
            number -= weight
        raise AssertionError("the number is below the sum of weights")

    def name(self, letter: str) -> str:
        """A name that no other has."""
        self._names += 1
        return f"{letter}{self._names}"
