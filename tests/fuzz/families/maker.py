"""What families of operators need of the generator that calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..draws import Draws
from ..expressions import Expressions
from ..sql import Relation, Sql


@dataclass(frozen=True)
class Definition:
    """A named query."""

    name: str
    sql: Sql


class Maker(Protocol):
    """Makes what an operator stands over."""

    draws: Draws

    def use(self, name: str) -> None:
        """Count an operator."""

    def table(self, wanted: Callable[[Relation], bool] = ...) -> Relation:
        """A table."""

    def versions(self) -> Relation:
        """A table of versions."""

    def relation(self, depth: int) -> Relation:
        """Anything of so many levels."""

    def timed(self, wanted: Callable[[Relation], bool] = ...) -> Relation:
        """Rows with a row time."""

    def defined(self, relation: Relation) -> Relation:
        """A relation under a name."""

    def fits(self, left: Relation, right: Relation) -> bool:
        """Whether a join of both stays small."""

    def few(self, changes: int) -> bool:
        """Whether so many changes are few enough to be told."""

    def expressions(self, *relations: tuple[str, Relation]) -> Expressions:
        """Expressions over columns."""
