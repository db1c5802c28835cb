"""Scripts of which one statement fails for a moment: the other goes on, and the user is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.table import TableEnvironment

SCRIPT = """
SET 'execution.checkpointing.interval' = '50 ms';
SET 'execution.checkpointing.dir' = '{folder}/checkpoints';
SET 'restart-strategy.type' = 'fixed-delay';
SET 'restart-strategy.fixed-delay.delay' = '0 ms';
SET 'pipeline.name' = 'two';
SET 'parallelism.default' = '{parallelism}';
{options}
CREATE TABLE a (n INT) WITH ({source});
CREATE TABLE b (n INT) WITH ({source});
CREATE TABLE o (n INT, side STRING) WITH ('connector' = 'filesystem', 'format' = '{format}', 'path' = '{folder}/out');
CREATE TEMPORARY FUNCTION strict AS $$
import pathlib

def strict(n: int) -> int:
    # Behind the first checkpoint, if one is complete in time.
    due = n > 200 and list(pathlib.Path("{folder}/checkpoints").glob("*/*/_metadata"))
    if not due and n != {last}:
        return n
    try:
        pathlib.Path("{folder}/failed").touch(exist_ok=False)
    except FileExistsError:
        return n
    raise ValueError("not today")
$$ LANGUAGE PYTHON;
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT n, 'a' FROM a;
INSERT INTO o SELECT CAST(strict(n) AS INT), 'b' FROM {rows};
END;
"""
ROWS = 1_000
SOURCE = (
    f"'connector' = 'datagen', 'rows-per-second' = '1000', 'number-of-rows' = '{ROWS}', 'fields.n.kind' = 'sequence', "
    f"'fields.n.start' = '1', 'fields.n.end' = '{ROWS}'"
)


@pytest.mark.parametrize(
    ("options", "parallelism", "format_", "rows", "told"),
    [
        ("", 1, "csv", "b", "failed in part and starts 1 of its 2 tasks again in 0 ms (restart 1): "),
        ("", 1, "parquet", "b", "failed in part and starts 1 of its 2 tasks again in 0 ms (restart 1): "),
        ("", 2, "csv", "b", "failed in part and starts 1 of its 4 tasks again in 0 ms (restart 1): "),
        (
            "",
            2,
            "csv",
            "(SELECT x.n FROM b AS x JOIN b AS y ON x.n = y.n)",
            "failed in part and starts 4 of its 6 tasks again",
        ),
        ("", 1, "csv", "(SELECT b.n FROM a JOIN b ON a.n = b.n)", "failed and starts again in 0 ms (restart 1): "),
        (
            "SET 'jobmanager.execution.failover-strategy' = 'full';",
            1,
            "csv",
            "b",
            "failed and starts again in 0 ms (restart 1): ",
        ),
    ],
)
def test_a_statement_that_fails_does_not_take_the_other_along(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: str,
    parallelism: int,
    format_: str,
    rows: str,
    told: str,
) -> None:
    script = tmp_path / "job.sql"
    filled = {"source": SOURCE, "folder": tmp_path, "options": options, "rows": rows, "last": ROWS}
    text = SCRIPT
    for name, value in {**filled, "parallelism": parallelism, "format": format_}.items():
        text = text.replace("{" + name + "}", str(value))
    script.write_text(text, encoding="utf-8")
    code = main(["-f", str(script)])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert (tmp_path / "failed").exists()
    warnings = [line for line in printed.err.splitlines() if "[WARNING]" in line]
    assert len(warnings) == 1, printed.err
    assert f"Job two {told}" in warnings[0]
    assert "not today" in warnings[0]
    environment = TableEnvironment.create()
    environment.execute_sql(
        "CREATE TABLE o (n INT, side STRING) WITH ('connector' = 'filesystem', "
        f"'format' = '{format_}', 'path' = '{tmp_path}/out')"
    )
    with environment.execute_sql("SELECT n, side FROM o").collect() as seen:
        found = Counter(tuple(row) for row in seen)
    assert found == Counter((n, side) for n in range(1, ROWS + 1) for side in "ab"), "each row once"
