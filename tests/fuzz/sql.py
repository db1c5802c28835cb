"""A piece of SQL as Flink has it and its twin for DuckDB, and the relations and columns that such pieces make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final


class Type(Enum):
    """The types of columns, as Flink's DDL names them."""

    INT = "INT"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL(8, 2)"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP(3)"
    #: Types that columns have and expressions only name.
    SMALLINT = "SMALLINT"
    FLOAT = "FLOAT"
    WIDE = "DECIMAL(30, 5)"
    TIME = "TIME(0)"
    ARRAY = "ARRAY<INT>"


NUMBERS: Final = (Type.INT, Type.BIGINT, Type.DECIMAL, Type.DOUBLE)
#: Types that DISTINCT, GROUP BY, joins and orders take here.
PLAIN: Final = tuple(type_ for type_ in Type if type_ is not Type.ARRAY)


@dataclass(frozen=True)
class Sql:
    """A text and its twin.

    Attributes:
        flink: as Flink has it.
        duck: as DuckDB has it; None where it has no such thing.
        why: there is no twin.
        streaming: why batch mode has another answer, and rightly so; empty where both have one.
    """

    flink: str
    duck: str | None
    why: str = ""
    streaming: str = ""

    def __str__(self) -> str:
        raise TypeError("put pieces together by both(), apart() and only(): a twin would be lost")


def same(text: str) -> Sql:
    """SQL that both have."""
    return Sql(text, text)


def both(template: str, *parts: Sql | str) -> Sql:
    """A template that both have; ``{0}`` and so on stand for the parts."""
    return apart(template, template, *parts)


def apart(flink: str, duck: str, *parts: Sql | str) -> Sql:
    """Two templates over the same parts."""
    pieces = [same(part) if isinstance(part, str) else part for part in parts]
    text = flink.format(*(piece.flink for piece in pieces))
    streaming = next((piece.streaming for piece in pieces if piece.streaming), "")
    for piece in pieces:
        if piece.duck is None:
            return Sql(text, None, piece.why, streaming)
    return Sql(text, duck.format(*(piece.duck for piece in pieces)), streaming=streaming)


def only(why: str, template: str, *parts: Sql | str) -> Sql:
    """What has no twin, and why."""
    made = both(template, *parts)
    return Sql(made.flink, None, why, made.streaming)


def streaming_only(why: str, made: Sql) -> Sql:
    """What batch mode answers otherwise, and why."""
    return replace(made, streaming=why)


def joined(separator: str, parts: list[Sql] | tuple[Sql, ...]) -> Sql:
    """Pieces one behind another."""
    return both(separator.join(f"{{{place}}}" for place in range(len(parts))), *parts)


@dataclass(frozen=True)
class Expression:
    """A value over one row. ``bound``: numbers are at most so large, either sign (sums may not run over).

    ``rowtime``: it is a column, which may be a time attribute and stays one.
    """

    sql: Sql
    type: Type
    bound: int = 0
    rowtime: bool = False

    def column(self, name: str) -> Column:
        """The column that it makes in a SELECT list."""
        return Column(name, self.type, self.bound, self.rowtime)


@dataclass(frozen=True)
class Column:
    """A column of a relation. ``rowtime``: it may be a time attribute."""

    name: str
    type: Type
    bound: int = 0
    rowtime: bool = False


@dataclass(frozen=True)
class Window:
    """What windows the rows of a relation stand in: equal texts are equal windows."""

    text: str
    start: str
    end: str
    session: bool = False


@dataclass(frozen=True)
class Relation:
    """Something that may stand in FROM.

    Attributes:
        sql: a table's name, or a query in parentheses.
        columns: all that it has.
        rows: at most so many.
        changes: which at most about so many changes make; fewer than rows: as many as these.
        grows: it only gets rows.
        ordered: its rows come in the same order at any parallelism, for each key.
        time: the column that is its row time.
        late: rows may come behind the watermark.
        unique_time: no two rows have the same row time.
        window: of rows that stand in windows.
        marked: the twin has a column ``wm_``, the watermark before the row, in milliseconds.
        bare: it is a table's name or a view's.
    """

    sql: Sql
    columns: tuple[Column, ...]
    rows: int
    changes: int = 0
    grows: bool = True
    ordered: bool = False
    time: str | None = None
    late: bool = False
    unique_time: bool = False
    window: Window | None = None
    marked: bool = False
    bare: bool = False
    #: The key, where rows are versions of it.
    versions: str | None = None

    @property
    def told(self) -> int:
        """At most about so many changes make the rows."""
        return max(self.rows, self.changes)

    def of(self, *types: Type) -> list[Column]:
        """Columns of these types."""
        return [column for column in self.columns if column.type in types]

    def without_times(self) -> Relation:
        """Without columns that may be time attributes: two of them compared make an interval join of a join."""
        return replace(self, columns=tuple(column for column in self.columns if not column.rowtime))

    def column(self, name: str) -> Column:
        """By name."""
        return next(column for column in self.columns if column.name == name)

    def timeless(self) -> Relation:
        """The same rows behind an operator that knows neither order nor time."""
        return replace(
            self,
            ordered=False,
            time=None,
            late=False,
            unique_time=False,
            window=None,
            marked=False,
            bare=False,
            versions=None,
        )


def item(expression: Sql, name: str) -> Sql:
    """A column of a SELECT list."""
    return both("{0} AS {1}", expression, name)


def select(items: list[Sql], rest: Sql) -> Sql:
    """A query in parentheses."""
    return both("(SELECT {0} {1})", joined(", ", items), rest)


def arrived(template: str, *parts: Sql | str) -> Sql:
    """What hangs on the order in which rows come, which neither DuckDB nor batch mode has."""
    why = "order of arrival"
    return streaming_only(why, only(why, template, *parts))
