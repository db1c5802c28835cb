"""A program that ``test_clusters.py`` runs elsewhere: ten queries of TPC-H, and the family ``batch_mode`` of the suite.

python cluster_suite.py SETTINGS FOLDER, where SETTINGS is a JSON object of ``spark.*`` keys. It ends with an error
where an answer is not DuckDB's, or not Flink's; else it says how many were asked.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from flowsql.cli.main import main as flowsql
from tests.conformance.suite import CONFORMANCE, load_judge
from tests.sql.tpch.tables import write_tables
from tests.sql.tpch.test_tpch import check

QUERIES = ("q1", "q2", "q4", "q6", "q9", "q13", "q15", "q17", "q18", "q21")
SCALE = 0.01


def cases(settings: dict[str, str], folder: Path) -> int:
    """Run the family; how many scripts it has."""
    if not CONFORMANCE.folder.is_dir():
        return 0
    judge = load_judge()
    paths = sorted((CONFORMANCE.folder / "cases" / "batch_mode").glob("*.sql"))
    options = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        script = CONFORMANCE.script_in(folder, path, text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            flowsql(["--format", "jsonl", "-D", "execution.runtime-mode=batch", "-D", "execution.batch.engine=spark",
                     "-D", "table.local-time-zone=UTC", "-f", str(script), *options])  # fmt: skip
        expected = path.with_name(path.name[:-4] + ".expected.jsonl").read_text(encoding="utf-8")
        wrong = judge.compare(text, expected, printed.getvalue())
        assert wrong is None, f"{path.name}: {wrong}"
    return len(paths)


def main(settings_text: str, folder_text: str) -> None:
    settings: dict[str, Any] = json.loads(settings_text)
    folder = Path(folder_text)
    tables = folder / "tpch"
    tables.mkdir()
    write_tables(tables, SCALE)
    for name in QUERIES:
        check(tables, name, {**settings, "execution.batch.engine": "spark"}, scale=SCALE)
    print(len(QUERIES), "queries")
    print(cases(settings, folder), "cases")


if __name__ == "__main__":
    main(*sys.argv[1:])
