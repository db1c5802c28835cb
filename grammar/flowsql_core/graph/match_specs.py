"""Spec of the operator behind MATCH_RECOGNIZE."""

from __future__ import annotations

import enum

from flowsql_core.expr import AggregateCall, Expr
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


class MatchSkip(enum.Enum):
    """Where the search goes on after a match."""

    PAST_LAST_ROW = "SKIP PAST LAST ROW"
    TO_NEXT_ROW = "SKIP TO NEXT ROW"
    TO_FIRST = "SKIP TO FIRST"
    TO_LAST = "SKIP TO LAST"


@record
class PatternColumn:
    """A column of one row of a match: the row ``offset`` places from the first or last one of a variable.

    ``variable``: place in the pattern; one behind its end has no rows; None: rows of all variables. ``column``: of the
    stored rows. NULL where the variable has no such row.
    """

    variable: int | None
    column: int
    first: bool = False
    offset: int = 0


@record
class PatternAggregate:
    """An aggregate over the rows of a variable, as of ``PatternColumn``. ``call``: over columns of the stored rows."""

    variable: int | None
    call: AggregateCall


class MatchTime(enum.Enum):
    """A moment of the match itself."""

    ROW_TIME = "MATCH_ROWTIME"


PatternRead = PatternColumn | PatternAggregate | MatchTime


@record
class PatternExpression:
    """An expression whose input columns are what ``reads`` finds in a match."""

    expression: Expr
    reads: tuple[PatternRead, ...]


@record
class PatternVariable:
    """One step of a pattern: ``low`` to ``high`` rows (None: any number).

    ``row_condition``: a BOOLEAN column of the stored rows; ``path_condition``: asked for a row and the rows matched
    before it. Neither: every row fits.
    """

    name: str
    low: int
    high: int | None
    greedy: bool
    row_condition: int | None = None
    path_condition: PatternExpression | None = None


@record
class MatchSpec(OperatorSpec):
    """Rows of each partition that match a pattern, one row a match: the partition's columns, then the measures.

    ``order``: (column, descending, nulls first); the first one is the time attribute, in ``row_time`` or else in
    processing time. Stored rows are those of ``input``, then the columns that ``computed`` makes of each.
    ``skip_variable``: with SKIP TO FIRST and SKIP TO LAST. ``within_ms``: a match is shorter than that.
    """

    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    row_time: bool
    variables: tuple[PatternVariable, ...]
    computed: tuple[Expr, ...]
    measures: tuple[PatternExpression, ...]
    skip: MatchSkip
    skip_variable: int | None
    within_ms: int | None
    input: Schema
    output: Schema
