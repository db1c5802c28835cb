"""Keys of more columns than a word has bits: NULL is a key of its own in every column."""

from __future__ import annotations

import pytest

from flowsql.table.session.environment import TableEnvironment

WIDTHS = (64, 65, 66, 130)
PARALLELISMS = (1, 3)


def _rows(width: int) -> list[list[int | None]]:
    """All zeros; then for some columns, the last ones among them, the same with a NULL there; the first two twice."""
    rows: list[list[int | None]] = [[0] * width]
    for column in sorted({0, 1, 62, 63, width - 2, width - 1}):
        row: list[int | None] = [0] * width
        row[column] = None
        rows.append(row)
    return [*rows, rows[0], rows[-1]]


def _environment(width: int, parallelism: int) -> TableEnvironment:
    environment = TableEnvironment.create()
    environment.get_config().set("parallelism.default", str(parallelism))
    columns = ", ".join(f"c{index}" for index in range(width))
    values = ", ".join(
        "(" + ", ".join("CAST(NULL AS INT)" if value is None else "0" for value in row) + ")" for row in _rows(width)
    )
    environment.execute_sql(f"CREATE TEMPORARY VIEW wide AS SELECT * FROM (VALUES {values}) AS t({columns})")
    return environment


def _last_state(environment: TableEnvironment, sql: str) -> list[str]:
    """The rows that a query's changes add up to, as text."""
    rows: list[str] = []
    with environment.execute_sql(sql).collect() as changes:
        for change in changes:
            text = repr(list(change))
            if change.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
                rows.append(text)
            else:
                rows.remove(text)
    return sorted(rows)


@pytest.mark.parametrize("parallelism", PARALLELISMS)
@pytest.mark.parametrize("width", WIDTHS)
def test_null_is_not_zero_in_any_column(width: int, parallelism: int) -> None:
    environment = _environment(width, parallelism)
    rows = _rows(width)
    columns = ", ".join(f"c{index}" for index in range(width))
    distinct = [row for place, row in enumerate(rows) if row not in rows[:place]]
    assert _last_state(environment, "SELECT DISTINCT * FROM wide") == sorted(map(repr, distinct))
    counted = [[*row, rows.count(row)] for row in distinct]
    want = sorted(map(repr, counted))
    assert _last_state(environment, f"SELECT {columns}, COUNT(*) FROM wide GROUP BY {columns}") == want


@pytest.mark.parametrize("width", WIDTHS)
def test_fields_of_a_row_are_columns_of_the_key(width: int) -> None:
    environment = _environment(width, 3)
    rows = _rows(width)
    columns = ", ".join(f"c{index}" for index in range(width))
    sql = f"SELECT COUNT(*) FROM (SELECT ROW({columns}) AS r FROM wide) AS t GROUP BY r"
    counts = [rows.count(row) for place, row in enumerate(rows) if row not in rows[:place]]
    assert _last_state(environment, sql) == sorted(repr([count]) for count in counts)


@pytest.mark.parametrize("width", WIDTHS)
def test_joins_match_no_null(width: int) -> None:
    environment = _environment(width, 3)
    equal = " AND ".join(f"a.c{index} = b.c{index}" for index in range(width))
    assert len(_last_state(environment, f"SELECT a.c0 FROM wide AS a JOIN wide AS b ON {equal}")) == 4
