"""Comparisons of DOUBLE and FLOAT with NaN, zeros and NULL answer as Flink does, as values and as conditions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration

_FILE = Path(__file__).with_name("nan_comparisons.txt")
_LINES = [line for line in _FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
_ROWS = _LINES[0].split(" ")
_SHOWN = {True: "T", False: "F", None: "-"}


def conditions() -> Iterator[tuple[str, str, str]]:
    """Each condition, its values, and which rows it keeps."""
    for line in _LINES[1:]:
        values, _, rest = line.partition(" ")
        kept, _, condition = rest.partition(" ")
        if len(kept) == len(_ROWS) and set(kept) <= {"T", "."}:
            yield condition, values, kept
        else:
            yield rest, values, "".join("T" if value == "T" else "." for value in values)


def parts() -> Iterator[list[tuple[str, str, str]]]:
    """The conditions, some at a time."""
    every = conditions()
    while some := list(islice(every, 60)):
        yield some


@pytest.fixture
def session(tmp_path: Path) -> TableEnvironment:
    rows = [f"{place},{row.replace('/', ',')}" for place, row in enumerate(_ROWS)]
    (tmp_path / "nn.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    made = TableEnvironment.of_configuration(Configuration(values={"execution.runtime-mode": "streaming"}))
    made.execute_sql(
        "CREATE TABLE nn (id INT, d DOUBLE, e DOUBLE, f FLOAT, i INT) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}/nn.csv', 'format' = 'csv', 'csv.null-literal' = '')"
    )
    return made


def answer(session: TableEnvironment, sql: str) -> list[tuple[object, ...]]:
    with session.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


def test_values(session: TableEnvironment) -> None:
    for some in parts():
        listed = ", ".join(f"{condition} AS c{place}" for place, (condition, _, _) in enumerate(some))
        rows = sorted(answer(session, f"SELECT id, {listed} FROM nn"), key=str)
        found = {row[0]: row[1:] for row in rows}
        for place, (condition, values, _) in enumerate(some):
            shown = "".join(_SHOWN[found[row][place]] for row in range(len(_ROWS)))  # type: ignore[index]
            assert shown == values, condition


def test_conditions(session: TableEnvironment) -> None:
    for some in parts():
        listed = [f"SELECT {place} AS c, id FROM nn WHERE {condition}" for place, (condition, _, _) in enumerate(some)]
        found = set(answer(session, " UNION ALL ".join(listed)))
        for place, (condition, _, kept) in enumerate(some):
            shown = "".join("T" if (place, row) in found else "." for row in range(len(_ROWS)))
            assert shown == kept, condition
