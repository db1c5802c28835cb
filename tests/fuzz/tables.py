"""Random tables: columns, rows, changes, and how Flink and DuckDB get them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb

from .sql import Column, Relation, Type, same

START: Final = datetime(2024, 1, 1, 10)
#: A watermark leaves behind a row that lifts it by more than this, as ``pipeline.auto-watermark-interval`` says.
WATERMARK_INTERVAL_MS: Final = 200
#: Watermarks stay so far behind the greatest row time.
DELAY_MS: Final = 5000
#: A watermark that nothing is behind.
NONE_MS: Final = -(10**15)

_TEXTS: Final = ("a", "b", "ab", "A", "", "zz", "ä", "a text that is longer than sixteen bytes")
_TIME: Final = "ts"


@dataclass(frozen=True)
class Table:
    """A table with its rows, or the changes that make them.

    Attributes:
        events: what stands in the file, line by line: rows, or changes ``(before, after)``.
        changes: the events are changes.
        parts: files that the rows are spread over, one behind another.
    """

    name: str
    columns: tuple[Column, ...]
    events: tuple[Any, ...]
    changes: bool = False
    parts: int = 1
    time: bool = False
    late: bool = False
    key: str | None = None

    @property
    def relation(self) -> Relation:
        """As it stands in FROM."""
        times = [row[_TIME] for row in self.events] if self.time and not self.changes else []
        return Relation(
            same(self.name),
            self.columns,
            rows=max(1, len(self.events)),
            grows=not self.changes,
            ordered=self.parts == 1,
            time=_TIME if self.time else None,
            late=self.late,
            unique_time=len(set(times)) == len(times),
            marked=self.late,
            bare=True,
            versions=None if self.changes else self.key,
        )

    def rows(self) -> list[dict[str, Any]]:
        """What it holds at the end."""
        if not self.changes:
            return list(self.events)
        held: dict[Any, dict[str, Any]] = {}
        for before, after in self.events:
            if before is not None:
                held.pop(before[self.key], None)
            if after is not None:
                held[after[self.key]] = after
        return list(held.values())

    def marks(self) -> list[int]:
        """The watermark before each row, in milliseconds."""
        found, last, most = [], NONE_MS, NONE_MS
        for row in self.events:
            found.append(last)
            most = max(most, milliseconds(row[_TIME]) - DELAY_MS)
            if most - last > WATERMARK_INTERVAL_MS:
                last = most
        return found

    def definitions(self) -> list[tuple[str, str]]:
        """CREATE TABLE, and in which mode, where each has another; ``${DIR}`` is the folder of files.

        Batch mode reads no changes: there a table of changes is that of the rows that they make.
        """
        if not self.changes:
            return [("", self._definition("json", f"{self.name}.json" if self.parts == 1 else self.name))]
        return [
            ("streaming", self._definition("debezium-json", f"{self.name}.json")),
            ("batch", self._definition("json", f"{self.name}.rows.json")),
        ]

    def _definition(self, format_: str, path: str) -> str:
        columns = [f"{column.name} {column.type.value}" for column in self.columns]
        if self.key is not None:
            columns.append(f"PRIMARY KEY ({self.key}) NOT ENFORCED")
        if self.time:
            columns.append(f"WATERMARK FOR {_TIME} AS {_TIME} - INTERVAL '{DELAY_MS // 1000}' SECOND")
        options = {"connector": "filesystem", "format": format_, "path": f"${{DIR}}/{path}"}
        if self.parts == 1:
            # One reader: rows come in one order.
            options["scan.parallelism"] = "1"
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        return f"CREATE TABLE {self.name} ({', '.join(columns)}) WITH ({listed})"

    def files(self) -> dict[str, str]:
        """Lines by file name."""
        lines = [_line(self._event(event)) for event in self.events]
        if self.changes:
            rows = [_line(_written(row)) for row in self.rows()]
            return {f"{self.name}.json": "".join(lines), f"{self.name}.rows.json": "".join(rows)}
        if self.parts == 1:
            return {f"{self.name}.json": "".join(lines)}
        size = -(-len(lines) // self.parts) or 1
        return {
            f"{self.name}/{part}.json": "".join(lines[part * size : (part + 1) * size]) for part in range(self.parts)
        }

    def _event(self, event: Any) -> dict[str, Any]:
        if not self.changes:
            return _written(event)
        before, after = event
        kind = "c" if before is None else "d" if after is None else "u"
        return {"before": before and _written(before), "after": after and _written(after), "op": kind}

    def write(self, folder: Path) -> None:
        """Make the files."""
        for name, text in self.files().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def load(self, duck: duckdb.DuckDBPyConnection) -> None:
        """Make the table of DuckDB that has its rows."""
        types = {Type.STRING: "VARCHAR", Type.TIMESTAMP: "TIMESTAMP", Type.TIME: "TIME", Type.ARRAY: "INT[]"}
        columns = [f"{column.name} {types.get(column.type, column.type.value)}" for column in self.columns]
        rows = [[row[column.name] for column in self.columns] for row in self.rows()]
        if self.late:
            columns.append("wm_ BIGINT")
            rows = [[*row, mark] for row, mark in zip(rows, self.marks(), strict=True)]
        duck.execute(f"CREATE OR REPLACE TABLE {self.name} ({', '.join(columns)})")
        if rows:
            # One statement: each costs more than its row.
            listed = f"({', '.join('?' * len(columns))})"
            values = [value for row in rows for value in row]
            duck.execute(f"INSERT INTO {self.name} VALUES {', '.join([listed] * len(rows))}", values)


def milliseconds(moment: datetime) -> int:
    """Since 1970, on its own clock."""
    return round((moment - datetime(1970, 1, 1)) / timedelta(milliseconds=1))


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, default=str, ensure_ascii=False) + "\n"


def _written(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _json(value) for name, value in row.items()}


def _json(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat(" ", "milliseconds")
        case Decimal():
            return f"{value:f}"  # a JSON number would be a float
    return value


def _key_value(type_: Type, number: int) -> Any:
    return _TEXTS[number] if type_ is Type.STRING else number


class Tables:
    """Draws the tables of a world."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        #: How many of a hundred values are NULL.
        self._nulls = self._random.choice([0, 10, 10, 30])
        #: How many different keys there are.
        self._keys = self._random.choice([2, 4, 8])

    def draw(self) -> tuple[Table, ...]:
        """A growing table, one of many files, one with late rows, two of changes and one of versions."""
        return (
            self._growing("a"),
            self._growing("b", parts=self._random.choice([1, 2, 3])),
            self._growing("l", late=True),
            self._changing("c", time=False),
            self._changing("d", time=self._random.random() < 0.3),
            self._growing("v", key="v_k"),
        )

    def _columns(self, letter: str, first: tuple[Column, ...]) -> tuple[Column, ...]:
        types = [self._random.choice(list(Type)) for _ in range(self._random.randrange(1, 4))]
        fixed = [Type.INT, self._random.choice([Type.STRING, Type.BIGINT])]
        values = [self._column(f"{letter}_{place}", type_) for place, type_ in enumerate((*fixed, *types), 1)]
        return (*first, *values)

    def _column(self, name: str, type_: Type) -> Column:
        return Column(name, type_, {Type.BIGINT: 1000, Type.DECIMAL: 100}.get(type_, 20))

    def _key_column(self, letter: str) -> Column:
        return Column(f"{letter}_k", self._random.choice([Type.INT, Type.INT, Type.STRING]), 20)

    def _growing(self, letter: str, parts: int = 1, late: bool = False, key: str | None = None) -> Table:
        columns = self._columns(letter, (Column(f"{letter}_id", Type.INT, 100), self._key_column(letter)))
        columns = (*columns, Column(_TIME, Type.TIMESTAMP, rowtime=True))
        count = self._random.choice([5, 12, 25, 40, 60]) if key is None else self._random.choice([4, 10, 20])
        moments = self._moments(count, late, parts)
        rows = [self._row(columns, number, moment) for number, moment in enumerate(moments)]
        if key is None:
            for _ in range(self._random.choice([0, 0, 3])):
                place = self._random.randrange(len(rows))
                rows.insert(place, rows[place])
        else:
            for row in rows:
                # A primary key is never NULL.
                row[key] = _key_value(columns[1].type, self._random.randrange(self._keys))
        return Table(letter, columns, tuple(rows), parts=parts, time=True, late=late, key=key)

    def _moments(self, count: int, late: bool, parts: int) -> list[datetime]:
        """Row times; but for late ones all are nearer to those before them than the watermark's delay."""
        step = self._random.choice([300, 1000, 2500])
        coarse = self._random.choice([1, 1, 500, 1000])
        found, now = [], 0
        for place in range(count):
            now += self._random.randrange(step)
            # Files are read one behind another, each with a watermark of its own.
            back = self._random.randrange(DELAY_MS - 1000) if self._random.random() < 0.3 and parts == 1 else 0
            if late and place % 6 == 5:
                back += self._random.choice([4000, 9000, 25_000])
            found.append(START + timedelta(milliseconds=max(0, now - back) // coarse * coarse))
        return found

    def _row(self, columns: tuple[Column, ...], number: int, moment: datetime | None) -> dict[str, Any]:
        def value(column: Column) -> Any:
            if column.name == _TIME and moment is not None:
                return moment
            if column.name.endswith("_id"):
                return number
            return self._value(column.type, key=column.name.endswith("_k"))

        return {column.name: value(column) for column in columns}

    def _value(self, type_: Type, key: bool = False) -> Any:
        draw = self._random
        if draw.randrange(100) < self._nulls:
            return None
        if key:
            return _key_value(type_, draw.randrange(self._keys))
        makers: dict[Type, Callable[[], Any]] = {
            Type.INT: lambda: draw.randrange(-9, 20),
            Type.BIGINT: lambda: draw.choice([draw.randrange(-5, 6), draw.randrange(-1000, 1000)]),
            Type.DECIMAL: lambda: Decimal(draw.randrange(-500, 9999)).scaleb(-2),
            Type.DOUBLE: lambda: draw.randrange(-40, 160) / 8,
            Type.STRING: lambda: draw.choice(_TEXTS),
            Type.BOOLEAN: lambda: draw.random() < 0.5,
            Type.DATE: lambda: date(2024, 1, 1) + timedelta(days=draw.randrange(60)),
            Type.TIMESTAMP: lambda: START + timedelta(milliseconds=draw.randrange(60_000)),
            Type.SMALLINT: lambda: draw.randrange(-3, 4),
            Type.FLOAT: lambda: draw.randrange(-8, 9) / 4,
            Type.WIDE: lambda: Decimal(draw.choice([draw.randrange(-9, 10), draw.randrange(10**29)])).scaleb(-5),
            Type.TIME: lambda: time(draw.randrange(24), draw.choice([0, 30])),
            Type.ARRAY: lambda: [draw.choice([None, 1, 2, 3, 5]) for _ in range(draw.randrange(4))],
        }
        return makers[type_]()

    def _changing(self, letter: str, time: bool) -> Table:
        """Rows by key that come, change and go."""
        columns = self._columns(letter, (Column(f"{letter}_id", Type.INT, 100), self._key_column(letter)))
        if time:
            columns = (*columns, Column(_TIME, Type.TIMESTAMP, rowtime=True))
        count = self._random.choice([5, 12, 30, 60])
        moments = self._moments(count, late=False, parts=1)
        held: dict[int, dict[str, Any]] = {}
        events: list[Any] = []
        for moment in moments:
            number = self._random.randrange(max(3, count // 3))
            before = held.pop(number, None)
            after = None
            if before is None or self._random.random() < 0.7:
                after = self._row(columns, number, moment)
                held[number] = after
            events.append((before, after))
        return Table(letter, columns, tuple(events), changes=True, time=time, key=f"{letter}_id")
