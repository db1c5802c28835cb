"""The parity runner: bounded scripts through FlowSQL's own runtime, Spark and DuckDB in one process, answers compared.

    python tests/spark/parity.py [--refused] [all | FAMILY | FAMILY/CASE | FILE.sql ...]

Scripts are those of the conformance suite beside the checkout (``all`` of them run in batch mode, too), or files. Each
statement that returns rows is asked of

- ``local``: FlowSQL in batch mode, or as a stream whose changes are folded to the table that stands at the end (not
  where windows or limits make a stream's answer another one),
- ``spark``: the plan that FlowSQL compiles for Spark, run by Spark,
- ``duckdb``: the same Spark SQL over the same files, translated by sqlglot: a judge of joins, groups, windows and sets.

A home that refuses a statement takes no part in it. Where two homes differ and Spark is asked again over tables whose
rows stand the other way round, an answer that changes is decided by nothing (which of two rows with equal keys comes
first): it is told, and is no difference. ``--refused`` lists what Spark refuses of what FlowSQL answers by itself in
batch mode. Exit status 1: two homes gave different tables.
"""

from __future__ import annotations

import contextlib
import decimal
import math
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flowsql.common.row import Row
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.values.result_rows import rows_of
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration
from flowsql_core.errors import FlowSqlError, ParseError
from flowsql_core.graph.spark import STAGE_RESOURCE
from flowsql_core.row import RowKind
from flowsql_core.span import Source
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema, without_attribute
from flowsql_grammar.ast.statement import QueryStatement
from flowsql_planner.bind import operations as op
from flowsql_planner.spark.plan import SparkPlanner
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.spark import batch
from flowsql_runtime.spark.rows import ParquetStage

SUITE = Path(__file__).resolve().parents[3] / "shared" / "conformance"
#: Constructs whose answer over a stream is not that over the whole table.
STREAM_DIFFERS = re.compile(r"(?i)\b(TUMBLE|HOP|CUMULATE|SESSION|LIMIT|FETCH|PROCTIME|MATCH_RECOGNIZE)\b")
#: Functions that answer otherwise each time.
DRAWS = re.compile(r"(?i)\b(RAND|RAND_INTEGER|UUID|NOW|UNIX_TIMESTAMP|CURRENT_(DATE|TIME\w*)|LOCALTIME\w*)\b")
#: Deviations of whole numbers are cut to whole numbers: DuckDB's casts round.
CUT = re.compile(r"(?i)\b(STDDEV|VAR)(IANCE|_POP|_SAMP)?\b")
GROUPING = re.compile(r"(?i)\b(GROUPING\s+SETS|ROLLUP|CUBE)\b")
Values = tuple[Any, ...]
#: What counts rows: which of several with equal keys comes first is decided by nothing.
COUNTED = re.compile(r"(?i)\b(ROWS\s+(BETWEEN|\d|UNBOUNDED)|ROW_NUMBER)")


@dataclass
class Answers:
    """What each home said to one statement: rows, or why not."""

    sql: str
    rows: dict[str, list[Values]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    #: Whether FlowSQL's own runtime answers in batch mode.
    in_batch: bool = False
    #: Spark's answer over tables whose rows stand the other way round, where it is another one.
    turned: list[Values] | None = None

    def differences(self) -> list[str]:
        """Pairs of homes that disagree."""
        homes = sorted(self.rows)
        return [
            f"{one} and {other}: {difference}"
            for place, one in enumerate(homes)
            for other in homes[place + 1 :]
            if (difference := first_difference(self.rows[one], self.rows[other])) is not None
        ]


class Parity:
    """One script: a session for each home."""

    def __init__(self) -> None:
        self.batch = _session({"execution.runtime-mode": "batch", "execution.batch.engine": "spark"})
        self.local = _session({"execution.runtime-mode": "batch", "execution.batch.engine": "local"})
        self.stream = _session({"execution.runtime-mode": "streaming"})
        self._in_batch = False

    def run(self, text: str) -> Iterator[Answers]:
        """The answers to the statements that return rows; the script ends where no home goes on."""
        source = Source(text)
        for statement in self._statements(source):
            sql = text[statement.span.start : statement.span.end]
            if isinstance(statement, QueryStatement):
                if not DRAWS.search(sql):
                    yield self._ask(sql)
                continue
            for session in (self.batch, self.local, self.stream):
                try:
                    session.execute_sql(sql).wait()
                except FlowSqlError:
                    if session is self.batch:
                        return

    def _statements(self, source: Source) -> Iterator[Any]:
        """The statements before the first one that is none."""
        with contextlib.suppress(ParseError):
            yield from self.batch.statements(source)

    def _ask(self, sql: str) -> Answers:
        answers = Answers(sql)
        for home, ask in (("local", self._local), ("spark", self._spark), ("duckdb", self._duckdb)):
            try:
                answers.rows[home] = ask(sql)
            except FlowSqlError as error:
                answers.refusals[home] = error.message
            if home == "local":
                answers.in_batch = self._in_batch
        if _is_lone_row_of_nothing(answers):
            # A global aggregate of nothing: no row over a stream, one in batch mode.
            del answers.rows["local"]
        if CUT.search(sql) or COUNTED.search(sql):
            answers.rows.pop("duckdb", None)
        if answers.rows.get("spark") == [] and GROUPING.search(sql):
            # Grouping sets of nothing have no grand total in Flink and Spark; in DuckDB they have.
            answers.rows.pop("duckdb", None)
        if "spark" in answers.rows and answers.differences():
            with _turned_tables():
                turned = self._spark(sql)
            if first_difference(turned, answers.rows["spark"]) is not None:
                answers.turned = turned
        return answers

    def _local(self, sql: str) -> list[Values]:
        self._in_batch = False
        try:
            rows = _table(self.local, sql)
            self._in_batch = True
            return rows
        except FlowSqlError:
            if STREAM_DIFFERS.search(sql):
                raise
            return _table(self.stream, sql)

    def _spark(self, sql: str) -> list[Values]:
        return _table(self.batch, sql)

    def _duckdb(self, sql: str) -> list[Values]:
        import duckdb
        import sqlglot

        if self.batch.configuration.get(LOCAL_TIME_ZONE) != "UTC":
            raise FlowSqlError("zone", "DuckDB is asked in UTC alone")
        source = Source(sql)
        (statement,) = self.batch.statements(source)
        operation = self.batch._executor.bind(statement, source)
        assert isinstance(operation, op.Query)
        configuration = self.batch.configuration
        with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
            job = SparkPlanner(configuration, folder).plan_query(operation, None)
            if job.queries[0].then is not None or any(staged.source for staged in job.inputs):
                raise FlowSqlError("behind", "FlowSQL runs between or behind the queries")
            for staged in job.inputs:
                path = f"{folder}/{staged.view}.parquet"
                writer = ParquetStage(path, staged.columns)
                LocalCluster().run(replace(staged.job, resources={**staged.job.resources, STAGE_RESOURCE: writer}))
                writer.wait_until_closed()
                connection.execute(f"CREATE VIEW {staged.view} AS SELECT * FROM read_parquet('{path}')")
            try:
                translated = sqlglot.transpile(job.queries[0].sql, read="spark", write="duckdb")[0]
                table = connection.sql(translated).to_arrow_table()
                return _rows_of_arrow(table, job.queries[0].columns)
            except (duckdb.Error, sqlglot.errors.SqlglotError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise FlowSqlError("duckdb", str(error).partition("\n")[0]) from error


class _TurnedStage(ParquetStage):
    """Hands the rows of a table over from the last to the first."""

    def __init__(self, path: str, columns: Schema) -> None:
        super().__init__(path, columns)
        self._batches: list[ChangelogBatch] = []

    def accept(self, batch: ChangelogBatch) -> None:
        self._batches.append(batch)

    def finish(self) -> None:
        for rows in reversed(self._batches):
            turned = pa.array(range(rows.num_rows - 1, -1, -1), pa.int64())
            columns = [pc.take(column, turned) for column in rows.columns]
            super().accept(ChangelogBatch.of(columns, num_rows=rows.num_rows))
        super().finish()


@contextlib.contextmanager
def _turned_tables() -> Iterator[None]:
    batch.ParquetStage = _TurnedStage  # type: ignore[misc]
    try:
        yield
    finally:
        batch.ParquetStage = ParquetStage  # type: ignore[misc]


def _session(options: dict[str, str]) -> TableEnvironment:
    return TableEnvironment.of_configuration(Configuration(values={"table.local-time-zone": "UTC", **options}))


def _table(session: TableEnvironment, sql: str) -> list[Values]:
    """The rows that stand at the end."""
    result = session.execute_sql(sql)
    standing: Counter[Values] = Counter()
    for changes in result.batches():
        for row in rows_of(changes, result.schema):
            values = tuple(_value(value) for value in row)
            gone = row.get_row_kind() in (RowKind.DELETE, RowKind.UPDATE_BEFORE)
            standing[values] += -1 if gone else 1
    return [row for row, count in standing.items() for _ in range(count)]


def _rows_of_arrow(table: Any, columns: Schema) -> list[Values]:
    from flowsql_core.batch import ChangelogBatch

    arrays = [
        pc.cast(table.column(index).combine_chunks(), to_arrow(without_attribute(column.type)), safe=False)
        for index, column in enumerate(columns)
    ]
    rows = rows_of(ChangelogBatch.of(arrays, num_rows=table.num_rows), columns)
    return [tuple(_value(value) for value in row) for row in rows]


def _value(value: Any) -> Any:
    """Something that can be counted."""
    match value:
        case list() | tuple():
            return tuple(_value(item) for item in value)
        case dict():
            return tuple(sorted(((_value(k), _value(v)) for k, v in value.items()), key=repr))
        case float() if math.isnan(value):
            return "NaN"
        case Row():
            return tuple(_value(item) for item in value)
    return value


def _is_lone_row_of_nothing(answers: Answers) -> bool:
    return answers.rows.get("local") == [] and len(answers.rows.get("spark", [])) == 1


def first_difference(one: Sequence[Values], other: Sequence[Values]) -> str | None:
    """What two tables differ in, as multisets; numbers may differ in the last digits of a DOUBLE."""
    if len(one) != len(other):
        return f"{len(one)} rows and {len(other)} rows"
    for a, b in zip(sorted(one, key=_order), sorted(other, key=_order), strict=True):
        if len(a) != len(b) or not all(map(_near, a, b)):
            return f"{a} and {b}"
    return None


def _order(row: Values) -> tuple[str, ...]:
    return tuple(f"{value:.6e}" if isinstance(value, float | decimal.Decimal) else repr(value) for value in row)


def _near(a: Any, b: Any) -> bool:
    numbers = (int, float, decimal.Decimal)
    if isinstance(a, numbers) and isinstance(b, numbers) and not isinstance(a, bool):
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)


def tpch_script(folder: Path) -> str:
    """The 22 queries of TPC-H over small tables, which are written to ``folder``."""
    from tests.sql.tpch.tables import COLUMNS, write_tables

    write_tables(folder, scale=0.01)
    tables = [
        f"CREATE TABLE {name} ({columns.replace('VARCHAR', 'STRING')}) WITH ('connector' = 'filesystem', "
        f"'path' = '{folder}/{name}.parquet', 'format' = 'parquet');"
        for name, columns in COLUMNS.items()
    ]
    queries = Path(__file__).parents[1] / "sql" / "tpch" / "queries.sql"
    return "\n".join([*tables, queries.read_text(encoding="utf-8")])


def scripts(wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and text of each script; of TPC-H as long as its tables stand."""
    if {"tpch", "all"} & set(wanted):
        with tempfile.TemporaryDirectory() as folder:
            yield "tpch", tpch_script(Path(folder))
        wanted = [name for name in wanted if name != "tpch"]
        if not wanted:
            return
    cases = SUITE / "cases"
    paths: list[Path] = []
    families = sorted(folder.name for folder in cases.iterdir() if folder.is_dir()) if "all" in wanted else wanted
    for name in families or ["batch_mode"]:
        found = Path(name) if name.endswith(".sql") else cases / f"{name}.sql"
        paths += sorted((cases / name).glob("*.sql")) if (cases / name).is_dir() else [found]
    for path in paths:
        if not path.name.endswith(".twin.sql"):
            text = path.read_text(encoding="utf-8")
            if "${DATA}/tmp_" not in text:
                yield f"{path.parent.name}/{path.stem}", text.replace("${DATA}", str(SUITE / "data"))


def main(wanted: Sequence[str]) -> int:
    """Compare, and tell."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    lists_refused, wanted = "--refused" in wanted, [name for name in wanted if name != "--refused"]
    asked, wrong, undecided, in_batch, on_spark = 0, 0, 0, 0, 0
    compared: Counter[str] = Counter()
    for name, text in scripts(wanted):
        for number, answers in enumerate(Parity().run(text), 1):
            asked += 1
            in_batch += answers.in_batch
            on_spark += answers.in_batch and "spark" in answers.rows
            if lists_refused and answers.in_batch and "spark" in answers.refusals:
                refusal = answers.refusals["spark"].partition("\n")[0]
                print(f"{name} answer {number} is refused by Spark: {refusal}", flush=True)
            compared.update(answers.rows.keys())
            differences = answers.differences()
            if differences and answers.turned is not None:
                undecided += 1
                print(f"{name} answer {number} is decided by nothing\n    {answers.sql}", flush=True)
                continue
            wrong += len(differences)
            for difference in differences:
                print(f"{name} answer {number}: {difference}\n    {answers.sql}", flush=True)
    shown = ", ".join(f"{home} {count}" for home, count in sorted(compared.items()))
    print(f"{asked} statements; answered by {shown}; {undecided} decided by nothing, {wrong} differences")
    print(f"of {in_batch} answers that the local engine gives in batch mode Spark gives {on_spark}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
