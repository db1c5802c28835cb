"""The conformance kit passes connectors that keep their promises and names what others break."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from flowsql.connectors import At, BatchSink, ConnectorOption, OptionSet, RowKind, RowSource
from flowsql.connectors.testing import check_lookup, check_sink, check_source
from flowsql_core.row import ALL_CHANGES

COUNT = ConnectorOption("count", int, 30, "Rows of each split.")
COLUMNS = {"n": "INT", "s": "STRING"}


class Numbers(RowSource):
    options = OptionSet(optional=(COUNT,))

    def splits(self) -> Sequence[str]:
        return ("a", "b", "c")

    def read(self, split: str, position: Any) -> Iterator[Any]:
        for number in range(position or 0, self.table.option(COUNT)):
            yield At(self.row(number, split), position=number + 1)

    def row(self, number: int, split: str) -> Any:
        return {name: {"n": number, "s": split}[name] for name in self.table.columns}


class Counted(Numbers):
    """Rows without positions: found again by their number."""

    def read(self, split: str, position: Any) -> Iterator[Any]:
        assert position is None
        for number in range(self.table.option(COUNT)):
            yield self.row(number, split)


class Batches(Numbers):
    """Rows of Arrow, with a position behind each batch alone."""

    def read(self, split: str, position: Any) -> Iterator[Any]:
        for first in range(position or 0, self.table.option(COUNT), 11):
            numbers = list(range(first, min(first + 11, self.table.option(COUNT))))
            rows = pa.RecordBatch.from_pydict({"s": [split] * len(numbers), "n": numbers})
            yield At(rows, position=numbers[-1] + 1)


class Endless(Numbers):
    bounded: ClassVar[bool] = False

    def splits(self) -> Sequence[str]:
        return ("a",)

    def read(self, split: str, position: Any) -> Iterator[Any]:
        number = position or 0
        while True:
            yield None
            yield At(self.row(number, split), position=number + 1)
            number += 1
            time.sleep(0.0001)


@pytest.mark.parametrize("source", [Numbers, Counted, Batches, Endless])
def test_sources_that_keep_their_promises(source: type[RowSource]) -> None:
    check_source(source, COLUMNS, rows=40)


def test_the_rows_that_are_expected() -> None:
    rows = [(n, split) for split in "abc" for n in range(3)]
    check_source(Numbers, COLUMNS, {"count": "3"}, expected=rows)
    with pytest.raises(AssertionError, match=r"the rows of the source, - as expected:\n  - \(9, 'z'\)"):
        check_source(Numbers, COLUMNS, {"count": "3"}, expected=[*rows, (9, "z")])


class Doubles(Numbers):
    """The position is that of the row itself: it comes again."""

    def read(self, split: str, position: Any) -> Iterator[Any]:
        for number in range(position or 0, self.table.option(COUNT)):
            yield At(self.row(number, split), position=number)


class Loses(Numbers):
    def read(self, split: str, position: Any) -> Iterator[Any]:
        for number in range(position or 0, self.table.option(COUNT)):
            yield At(self.row(number, split), position=number + 2)


class Unstable(Numbers):
    """Rows without positions that are others each time."""

    made = 0

    def read(self, split: str, position: Any) -> Iterator[Any]:
        for _ in range(self.table.option(COUNT)):
            Unstable.made += 1
            yield self.row(Unstable.made, split)


class RunsOn(Numbers):
    def read(self, split: str, position: Any) -> Iterator[Any]:
        yield from super().read(split, position)
        if split == "c":
            time.sleep(2.5)


class NoJson(Numbers):
    def read(self, split: str, position: Any) -> Iterator[Any]:
        for number in range(self.table.option(COUNT)):
            yield At(self.row(number, split), position={1, 2})


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (Doubles, r"the rows when reading goes on behind row 1, - when it does not stop:\n  \+"),
        (Loses, r"the rows when reading goes on behind row 1, - when it does not stop:\n  -"),
        (Unstable, "the rows at parallelism 2, - those at 1"),
        (RunsOn, "no row and no end came for 1 s"),
    ],
)
def test_sources_that_break_one(source: type[RowSource], what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql.connectors.testing.PATIENCE_S", 1.0)
    with pytest.raises(AssertionError, match=what):
        check_source(source, COLUMNS)


def test_a_position_that_cannot_be_kept() -> None:
    with pytest.raises(Exception, match=r"The position \{1, 2\} of split 'a' cannot be kept"):
        check_source(NoJson, COLUMNS)


class Kept(BatchSink):
    rows: ClassVar[list[tuple[Any, ...]]] = []
    waiting: ClassVar[list[tuple[Any, ...]]] = []

    def write(self, rows: pa.RecordBatch, kinds: pa.StringArray | None) -> None:
        assert kinds is None
        self.waiting.extend(tuple(row.values()) for row in rows.to_pylist())

    def flush(self) -> None:
        self.rows.extend(self.waiting)
        self.waiting.clear()


class Forgets(Kept):
    def flush(self) -> None:
        self.rows.extend(self.waiting[1:])
        self.waiting.clear()


class WritesAgain(Kept):
    def close(self) -> None:
        self.rows.append((9, "late"))


@pytest.mark.parametrize(
    ("sink", "what"),
    [
        (Kept, None),
        (Forgets, r"the rows behind a flush, - as written:\n  - \(1, 'x'\)"),
        (WritesAgain, r"the rows behind close\(\), - as written:\n  \+ \(9, 'late'\)"),
    ],
)
def test_sinks(sink: type[BatchSink], what: str | None) -> None:
    Kept.rows.clear()
    rows = [(1, "x"), (2, None), (3, "z")]
    if what is None:
        check_sink(sink, COLUMNS, rows, lambda: Kept.rows)
        return
    with pytest.raises(AssertionError, match=what):
        check_sink(sink, COLUMNS, rows, lambda: Kept.rows)


def test_kinds_are_numbers_of_the_engine() -> None:
    assert Numbers.changelog.insert_only
    assert At((1,)).kind is RowKind.INSERT
    assert Kept.accepted(ALL_CHANGES, has_key=True).insert_only


class Names(RowSource):
    """Several rows a key; ``breaks`` leaves one out."""

    rows: ClassVar[list[tuple[int, str]]] = [(1, "a"), (2, "b"), (1, "c"), (3, "d")]
    breaks: ClassVar[int] = 0

    def lookup(self, keys: pa.RecordBatch) -> list[tuple[int, str]]:
        asked = set(keys.column("n").to_pylist())
        return [row for row in self.rows if row[0] in asked and row[0] != self.breaks]


class Forgets(Names):
    breaks: ClassVar[int] = 2


class AlwaysAll(Names):
    def lookup(self, keys: pa.RecordBatch) -> list[tuple[int, str]]:
        return self.rows


@pytest.mark.parametrize("source", [Names, AlwaysAll])
def test_lookups_that_keep_their_promises(source: type[RowSource]) -> None:
    check_lookup(source, COLUMNS, ["n"], Names.rows)


def test_lookups_that_break_them() -> None:
    with pytest.raises(AssertionError, match=r"the rows of the keys .*\n  - \(2, 'b'\)"):
        check_lookup(Forgets, COLUMNS, ["n"], Names.rows)
    with pytest.raises(AssertionError, match="has no lookup"):
        check_lookup(Numbers, COLUMNS, ["n"], Names.rows)
