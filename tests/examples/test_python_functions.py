"""The example of Python functions prints what it says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from flowsql.table import TableEnvironment
from flowsql_core.span import Source
from flowsql_grammar import parse_statement, split_statements

ROOT = Path(__file__).resolve().parents[2]


def rows_of(printed: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in printed.splitlines()
        if line.startswith("| ") and not line.startswith("| op")
    ]


def test_python_functions(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "python_functions.py"), run_name="__main__")
    assert rows_of(capsys.readouterr().out) == [
        ["+I", "order 1: Ann Lee", "AL", "23.80", "0.5"],
        ["+I", "order 2: Bob Ray", "BR", "5.95", "0.125"],
        ["+I", "order 3: Ann Lee", "AL", "17.85", "0.375"],
        ["+I", "large", "1"],
        ["+I", "small", "1"],
        ["-U", "large", "1"],
        ["+U", "large", "2"],
        ["+I", "AL", "21.40"],
        ["+I", "AL", "16.05"],
    ]


def test_the_manual(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "udf.md").read_text()
    first, *_ = re.findall(r"(?s)```python\n(.*?)```", text)
    exec(compile(first, "udf.md", "exec"), {"__name__": "manual"})
    assert rows_of(capsys.readouterr().out) == [["+I", "ANN!"], ["+I", "BOB!"], ["+I", "ANN!"]]
    (script,) = re.findall(r"(?s)```sql\n(.*?)```", text)
    environment = TableEnvironment.create()
    environment.execute_sql("CREATE TEMPORARY VIEW people AS SELECT * FROM (VALUES ('ann lee')) AS t(name)")
    *definitions, query = split_statements(Source(script))
    for piece in definitions:
        environment.execute(parse_statement(Source(script), piece), Source(script))
    with environment.execute(parse_statement(Source(script), query), Source(script)).collect() as rows:
        assert [tuple(row) for row in rows] == [("AL",)]
