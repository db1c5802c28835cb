"""Table maps: events of the binary log that tell how the rows behind them are laid out.

Source: MySQL internals, ``Table_map_event``, with its optional metadata (``binlog_row_metadata``).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from flowsql_connectors.cdc.mysql.columns.wire_types import CHARACTER, NUMERIC, Wire, WireType, wire_types
from flowsql_core.record import record

#: Column counts and lengths from here on stand behind a byte that says how many bytes they take.
_LONG_NUMBERS: Final = {252: 2, 253: 3, 254: 8}
_MEMBERED: Final = frozenset({Wire.ENUM, Wire.SET})


class _Field(enum.IntEnum):
    """Of the optional metadata."""

    SIGNS = 1
    DEFAULT_COLLATION = 2
    COLLATIONS = 3
    NAMES = 4
    SET_MEMBERS = 5
    ENUM_MEMBERS = 6
    PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIXES = 9


@record
class LogColumn:
    """A column of rows in the log.

    ``name``: empty where the log does not tell it. ``unsigned``, ``charset``, ``members`` (of ENUM and SET): None where
    it does not.
    """

    wire: WireType
    name: str = ""
    unsigned: bool | None = None
    charset: str | None = None
    members: tuple[bytes, ...] | None = None


@record
class TableMap:
    """What an event tells. ``primary_key``: places of columns; None where the log does not tell it."""

    database: str
    table: str
    columns: tuple[LogColumn, ...]
    primary_key: tuple[int, ...] | None = None

    @property
    def is_named(self) -> bool:
        """Whether the log tells names of columns: with ``binlog_row_metadata`` = FULL."""
        return bool(self.columns) and all(column.name for column in self.columns)


class _Reader:
    """Walks through bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def more(self) -> bool:
        return self.at < len(self.data)

    def number(self) -> int:
        """A packed number."""
        size = _LONG_NUMBERS.get(self.data[self.at], 0)
        start = self.at + (size > 0)
        self.at = start + max(1, size)
        return int.from_bytes(self.data[start : self.at], "little")

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> bytes:
        """Bytes behind their length."""
        return self.take(self.number())


def table_name(body: bytes) -> tuple[str, str]:
    """Database and table of an event, without all else."""
    reader = _Reader(body)
    reader.at = 8
    database = reader.text().decode()
    reader.at += 1
    return database, reader.text().decode()


def parse_table_map(body: bytes, charset_of: Mapping[int, str], is_mariadb: bool) -> TableMap:
    """The body of an event, without checksum.

    Args:
        charset_of: character sets by the number of a collation.

    Raises:
        ValueError: a type is unknown.
    """
    reader = _Reader(body)
    reader.at = 8
    database = reader.text().decode()
    reader.at += 1
    table = reader.text().decode()
    reader.at += 1
    count = reader.number()
    codes = reader.take(count)
    columns = [LogColumn(wire) for wire in wire_types(codes, reader.text())]
    reader.at += (count + 7) // 8
    primary_key: tuple[int, ...] | None = None
    characters = CHARACTER | {Wire.GEOMETRY} if is_mariadb else CHARACTER
    while reader.more():
        kind = reader.number()
        about = _Reader(reader.text())
        match kind:
            case _Field.SIGNS:
                for index, place in enumerate(_of(columns, NUMERIC)):
                    unsigned = bool(about.data[index // 8] & (0x80 >> index % 8))
                    columns[place] = replace(columns[place], unsigned=unsigned)
            case _Field.DEFAULT_COLLATION:
                _with_charsets(columns, _of(columns, characters), _default(about), charset_of)
            case _Field.COLLATIONS:
                _with_charsets(columns, _of(columns, characters), _each(about), charset_of)
            case _Field.NAMES:
                columns = [replace(column, name=about.text().decode()) for column in columns]
            case _Field.SET_MEMBERS | _Field.ENUM_MEMBERS:
                for place in _of(columns, {Wire.SET if kind == _Field.SET_MEMBERS else Wire.ENUM}):
                    members = tuple(about.text() for _ in range(about.number()))
                    columns[place] = replace(columns[place], members=members)
            case _Field.PRIMARY_KEY:
                primary_key = tuple(_numbers(about))
            case _Field.PRIMARY_KEY_WITH_PREFIXES:
                primary_key = tuple(_numbers(about))[::2]
    if primary_key is None and columns and columns[0].name:
        primary_key = ()
    return TableMap(database, table, tuple(columns), primary_key)


def _of(columns: list[LogColumn], codes: frozenset[Wire] | set[Wire]) -> list[int]:
    return [place for place, column in enumerate(columns) if column.wire.code in codes]


def _numbers(about: _Reader) -> Iterator[int]:
    while about.more():
        yield about.number()


def _default(about: _Reader) -> Callable[[int], int | None]:
    """Collations by number of the column among those that have one: of most the same, of others theirs."""
    common = about.number()
    rest = list(_numbers(about))
    others = dict(zip(rest[::2], rest[1::2], strict=True))
    return lambda index: others.get(index, common)


def _each(about: _Reader) -> Callable[[int], int | None]:
    collations = dict(enumerate(_numbers(about)))
    return collations.get


def _with_charsets(
    columns: list[LogColumn], places: list[int], collation: Callable[[int], int | None], charset_of: Mapping[int, str]
) -> None:
    for index, place in enumerate(places):
        number = collation(index)
        columns[place] = replace(columns[place], charset=None if number is None else charset_of.get(number))
