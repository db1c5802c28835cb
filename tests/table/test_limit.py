"""LIMIT ends its job: sources that never end, and files of which only the head is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_runtime.cluster.job import JobStatus

ENDLESS = "CREATE TABLE endless (id BIGINT, name STRING) WITH ('connector' = 'datagen')"


def environment(parallelism: int, **options: str) -> TableEnvironment:
    made = TableEnvironment.create()
    config = made.get_config().set("parallelism.default", str(parallelism))
    for key, value in options.items():
        config.set(key, value)
    made.execute_sql(ENDLESS)
    return made


def ends_with(made: TableEnvironment, query: str) -> int:
    """Rows of a query whose job must end by itself."""
    result = made.execute_sql(query)
    rows = sum(batch.num_rows for batch in result.batches())
    job = result.get_job_client()
    assert job is not None
    job.wait(30)
    assert job.get_job_status() is JobStatus.FINISHED
    return rows


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id FROM endless LIMIT 5", 5),
        ("SELECT id FROM endless LIMIT 0", 0),
        ("SELECT id FROM endless OFFSET 12000 ROWS FETCH NEXT 3 ROWS ONLY", 3),
        ("SELECT UPPER(name) FROM endless WHERE id > 0 LIMIT 7", 7),
        ("SELECT id FROM endless UNION ALL (SELECT id FROM endless) LIMIT 9", 9),
        ("SELECT x.id FROM (SELECT id FROM endless LIMIT 50) AS x LIMIT 20", 20),
        ("SELECT COUNT(*) FROM (SELECT id FROM endless LIMIT 50) AS x", 99),
        (
            "SELECT id FROM (SELECT id FROM endless LIMIT 4) UNION ALL SELECT id FROM (SELECT id FROM endless LIMIT 3)",
            7,
        ),
    ],
)
def test_a_limit_ends_an_endless_job(query: str, rows: int, parallelism: int) -> None:
    assert ends_with(environment(parallelism), query) == rows


@pytest.mark.parametrize("chaining", ["true", "false"])
def test_it_reaches_the_source_through_exchanges(chaining: str) -> None:
    made = environment(2, **{"pipeline.operator-chaining.enabled": chaining, "flowsql.chain-single-partition": "false"})
    assert ends_with(made, "SELECT id, CHAR_LENGTH(name) FROM endless WHERE id <> 7 LIMIT 6") == 6


def test_a_source_that_others_read_goes_on(tmp_path: Path) -> None:
    made = environment(1)
    made.execute_sql(
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        "'fields.n.start' = '1', 'fields.n.end' = '5000')"
    )
    for name in ("few", "all"):
        made.execute_sql(
            f"CREATE TABLE {name}_rows (n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{tmp_path / name}')"
        )
    made.execute_sql(
        "EXECUTE STATEMENT SET BEGIN INSERT INTO few_rows SELECT n FROM numbers LIMIT 3; "
        "INSERT INTO all_rows SELECT n FROM numbers; END"
    ).wait()

    def lines(name: str) -> int:
        return sum(len(part.read_text().splitlines()) for part in (tmp_path / name).glob("part-*"))

    assert lines("few") == 3
    assert lines("all") == 5000


@pytest.mark.parametrize("parallelism", [1, 2])
def test_only_the_head_of_a_large_file_is_read(tmp_path: Path, parallelism: int) -> None:
    # Large enough that no reader is through before it hears that nobody wants more, on a busy machine either.
    block, blocks = 100_000, 60
    lines = b"".join(b"%d,some text that fills the line a bit\n" % n for n in range(block))
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        for _ in range(blocks):
            file.write(lines)
    made = environment(parallelism)
    made.execute_sql(
        f"CREATE TABLE big (n BIGINT, t STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"
    )
    result = made.execute_sql("SELECT n FROM big WHERE n >= 0 LIMIT 5")
    with result.collect() as found:
        assert len(list(found)) == 5
    job = result.get_job_client()
    assert job is not None
    assert job.get_job_status() is JobStatus.FINISHED
    assert job.records_read() < block * blocks / 2
