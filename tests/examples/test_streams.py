"""The DataStream programs of ``examples/`` print what their texts promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_user_is_reported_after_a_minute_of_silence(capsys: pytest.CaptureFixture[str]) -> None:
    loaded("stream_user_activity").main()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("silent")] == [
        "silent> (bob,1,65)",
        "silent> (ann,3,145)",
        "silent> (bob,1,150)",
        "silent> (cid,1,260)",
        "silent> (ann,1,360)",
    ]
    new = [line for line in lines if line.startswith("new")]
    assert new == ["new> ann", "new> bob", "new> bob", "new> cid", "new> ann"]


def test_purchases_have_statistics_for_each_product_and_window(capsys: pytest.CaptureFixture[str]) -> None:
    loaded("stream_purchases").main()
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "+I[cup,00:00,1,9.00,9.0]",
        "+I[cup,00:05,1,17.00,8.5]",
        "+I[tea,00:00,2,9.80,3.27]",
        "+I[tea,00:05,1,16.50,3.3]",
    ]


def test_the_table_api_its_twin_and_the_stream(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = loaded("stream_and_table")
    program.main()
    lines = capsys.readouterr().out.splitlines()
    tables = [line for line in lines if line.startswith(("|", "+-"))]
    assert len(tables) == 18
    assert tables[: len(tables) // 2] == tables[len(tables) // 2 :]
    assert [line for line in lines if line.startswith("+I")] == [
        "+I[2020-01-01 10:00:00,3,22.75]",
        "+I[2020-01-01 10:05:00,1,99.99]",
        "+I[2020-01-01 10:10:00,1,20.00]",
    ]
    assert [line for line in lines if line.startswith("changes")] == [
        "changes> +I[ann,12.50,1]",
        "changes> -U[ann,12.50,1]",
        "changes> +U[ann,19.75,2]",
        "changes> +I[cid,99.99,1]",
        "changes> +I[bob,20.00,1]",
    ]

    from flowsql.datastream import StreamExecutionEnvironment
    from flowsql.table import StreamTableEnvironment

    session = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    program.create_orders(session, tmp_path)
    assert program.by_table_api(session).explain() == program.by_sql(session).explain()


def test_payments_are_held_against_the_limits_of_the_day(capsys: pytest.CaptureFixture[str]) -> None:
    loaded("stream_rules").main()
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "ann paid 270 by card, the limit is 200",
        "bob paid 1200 by transfer, the limit is 1000",
    ]


def test_readings_are_written_into_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    loaded("stream_files").main(tmp_path)
    assert capsys.readouterr().out.splitlines() == ["csv 13", "lines 7", "lines 5"]
    (csv,) = (tmp_path / "csv").iterdir()
    assert csv.read_text().splitlines()[:2] == ["sensor,celsius", '"sensor 0",20.0']
