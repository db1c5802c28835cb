"""What may stand at the cursor, as data: ``completions.txt``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.completion.complete import complete
from flowsql.table.session.environment import TableEnvironment

CASES = Path(__file__).with_name("completions.txt")


def cases() -> Iterator[tuple[str, list[str]]]:
    """Texts with a cursor, and the lines below each."""
    text, wanted = "", []
    for line in CASES.read_text().splitlines():
        if line.startswith("--"):
            continue
        if line.startswith("  "):
            wanted.append(line.strip())
            continue
        if text:
            yield text, wanted
        text, wanted = line, []
    yield text, wanted


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    made = TableEnvironment.create()
    for statement in (
        "CREATE TABLE orders (id INT, price DOUBLE, `when` TIMESTAMP(3)) WITH ('connector' = 'datagen')",
        "CREATE TABLE `order lines` (id INT) WITH ('connector' = 'datagen')",
        "CREATE VIEW vip AS SELECT id FROM orders",
        "CREATE DATABASE sales",
        "CREATE TABLE sales.customers (customer_id INT) WITH ('connector' = 'datagen')",
        "SET 'my.key' = 'mine'",
    ):
        made.execute_sql(statement)
    return made


@pytest.mark.parametrize(("text", "wanted"), list(cases()), ids=[text for text, _ in cases()])
def test_what_fits_at_the_cursor(
    text: str, wanted: list[str], environment: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.csv").write_text("1\n")
    position = text.index("|")
    found = [candidate.text for candidate in complete(environment, text.replace("|", "", 1), position)]
    for line in wanted:
        sign, _, rest = line.partition(" ")
        if sign == "+":
            assert set(re.findall(r"`[^`]+`|\S+", rest)) <= set(found), found
        elif sign == "-":
            assert not set(rest.split()) & set(found), found
            if not rest:
                assert not found
        else:
            assert found[: len(line.split())] == line.split(), found


def test_signatures_and_types_stand_beside_the_candidates(environment: TableEnvironment) -> None:
    found = {candidate.text: candidate for candidate in complete(environment, "SELECT  FROM orders", 7)}
    assert found["price"].detail == "DOUBLE"
    found = {candidate.text: candidate for candidate in complete(environment, "SELECT SUBSTR", 13)}
    assert "SUBSTRING(" in found["SUBSTRING("].text
    assert "<" in found["SUBSTRING("].detail


def test_a_thousand_tables_are_offered() -> None:
    made = TableEnvironment.create()
    columns = ", ".join(f"column_{n} INT" for n in range(20))
    for n in range(1000):
        made.execute_sql(f"CREATE TABLE table_{n} ({columns}) WITH ('connector' = 'datagen')")
    for text, rest, expected in (
        ("SELECT * FROM ta", "", 1000),
        ("SELECT col", " FROM table_7 JOIN table_8 ON TRUE", 20),
    ):
        found = complete(made, text + rest, len(text))
        assert len([candidate for candidate in found if candidate.text.startswith(("table_", "column_"))]) == expected
