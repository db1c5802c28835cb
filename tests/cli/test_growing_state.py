"""A stream whose state grows for ever says so when it starts."""

from __future__ import annotations

import pytest

from flowsql.cli.main import main

TABLES = (
    "CREATE TABLE clicks (u INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');\n"
    "CREATE TABLE few (u INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5');\n"
    "CREATE TABLE counts (u INT, n BIGINT) WITH ('connector' = 'blackhole');\n"
)
GROWS = "unbounded-state: GroupAggregate keeps a row for each key of 'u' for ever.\n"
COUNT = "SELECT u, COUNT(*) FROM {} GROUP BY u"
WINDOW = (
    "SELECT u, COUNT(*) FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR) "
    "GROUP BY u, window_start, window_end"
)


@pytest.mark.parametrize(
    ("sql", "warns"),
    [
        (COUNT.format("clicks"), True),
        (f"INSERT INTO counts {COUNT.format('clicks')}", True),
        (f"EXECUTE STATEMENT SET BEGIN INSERT INTO counts {COUNT.format('clicks')}; END", True),
        (COUNT.format("few"), False),
        (WINDOW, False),
        ("SELECT u FROM clicks", False),
        (f"SET 'table.exec.state.ttl' = '1 d';\n{COUNT.format('clicks')}", False),
        (f"SET 'sql-client.display.warn-growing-state' = 'false';\n{COUNT.format('clicks')}", False),
        (f"-- flowsql: ignore[unbounded-state]\n{COUNT.format('clicks')}", False),
        (f"EXPLAIN {COUNT.format('clicks')}", False),
        (f"SET 'execution.runtime-mode' = 'batch';\n{COUNT.format('few')}", False),
    ],
)
def test_who_is_warned(sql: str, warns: bool, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--timeout", "0.3", "--max-rows", "1", "-c", TABLES + sql])
    told = capsys.readouterr().err
    assert (GROWS in told) == warns
    assert ("[WARNING]" in told) == warns


def test_the_warning_has_a_place_and_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--max-rows", "1", "-c", TABLES + COUNT.format("clicks")]) == 0
    place, _, text, mark, reason, remedy = capsys.readouterr().err.splitlines()
    assert place == f"[WARNING] <command>:4:41: {GROWS}".rstrip()
    assert text == "4 | SELECT u, COUNT(*) FROM clicks GROUP BY u"
    assert mark == f"  |{' ' * 41}^"
    assert reason.startswith("  = reason: the input never ends and nothing removes state")
    assert remedy.startswith("  = remedy: SET 'table.exec.state.ttl' = '1 d'")
