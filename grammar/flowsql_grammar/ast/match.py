"""MATCH_RECOGNIZE as written."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from flowsql_grammar.ast.node import Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.interval import IntervalLiteral
    from flowsql_grammar.ast.query import OrderItem, Relation, TableAlias


class PatternVariable(Node):
    """``A``."""

    name: Name


class PatternSequence(Node):
    """``A B C``; at least two parts."""

    parts: tuple[Pattern, ...]


class PatternAlternation(Node):
    """``A | B``; at least two choices."""

    choices: tuple[Pattern, ...]


class PatternRepeat(Node):
    """``A{low,high}``: ``*`` is (0, None), ``+`` is (1, None), ``?`` is (0, 1).

    ``low``: None where it is not written, as in ``A{,2}``. ``reluctant``: with a ``?`` behind.
    """

    inner: Pattern
    low: int | None
    high: int | None
    reluctant: bool = False


class PatternExclusion(Node):
    """``{- A B -}``."""

    inner: Pattern


class PatternPermute(Node):
    """``PERMUTE(A, B)``."""

    parts: tuple[Pattern, ...]


Pattern: TypeAlias = (
    "PatternVariable | PatternSequence | PatternAlternation | PatternRepeat | PatternExclusion | PatternPermute"
)


class Measure(Node):
    """``expression AS name``."""

    expression: Expression
    name: Name


class RowsPerMatch(StrEnum):
    """What a match yields."""

    ONE = "ONE ROW PER MATCH"
    ALL = "ALL ROWS PER MATCH"


class SkipKind(StrEnum):
    """Where the search goes on after a match."""

    PAST_LAST_ROW = "SKIP PAST LAST ROW"
    TO_NEXT_ROW = "SKIP TO NEXT ROW"
    TO_FIRST = "SKIP TO FIRST"
    TO_LAST = "SKIP TO LAST"


class AfterMatch(Node):
    """``AFTER MATCH SKIP ...``; ``variable`` with TO_FIRST and TO_LAST."""

    kind: SkipKind
    variable: Name | None = None


class SubsetDefinition(Node):
    """``name = (A, B)``."""

    name: Name
    variables: tuple[Name, ...]


class PatternDefinition(Node):
    """``name AS condition``."""

    name: Name
    condition: Expression


class MatchRecognize(Node):
    """``relation MATCH_RECOGNIZE (...) [AS alias]``."""

    input: Relation
    pattern: Pattern
    definitions: tuple[PatternDefinition, ...]
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    measures: tuple[Measure, ...] = ()
    rows_per_match: RowsPerMatch | None = None
    after_match: AfterMatch | None = None
    strict_start: bool = False
    strict_end: bool = False
    within: IntervalLiteral | None = None
    subsets: tuple[SubsetDefinition, ...] = ()
    alias: TableAlias | None = None
