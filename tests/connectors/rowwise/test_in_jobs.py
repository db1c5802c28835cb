"""Connectors in plain Python in the jobs of SQL."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from flowsql.connectors import At, BatchSink, ConnectorOption, OptionSet, RowKind, RowSource, register
from flowsql.errors import BindError, ConnectorError, FlowSqlError, PlanError
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors import registry
from flowsql_core.row import ALL_CHANGES, ChangelogMode

FAILS_AT = ConnectorOption("fails-at", int, -1, "The row that fails.")


class Words(RowSource):
    options = OptionSet(optional=(FAILS_AT,))

    def splits(self) -> Sequence[str]:
        return ("x", "y")

    def read(self, split: str, position: Any) -> Iterator[Any]:
        for number in range(position or 0, 1000):
            if number == self.table.option(FAILS_AT):
                raise ValueError("no such word")
            yield At((f"{split}{number % 3}", number), position=number + 1)


class Changes(RowSource):
    changelog: ClassVar[ChangelogMode] = ALL_CHANGES

    def read(self, split: str, position: Any) -> Iterator[Any]:
        yield At(("a", 1))
        yield At(("a", 1), kind=RowKind.UPDATE_BEFORE)
        yield At(("a", 5), kind=RowKind.UPDATE_AFTER)
        yield ("b", 2)
        yield At(("b", 2), kind=RowKind.DELETE)


class Odd(RowSource):
    options = OptionSet(required=(ConnectorOption("row", str, "", "A row in Python."),))

    def read(self, split: str, position: Any) -> Iterator[Any]:
        yield eval(self.table.option(self.options.required[0]))


class Ticks(RowSource):
    bounded: ClassVar[bool] = False

    def read(self, split: str, position: Any) -> Iterator[Any]:
        for number in range(position or 0, 10_000_000):
            yield At(("t", number), position=number + 1)
            time.sleep(0.001)


class Seen(BatchSink):
    rows: ClassVar[list[tuple[Any, ...]]] = []

    def write(self, rows: pa.RecordBatch, kinds: pa.StringArray | None) -> None:
        changes = ["+I"] * rows.num_rows if kinds is None else kinds.to_pylist()
        self.rows.extend((change, *row.values()) for change, row in zip(changes, rows.to_pylist(), strict=True))


class Keyed(Seen):
    takes_changes: ClassVar[bool] = True


class Refuses(BatchSink):
    def write(self, rows: pa.RecordBatch, kinds: pa.StringArray | None) -> None:
        raise OSError("disk full")


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone behind it."""
    monkeypatch.setattr(registry, "_REGISTERED", {})


@pytest.fixture(params=["streaming", "batch"])
def environment(request: pytest.FixtureRequest) -> TableEnvironment:
    return new_environment(request.param)


def new_environment(mode: str = "streaming") -> TableEnvironment:
    register("words", source=Words)
    register("changes", source=Changes)
    register("odd", source=Odd)
    register("ticks", source=Ticks)
    register("seen", sink=Seen)
    register("keyed", sink=Keyed)
    register("refuses", sink=Refuses)
    Seen.rows.clear()
    settings = EnvironmentSettings.in_batch_mode if mode == "batch" else EnvironmentSettings.in_streaming_mode
    made = TableEnvironment.create(settings())
    made.get_config().set("execution.batch.engine", "local")
    return made


def table(environment: TableEnvironment, connector: str, columns: str = "w STRING, n INT", **options: str) -> None:
    words = "".join(f", '{key.replace('_', '-')}' = '{value}'" for key, value in options.items())
    environment.execute_sql(f"CREATE TABLE {connector} ({columns}) WITH ('connector' = '{connector}'{words})")


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_rows_are_read_once(environment: TableEnvironment, parallelism: int) -> None:
    environment.get_config().set("parallelism.default", str(parallelism))
    table(environment, "words")
    counts = environment.sql_query("SELECT w, COUNT(*) AS c, SUM(n) AS s FROM words GROUP BY w").to_arrow().to_pylist()
    assert sorted(row["w"] for row in counts) == ["x0", "x1", "x2", "y0", "y1", "y2"]
    assert sum(row["c"] for row in counts) == 2000
    assert sum(row["s"] for row in counts) == 2 * sum(range(1000))
    assert environment.sql_query("SELECT SUM(n) AS s FROM words").to_arrow().to_pylist() == [{"s": 999_000}]


def test_a_table_is_looked_up_whole() -> None:
    environment = new_environment()
    table(environment, "words")
    environment.execute_sql("CREATE VIEW asked AS SELECT w, PROCTIME() AS pt FROM (VALUES ('x0'), ('z')) AS t(w)")
    join = "SELECT a.w, d.n FROM asked AS a LEFT JOIN words{} FOR SYSTEM_TIME AS OF a.pt AS d ON a.w = d.w AND d.n < 5"
    hint = " /*+ OPTIONS('lookup.cache' = 'FULL', 'lookup.full-cache.periodic-reload.interval' = '1 h') */"
    with environment.execute_sql(join.format(hint)).collect() as rows:
        assert sorted(tuple(row) for row in rows) == [("x0", 0), ("x0", 3), ("z", None)]
    with pytest.raises(BindError, match="no lookups by key: they take 'lookup"):
        environment.execute_sql(join.format(""))


def test_changes_are_taken_back() -> None:
    environment = new_environment()
    table(environment, "changes")
    with environment.execute_sql("SELECT w, SUM(n) FROM changes GROUP BY w").collect() as rows:
        assert [str(row) for row in rows][-1].startswith("<Row(")
    assert environment.sql_query("SELECT * FROM changes").to_arrow().to_pylist() == [{"w": "a", "n": 5}]


def test_a_sink_takes_inserts(environment: TableEnvironment) -> None:
    table(environment, "words")
    table(environment, "seen")
    environment.execute_sql("INSERT INTO seen SELECT w, n FROM words WHERE n < 2").wait()
    assert sorted(Seen.rows) == [("+I", "x0", 0), ("+I", "x1", 1), ("+I", "y0", 0), ("+I", "y1", 1)]


def test_a_sink_that_takes_no_updates_is_refused_them() -> None:
    environment = new_environment()
    table(environment, "words")
    table(environment, "seen")
    with pytest.raises(PlanError, match="doesn't support consuming update"):
        environment.execute_sql("INSERT INTO seen SELECT w, CAST(COUNT(*) AS INT) FROM words GROUP BY w")


def test_a_keyed_sink_takes_changes_without_the_old_rows() -> None:
    environment = new_environment()
    table(environment, "changes")
    table(environment, "keyed", "w STRING PRIMARY KEY NOT ENFORCED, n BIGINT")
    environment.execute_sql("INSERT INTO keyed SELECT w, CAST(SUM(n) AS BIGINT) FROM changes GROUP BY w").wait()
    assert {kind for kind, *_ in Seen.rows} <= {"+I", "+U", "-D"}
    left = {}
    for kind, word, total in Seen.rows:
        left[word] = total
        if kind == "-D":
            del left[word]
    assert left == {"a": 5}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("(1,)", "The connector 'odd' gave a row of 1 values; the table has 2 columns: (1,)."),
        ("{'w': 'a', 'm': 1}", "The connector 'odd' gave a row with 'm', which is no column of the table."),
        ("('a', 'b')", "The connector 'odd' gave 'b' for the column 'n' (INT): "),
        ("('a', 3_000_000_000)", "The connector 'odd' gave 3000000000 for the column 'n' (INT): "),
        ("7", "The connector 'odd' gave 7: a row is a tuple, a list, or a dict by column."),
        ("1 / 0", "failed while it read the split 'all': ZeroDivisionError: division by zero (<string>:1)"),
    ],
)
def test_rows_that_do_not_fit(row: str, message: str) -> None:
    environment = new_environment()
    table(environment, "odd", row=row.replace("'", "''"))
    with pytest.raises(ConnectorError) as failed:
        environment.sql_query("SELECT * FROM odd").to_arrow()
    assert message in str(failed.value)


def test_a_source_that_fails() -> None:
    environment = new_environment()
    table(environment, "words", fails_at="10")
    message = r"the split '[xy]': ValueError: no such word \(test_in_jobs.py:\d+\)"
    with pytest.raises(ConnectorError, match=message) as failed:
        environment.sql_query("SELECT * FROM words").to_arrow()
    assert isinstance(failed.value.__cause__, ValueError)


def test_a_sink_that_fails(environment: TableEnvironment) -> None:
    table(environment, "words")
    table(environment, "refuses")
    with pytest.raises(ConnectorError, match=r"failed while it wrote rows: OSError: disk full \(test_in_jobs"):
        environment.execute_sql("INSERT INTO refuses SELECT w, n FROM words").wait()


def test_reading_goes_on_from_a_savepoint(tmp_path: Path) -> None:
    environment = new_environment()
    table(environment, "ticks")
    table(environment, "seen")
    insert = "INSERT INTO seen SELECT w, n FROM ticks"
    job = environment.execute_sql(insert).get_job_client()
    assert job is not None
    while len(Seen.rows) < 50:
        time.sleep(0.01)
    path = job.stop_with_savepoint(False, str(tmp_path)).result()
    before = len(Seen.rows)
    environment.get_config().set("execution.state-recovery.path", path)
    again = environment.execute_sql(insert).get_job_client()
    assert again is not None
    while len(Seen.rows) < before + 50:
        time.sleep(0.01)
    again.cancel_and_wait()
    numbers = [n for _, _, n in Seen.rows]
    assert numbers == list(range(len(numbers)))


def test_an_endless_source_is_refused_in_batch_mode() -> None:
    environment = new_environment("batch")
    table(environment, "ticks")
    with pytest.raises(PlanError, match="Querying an unbounded table"):
        environment.sql_query("SELECT * FROM ticks").to_arrow()


def test_a_class_is_named_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "squares_module.py").write_text(
        "from flowsql.connectors import RowSource\n\n\nclass Squares(RowSource):\n"
        "    def read(self, split, position):\n        yield from (n * n for n in range(4))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    environment = new_environment()
    ddl = "CREATE TABLE {} (n INT) WITH ('connector' = 'python', 'class' = '{}')"
    environment.execute_sql(ddl.format("squares", "squares_module:Squares"))
    assert environment.sql_query("SELECT SUM(n) AS s FROM squares").to_arrow().to_pylist() == [{"s": 14}]
    for name, text, message in (
        ("a", "squares_module:Circles", "'class' = 'squares_module:Circles' names no class: "),
        ("b", "nowhere:Squares", "'class' = 'nowhere:Squares' names no class: No module named 'nowhere'."),
        ("c", "squares_module:RowSource.read", "names no class"),
    ):
        environment.execute_sql(ddl.format(name, text))
        with pytest.raises(BindError, match=re.escape(message)):
            environment.sql_query(f"SELECT * FROM {name}").to_arrow()
    with pytest.raises(BindError, match="is no BatchSink: the table cannot be a sink"):
        environment.execute_sql("INSERT INTO squares VALUES (1)")


def test_names_that_are_taken() -> None:
    with pytest.raises(BindError, match=r"^FlowSQL has a connector 'datagen' already: take another name"):
        register("datagen", source=Words)
    with pytest.raises(TypeError, match="a source is a subclass of RowSource or SourceFactory"):
        register("words", source=Seen)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a source, a sink, a catalog"):
        register("words")


def test_options_are_checked() -> None:
    environment = new_environment()
    table(environment, "words", fail_at="1")
    with pytest.raises(FlowSqlError, match="Unsupported options found for 'words'"):
        environment.sql_query("SELECT * FROM words").to_arrow()
