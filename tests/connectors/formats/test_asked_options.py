"""Options of csv, json and raw: read and written as Flink 2.3 does it (``asked_options.txt``)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flowsql.common import Row
from flowsql.errors import FlowSqlError
from flowsql.table import EnvironmentSettings, TableEnvironment

PATH = Path(__file__).with_name("asked_options.txt")
#: What Flink says itself, and not a library of Java.
SENTENCES = ("Option ", "Format ", "fail-on", "The 'raw'", "JSON format", "Row length", "Too many", "not supported")
CASES = dict(case.split("\n", 1) for case in PATH.read_text(encoding="utf-8").split("=== ")[1:])


def form(value: Any) -> Any:
    """A value as the answers have it."""
    match value:
        case Row() | tuple() | list():
            return [form(item) for item in value]
        case Mapping():
            return [[form(key), form(item)] for key, item in value.items()]
        case bytes() | bytearray():
            return "x" + value.hex()
        case datetime.datetime():
            zone = "" if value.tzinfo is None else "Z"
            return value.replace(tzinfo=None).isoformat(" ", "milliseconds") + zone
        case datetime.time() if value.microsecond:
            return value.isoformat("milliseconds")
        case None | bool() | int() | float():
            return value
    return str(value)


def answer(kind: str, table: str, body: str, folder: Path, made: TableEnvironment) -> list[str]:
    """Rows that are read, or lines that are written."""
    made.execute_sql(table)
    if kind == "read":
        folder.mkdir()
        (folder / "in").write_text(body, encoding="utf-8")
        with made.execute_sql("SELECT * FROM t").collect() as rows:
            return [json.dumps(form(row), ensure_ascii=False) for row in rows]
    made.execute_sql(f"INSERT INTO t VALUES {body.strip()}").wait()
    written = b"".join(part.read_bytes() for part in sorted(folder.rglob("part*")))
    return written.decode("utf-8", "backslashreplace").replace("\0", r"\0").splitlines()


@pytest.mark.parametrize("name", CASES)
def test_options(name: str, tmp_path: Path) -> None:
    declared, _, rest = CASES[name].partition("\n")
    body, _, asked = rest.partition("--- answer\n")
    told, _, here = asked.partition("--- here: ")
    expected = (here.partition("\n")[2] or told).splitlines()
    kind, format_ = name.partition(":")[0].split()
    columns, _, options = declared.partition(" | ")
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in (("execution.batch.engine", "local"), ("table.local-time-zone", "UTC")):
        made.get_config().set(key, value)
    given = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = '{format_}'"
    table = f"CREATE TABLE t ({columns}) WITH ({', '.join(filter(None, (given, options)))})"
    if expected[0].startswith("ERROR"):
        with pytest.raises(FlowSqlError) as caught:
            answer(kind, table, body, tmp_path / "t", made)
        said = expected[0].removeprefix("ERROR ")
        if said.startswith(SENTENCES):
            assert said[:40] in caught.value.message
        return
    assert answer(kind, table, body, tmp_path / "t", made) == expected
